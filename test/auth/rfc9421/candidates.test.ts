import { expect, test } from 'vitest';
import { type Trial, tryCandidates } from '../../../src/auth/for-tests.ts';
import { editionFor, protocolsFor } from '../../../src/for-tests.ts';
import type { Candidate } from '../../../src/keys/for-tests.ts';

test('a kid of very many senders is tried with each of them', async () => {
  const [protocol] = protocolsFor();
  const signed = { protocol, parameters: { alg: 'ed25519', keyid: 'k' } };
  const trial = { context: {}, signed, base: new Uint8Array(), host: { kind: 'same' } } as unknown as Trial;
  const sender = { edition: editionFor() };
  const unusable = { sender, key: { kid: 'k', jwk: {}, verifyKey: 'no key' } } as unknown as Candidate;
  const result = await tryCandidates(
    trial,
    Array.from({ length: 100_000 }, () => unusable),
  );
  expect(result).toMatchObject({ kind: 'refused', code: 'webhook_signature_key_purpose_invalid', check: 8 });
});
