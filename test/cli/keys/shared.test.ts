import { expect, it } from 'vitest';
import { blockingFaults, sharedNotes, walkChain } from '../../../src/cli/for-tests.ts';
import { defaultFetch } from '../../../src/keys/for-tests.ts';
import { generateKey, type Jwk } from '../../../src/sender/sign.ts';
import { createFakeSeller } from '../../../src/testing/index.ts';

it('keys check --beside: names the key ids that another seller publishes too', async () => {
  await using one = await createFakeSeller();
  await using other = await createFakeSeller();
  const keyOf = async (kid: string): Promise<Jwk> =>
    (await generateKey('ed25519', 'webhook-signing', { kid })).publicJwk;
  const [shared, own, theirs, sameName] = await Promise.all(
    ['shared', 'own', 'theirs', 'same-name'].map(keyOf),
  );
  const jwks = '/.well-known/jwks.json';
  one.documents.set(jwks, { keys: [shared, own, sameName] });
  other.documents.set(jwks, { keys: [theirs, shared, await keyOf('same-name')] });
  const walk = ({ agentUrl }: { readonly agentUrl: string }) =>
    walkChain({
      sender: { agentUrl },
      protocol: undefined,
      allowLoopback: true,
      fetch: defaultFetch(true),
      now: Date.now,
    });
  const [mine, beside] = await Promise.all([walk(one), walk(other)]);
  expect(sharedNotes(mine, beside)).toEqual([
    expect.stringMatching(`^${other.agentUrl} publishes "shared", "same-name" too\\.`),
  ]);
  other.documents.set(jwks, { keys: [theirs] });
  expect(sharedNotes(mine, await walk(other))).toEqual([]);
});

it('keys check --beside: says who would block whom at one URL, and where two publish one key', async () => {
  await using one = await createFakeSeller();
  await using other = await createFakeSeller();
  const walk = ({ agentUrl }: { readonly agentUrl: string }) =>
    walkChain({
      sender: { agentUrl },
      protocol: undefined,
      allowLoopback: true,
      fetch: defaultFetch(true),
      now: Date.now,
    });
  expect(blockingFaults(await walk(one), await walk(other))).toEqual([]);
  other.faults.set('*', 'unavailable');
  const [mine, silent] = [await walk(one), await walk(other)];
  const said = `The keys of ${other.agentUrl} cannot be fetched. Until they can, deliveries of ${one.agentUrl} at the same URL by`;
  expect(blockingFaults(mine, silent)).toEqual([expect.stringContaining(said)]);
  expect(blockingFaults(silent, mine)).toEqual([expect.stringContaining(said)]);
  other.faults.clear();
  other.documents.set('/.well-known/jwks.json', { keys: [one.keys.ed25519.publicJwk] });
  expect(sharedNotes(mine, await walk(other))).toEqual([
    expect.stringMatching(/Under "[^"]+" it is the same key: deliveries of both are answered 503/),
  ]);
});
