import { describe, expect, it, onTestFinished } from 'vitest';
import { ConfigError } from '../../src/index.ts';
import { createReconciler, type AccountQuery } from '../../src/reconcile/index.ts';
import { type CallSeller, createRegistrations } from '../../src/registrations/index.ts';
import { memoryStore } from '../../src/stores/memory.ts';
import { testReceiver } from '../receiver/setup.ts';
import { NEWEST } from '../registrations/kit.ts';

async function given(call: CallSeller = async () => ({})) {
  const store = memoryStore();
  const registrations = createRegistrations({
    store,
    call,
    baseUrl: 'https://buyer.example',
    secrets: [NEWEST],
  });
  const { receiver } = await testReceiver({ store, registrations });
  onTestFinished(() => receiver.stop());
  return { receiver, registrations };
}

const WRONG: readonly (readonly [string, object, RegExp])[] = [
  ['an option that does not exist', { grace: 5 }, /createReconciler: grace is not known\. Known: receiver,/],
  [
    'no receiver',
    { receiver: {} },
    /createReconciler: receiver is not a receiver\. Give what createReceiver returned/,
  ],
  ['undefined for a receiver', { receiver: undefined }, /receiver is not a receiver/],
  ['no registrations', { registrations: undefined }, /the receiver has other registrations, or none/],
  ['schedule', { schedule: { timeZone: 'UTC' } }, /schedule is not a function\. Give \(buy\) =>/],
  ['expectedDelayMs', { expectedDelayMs: -1 }, /expectedDelayMs: -1 is not a whole number from 0 to/],
  ['graceMs', { graceMs: 1.5 }, /graceMs: 1.5 is not a whole number from 0 to/],
  ['a number as a string', { graceMs: '5000' }, /graceMs: "5000" is a string, not a whole number/],
  ['callMs', { callMs: 0 }, /callMs: 0 is not a whole number from 1 to 300000/],
  ['callMs over half the longest lease', { callMs: 300_001 }, /callMs: 300001 is not a whole number from 1/],
  ['perSeller', { perSeller: 0 }, /perSeller: 0/],
  ['snapshotMs under a minute', { snapshotMs: 59_999 }, /snapshotMs: 59999 is not a whole number from 60000/],
  ['concurrency', { concurrency: Number.NaN }, /concurrency: NaN/],
  ['keepMs under a day', { keepMs: 86_399_999 }, /keepMs: 86399999 is not a whole number from 86400000 to/],
  ['ours', { ours: { spend: 1 } }, /ours is not a function\. Give async \(buy\) => \(\{ impressions, spend/],
  [
    'a tolerance that is a number',
    { tolerance: 0.02 },
    /tolerance: is not an object\. Known: impressions, spend/,
  ],
  ['a tolerance of clicks', { tolerance: { clicks: 0 } }, /tolerance: clicks is not known/],
  [
    'a tolerance in percent',
    { tolerance: { spend: 2 } },
    /tolerance\.spend: 2 is not a number from 0 to 1\. 2 % is/,
  ],
  ['a tolerance below 0', { tolerance: { spend: -0.1 } }, /tolerance\.spend: -0\.1 is not a number from 0/],
  [
    'a tolerance as a string',
    { tolerance: { impressions: '0.02' } },
    /tolerance\.impressions: "0\.02" is a string,/,
  ],
  ['a tolerance that is NaN', { tolerance: { impressions: Number.NaN } }, /impressions: NaN is not a number/],
];

describe('createReconciler', () => {
  it.each(WRONG)('refuses at once, with the fix: %s', async (_what, change, message) => {
    const options = await given();
    const make = (): unknown => createReconciler({ ...options, ...change });
    expect(make).toThrow(ConfigError);
    expect(make).toThrow(message);
  });

  it('refuses options that are no object', () => {
    expect(() => createReconciler(undefined as never)).toThrow(/createReconciler: is not an object/);
  });

  it('refuses a receiver that has other registrations, or none', async () => {
    const options = await given();
    const other = await given();
    const without = await testReceiver();
    onTestFinished(() => without.receiver.stop());
    for (const { receiver } of [other, without]) {
      expect(() => createReconciler({ ...options, receiver })).toThrow(/Give both the same/);
    }
  });

  it('refuses registrations without a client', async () => {
    const store = memoryStore();
    const baseUrl = 'https://buyer.example';
    const registrations = createRegistrations({ store, baseUrl, secrets: [NEWEST] });
    const { receiver } = await testReceiver({ store, registrations });
    onTestFinished(() => receiver.stop());
    const make = (): unknown => createReconciler({ receiver, registrations });
    expect(make).toThrow(ConfigError);
    expect(make).toThrow(/createReconciler: .*call/);
  });

  it('refuses registrations that are a copy', async () => {
    const { registrations } = await given();
    const { receiver } = await given();
    const copy = { ...registrations };
    expect(() => createReconciler({ receiver, registrations: copy })).toThrow(ConfigError);
  });

  it('takes the least that it may keep, and the tolerances at their edges', async () => {
    const options = await given();
    const tolerance = { impressions: 0, spend: 1 };
    expect(() => createReconciler({ ...options, keepMs: 86_400_000, tolerance })).not.toThrow();
  });

  it('starts and stops, several times, and disposes of itself', async () => {
    const options = await given();
    const reconciler = createReconciler(options);
    expect(reconciler.ready).toBe(options.receiver.ready);
    await Promise.all([reconciler.start(), reconciler.start()]);
    await reconciler.stop();
    await reconciler.start();
    await reconciler[Symbol.asyncDispose]();
    await reconciler.stop();
  });
});

const QUERIES: readonly (readonly [string, object | null, RegExp])[] = [
  ['a name that is not known', { sender: 'a' }, /account: sender is not known\. Known: agentUrl,/],
  ['no object', null, /account: is not an object/],
  ['a media buy without its seller', { mediaBuyId: 'buy-1' }, /mediaBuyId needs agentUrl/],
  ['a limit of nothing', { limit: 0 }, /account: limit: 0 is not a whole number from 1 to 1000/],
  ['a limit over a thousand', { limit: 1001 }, /account: limit: 1001/],
  ['since, as a date', { since: '2026-03-01' }, /account: since: "2026-03-01" is a string/],
  ['since, as no number', { since: Number.NaN }, /account: since: NaN/],
  ['an after that no page gave', { after: 'bad' }, /after: is not the next of an earlier page/],
];

describe('account', () => {
  it.each(QUERIES)('rejects %s', async (_what, query, message) => {
    const reconciler = createReconciler(await given());
    const asked = reconciler.account(query as AccountQuery);
    await expect(asked).rejects.toThrow(ConfigError);
    await expect(asked).rejects.toThrow(message);
  });
});
