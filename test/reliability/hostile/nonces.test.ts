import { afterAll, describe, expect, inject, it } from 'vitest';
import { generateKey } from '../../../src/sender/sign.ts';
import { AGENT, testReceiver, payloads, said, sellerKey } from '../../receiver/setup.ts';
import { inThisForm } from '../form.ts';
import { serversOf, type StoreName, STORES } from './stores.ts';

const CAP = 200;
const AT_ONCE = 32;
const OTHER = 'https://other.example/mcp';

const servers = serversOf(inject('shared'));
afterAll(() => servers.stop());

/** The rule is one for all stores; `npm test` has it on two, which need no server. */
const NAMES = inThisForm(
  Object.keys(STORES) as StoreName[],
  (name) => name === 'memory' || name === 'SQLite',
);

/** verification.md §2.9a. */
describe.each(NAMES)('unlimited fresh nonces under one key id, %s', (name) => {
  it('429 webhook_signature_rate_abuse at maxNoncesPerKey, and no WWW-Authenticate; other senders 200', async () => {
    const { store, end } = await STORES[name](await servers.urlOf(name));
    const [key, other] = [
      await sellerKey(),
      await generateKey('ed25519', 'webhook-signing', { kid: 'other-1' }),
    ];
    const at = await testReceiver({
      store,
      // Those that come beside the first wait for it, however slow the store is.
      advanced: { waitMs: 300_000 },
      maxNoncesPerKey: CAP,
      senders: [
        { agentUrl: AGENT, pins: [key.publicJwk] },
        { agentUrl: OTHER, pins: [other.publicJwk] },
      ],
    });
    const event = payloads.tool('completed');
    const answers: Record<string, number> = {};
    for (let round = 0; round < 15; round += 1) {
      const sent = Array.from({ length: AT_ONCE }, () => at.deliver(event));
      for (const outcome of await Promise.all(sent)) {
        answers[said(outcome)] = (answers[said(outcome)] ?? 0) + 1;
        if (outcome.response.status !== 429) continue;
        expect(outcome.response.headers).toHaveProperty('Retry-After', '5');
        expect(outcome.response.headers).not.toHaveProperty('WWW-Authenticate');
      }
      const honest = await at.deliver(payloads.tool('completed'), { key: other.privateJwk });
      expect(said(honest)).toBe('accepted 200');
    }
    const { 'duplicate 200': taken = 0, ...rest } = answers;
    expect(rest).toEqual({
      'accepted 200': 1,
      'refused webhook_signature_rate_abuse 429': 15 * AT_ONCE - 1 - taken,
    });
    // Memory and SQLite count in the step that takes a nonce; on a server what was under way may be taken too.
    const isExact = name === 'memory' || name === 'SQLite';
    expect(taken).toBeGreaterThanOrEqual(CAP - 1);
    expect(taken).toBeLessThanOrEqual(CAP - 1 + (isExact ? 0 : AT_ONCE));
    await at.receiver.stop();
    await end();
  });
});
