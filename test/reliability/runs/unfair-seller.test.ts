import { afterAll, describe, expect, inject, it } from 'vitest';
import { generateKey } from '../../../src/sender/sign.ts';
import { AGENT, testReceiver, payloads, said, sellerKey } from '../../receiver/setup.ts';
import { inThisForm, LONG } from '../form.ts';
import { serversOf, type StoreName, STORES } from '../hostile/stores.ts';
import { print } from './figures.ts';

/** Of the seller that sends much; of the other one this many in all, some before and some while those are worked. */
const MANY = LONG ? 2000 : 60;
const FEW = 3;
const CONCURRENCY = 4;
const OTHER = 'https://other.example/mcp';

const servers = serversOf(inject('shared'));
afterAll(() => servers.stop());

const NAMES = inThisForm(
  Object.keys(STORES) as StoreName[],
  (name) => name === 'memory' || name === 'SQLite',
);

describe.each(NAMES)('unfair seller, %s', (name) => {
  it('another seller’s event is handled at most one batch of the worker later', async () => {
    const { store, end } = await STORES[name](await servers.urlOf(name));
    const mine = await sellerKey();
    const theirs = await generateKey('ed25519', 'webhook-signing', { kid: 'other-1' });
    /** Events of both, in the order in which their handlers began. */
    const begun: { readonly sender: string; readonly key: string }[] = [];
    /** Of the other seller: how many handlers had begun when each was acknowledged. */
    const queuedAt: number[] = [];
    let faults = 0;
    let sent = 1;
    const one = async (key?: typeof theirs.privateJwk): Promise<void> => {
      const outcome = await at.deliver(payloads.tool('completed'), key && { key });
      if (said(outcome) !== 'accepted 200') faults += 1;
      else if (key) queuedAt.push(begun.length);
    };
    const at = await testReceiver({
      store,
      mode: 'inbox',
      worker: { concurrency: CONCURRENCY, pollMs: 20 },
      senders: [
        { agentUrl: AGENT, pins: [mine.publicJwk] },
        { agentUrl: OTHER, pins: [theirs.publicJwk] },
      ],
      handler: async ({ sender, idempotencyKey }) => {
        begun.push({ sender, key: idempotencyKey });
        if (sender !== AGENT || begun.length % 10 !== 0 || sent === FEW) return;
        sent += 1;
        await one(theirs.privateJwk);
      },
    });
    for (let queued = 0; queued < MANY; queued += 50) {
      await Promise.all(Array.from({ length: Math.min(50, MANY - queued) }, () => one()));
    }
    await one(theirs.privateJwk);
    const working = at.receiver.start();
    await expect.poll(() => begun.length, { timeout: 120_000 }).toBe(MANY + FEW);
    const others = begun.flatMap(({ sender }, place) => (sender === OTHER ? [place] : []));
    const waits = others.map((place, n) => place - (queuedAt[n] ?? 0));
    const dead = (await store.inbox?.list({ state: 'dead', limit: 10 }))?.records.length ?? 0;
    const keys = new Set(begun.map(({ key }) => key));
    print({
      run: `unfair seller, ${name}: ${Math.max(...waits)} handlers before another's`,
      events: MANY + FEW,
      faults,
      lost: MANY + FEW - keys.size,
      twice: begun.length - keys.size,
      dead,
    });
    expect({ faults, dead, keys: keys.size }).toEqual({ faults: 0, dead: 0, keys: MANY + FEW });
    // What was leased when it was queued, and one batch.
    expect(Math.max(...waits)).toBeLessThanOrEqual(2 * CONCURRENCY);
    await at.receiver.stop();
    await working;
    await end();
  }, 180_000);
});
