import { expect, it } from 'vitest';
import { walkChain } from '../../../src/cli/for-tests.ts';
import { defaultFetch } from '../../../src/keys/for-tests.ts';
import { generateKey } from '../../../src/sender/sign.ts';
import { createFakeSeller } from '../../../src/testing/index.ts';

it('keys check: reports a clock of this machine that differs from the servers’, not as a failure', async () => {
  await using seller = await createFakeSeller();
  const { publicJwk } = await generateKey('ed25519', 'webhook-signing', { kid: 'first' });
  seller.documents.set('/.well-known/jwks.json', { keys: [publicJwk] });
  const walk = (offsetMs: number) =>
    walkChain({
      sender: { agentUrl: seller.agentUrl },
      protocol: undefined,
      allowLoopback: true,
      fetch: defaultFetch(true),
      now: () => Date.now() + offsetMs,
    });
  const right = await walk(0);
  expect([right.faults, right.notes]).toEqual([[], []]);
  const ahead = await walk(3_600_000);
  expect(ahead.faults).toEqual([]);
  expect(ahead.notes).toEqual([
    expect.stringMatching(/^This machine's clock is 3[56]\d\d s ahead of that of 127\.0\.0\.1:\d+ \(Date\)/),
  ]);
  const behind = await walk(-3_600_000);
  expect(behind.notes).toEqual([expect.stringContaining(' s behind that of ')]);
});
