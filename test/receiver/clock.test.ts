import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { Fault, type ReceiverOptions } from '../../src/index.ts';
import { generateKey, type KeyPair } from '../../src/sender/sign.ts';
import { memoryStore } from '../../src/stores/memory.ts';
import { createMemoryState } from '../../src/stores/for-tests.ts';
import { createFakeSeller } from '../../src/testing/index.ts';
import { DOORS } from '../adapters/contract/doors.ts';
import { testReceiver, payloads, said, type TestReceiver } from './setup.ts';

const SKEWED = 'unavailable clock_skew 503';
const OUTSIDE = 'refused webhook_signature_window_invalid 401';
const ACCEPTED = 'accepted 200';
const MINUTE = 60_000;
const YEAR = 365 * 24 * 60 * MINUTE;

/** The true time; sellers sign by it. */
const START = Date.parse('2026-03-01T12:00:00Z');

// Between two looks at the machine's clock nothing passes, so that those of the tests are right to the millisecond.
beforeEach(() => void vi.useFakeTimers({ toFake: ['Date'] }));
afterEach(() => void vi.useRealTimers());

interface Skewed extends TestReceiver {
  /** What the machine's clock is ahead of the true one. */
  skew: number;
  /** The true one. */
  time: number;
  storeAsked: number;
}

interface Setting {
  /** The store has a clock of its own, which is right. */
  readonly storeClock?: boolean;
  readonly skew?: number;
}

/** A receiver whose machine's clock is wrong. */
async function skewedSetup(
  { storeClock = true, skew = 0 }: Setting,
  more: Partial<ReceiverOptions> = {},
): Promise<Skewed> {
  const at = { skew, time: START, storeAsked: 0 };
  const state = createMemoryState();
  const plain = memoryStore({ state, clockOffsetMs: () => at.time - Date.now() });
  const clock = async (): Promise<number> => {
    at.storeAsked += 1;
    return at.time;
  };
  const made = await testReceiver({
    store: storeClock ? { ...plain, clock } : plain,
    now: () => at.time + at.skew,
    state,
    ...more,
  });
  return Object.assign(at, {
    ...made,
    sign: (payload: Parameters<TestReceiver['sign']>[0], changes = {}) =>
      made.sign(payload, { now: () => at.time, ...changes }),
    deliver: async (payload: Parameters<TestReceiver['deliver']>[0], changes = {}) =>
      made.send(await made.sign(payload, { now: () => at.time, ...changes })),
  });
}

const completed = (): ReturnType<typeof payloads.tool> => payloads.tool('completed');

describe('retentionMs', () => {
  it('is a day where it is not said: a copy is known until then, and no longer', async () => {
    const at = await skewedSetup({});
    const event = completed();
    expect(said(await at.deliver(event))).toBe(ACCEPTED);
    at.time += 24 * 60 * MINUTE - 1;
    expect(said(await at.deliver(event))).toBe('duplicate 200');
    at.time += 1;
    expect(said(await at.deliver(event))).toBe(ACCEPTED);
  });
});

describe('our clock is wrong and the store has a clock (verification.md §2.35)', () => {
  it.each([
    ['10 min slow', -10 * MINUTE],
    ['7 min fast', 7 * MINUTE],
    ['thirty years slow', -30 * YEAR],
    ['a hundred years ahead', 100 * YEAR],
  ])('%s: 503 and the offset, for a burst too; accepted once the clock is right', async (_, skew) => {
    const made = await skewedSetup({ skew });
    const first = await made.sign(completed());
    const outcome = await made.send(first);
    expect(said(outcome)).toBe(SKEWED);
    expect(outcome.response.headers).toEqual({ 'Retry-After': '5' });
    expect(outcome).toMatchObject({ check: 5 });
    expect(made.alarms).toMatchObject([{ code: 'clock_skew', offsetMs: -skew }]);
    expect(made.alarms[0]?.message).toMatch(
      skew < 0 ? / behind, by the clock of the memory store/ : / ahead, by/,
    );
    const burst = await Promise.all(Array.from({ length: 20 }, () => made.deliver(completed())));
    expect(new Set(burst.map(said))).toEqual(new Set([SKEWED]));
    expect(made.storeAsked).toBe(1);
    expect(made.seen).toEqual([]);
    made.skew = 0;
    expect(said(await made.send(first))).toBe(ACCEPTED);
    // What is outside now is the seller's fault: the finding has ended, and the store's clock was asked again.
    made.time += MINUTE;
    expect(said(await made.deliver(completed(), { now: () => made.time - 10 * MINUTE }))).toBe(OUTSIDE);
    expect(made.storeAsked).toBe(2);
  });

  it('a burst of first deliveries asks the store once, and all get 503', async () => {
    const made = await skewedSetup({ skew: 10 * MINUTE });
    const burst = await Promise.all(Array.from({ length: 20 }, () => made.deliver(completed())));
    expect(new Set(burst.map(said))).toEqual(new Set([SKEWED]));
    expect(made.storeAsked).toBe(1);
  });

  it('the seller’s clock is wrong: 401, and the store is asked at most every 10 s', async () => {
    const made = await skewedSetup({});
    for (let second = 0; second < 9; second += 1) {
      expect(said(await made.deliver(completed(), { now: () => made.time + 10 * MINUTE }))).toBe(OUTSIDE);
      made.time += 1000;
    }
    expect(made.storeAsked).toBe(1);
  });

  it.each([
    [999, OUTSIDE],
    [1_000, SKEWED],
  ])('clocks %d ms apart: asking the store may take up to a second', async (skew, answer) => {
    const made = await skewedSetup({ skew });
    made.time -= skew;
    const edge = await made.sign(completed(), { now: () => START - 360_000 });
    // Its 300 s and 60 s of tolerance ended 1 ms ago, by our clock alone.
    made.time += 1;
    expect(said(await made.send(edge))).toBe(answer);
    expect(made.alarms.some(({ proved }) => proved === true)).toBe(answer === SKEWED);
  });

  it('an old delivery that is sent again is refused, whatever our clock says', async () => {
    const made = await skewedSetup({ skew: 10 * MINUTE });
    const captured = await made.sign(completed());
    made.time += 20 * MINUTE;
    expect(said(await made.send(captured))).toBe(OUTSIDE);
    // One that finds nothing is the sender's for a second.
    made.time += 1000;
    expect(said(await made.deliver(completed()))).toBe(SKEWED);
    expect(said(await made.send(captured))).toBe(OUTSIDE);
  });

  it('the store’s clock cannot be read: 503', async () => {
    let away = true;
    const store = {
      ...memoryStore(),
      clock: () => (away ? Promise.reject(new Fault('store_unavailable', 'away')) : Promise.resolve(START)),
    };
    const made = await skewedSetup({ skew: 10 * MINUTE }, { store });
    const burst = await Promise.all(Array.from({ length: 5 }, () => made.deliver(completed())));
    expect(new Set(burst.map(said))).toEqual(new Set(['unavailable store_unavailable 503']));
    away = false;
    expect(said(await made.deliver(completed()))).toBe(SKEWED);
  });

  it.each([Number.NaN, Number.POSITIVE_INFINITY])('a store clock of %d is not a time', async (told) => {
    const store = { ...memoryStore(), clock: () => Promise.resolve(told) };
    const made = await skewedSetup({ skew: 10 * MINUTE }, { store });
    expect(said(await made.deliver(completed()))).toBe(OUTSIDE);
  });

  it('unavailable keys leave it open too: with a clock wrong by years every certificate is invalid', async () => {
    await using seller = await createFakeSeller({ now: () => START });
    seller.faults.set('*', 'down');
    const more = { senders: [seller.sender], allowLoopback: true };
    const made = await skewedSetup({ skew: -30 * YEAR }, more);
    expect(said(await made.deliver(completed(), { key: seller.keys.ed25519.privateJwk }))).toBe(SKEWED);
    const right = await skewedSetup({}, more);
    expect(
      said(
        await right.deliver(completed(), { key: seller.keys.ed25519.privateJwk, now: () => START - YEAR }),
      ),
    ).toBe(OUTSIDE);
  });

  it.each(DOORS)('through $name', async (door) => {
    const made = await skewedSetup({ skew: 10 * MINUTE });
    await using open = await door.open(made.receiver);
    const { body, headers } = await made.sign(completed());
    const lines: [string, string][] = [['Host', 'buyer.example'], ...Object.entries(headers)];
    const request = { method: 'POST', target: '/webhooks/proto', headers: lines, body };
    expect((await open.ask(request)).status).toBe(503);
    made.skew = 0;
    expect((await open.ask(request)).status).toBe(200);
  });
});

describe('our clock is wrong, and only senders can show it', () => {
  const agent = (index: number): string => `https://seller-${index}.example/mcp`;
  let keys: readonly KeyPair[] = [];
  const sellers = async (count = 4): Promise<Pick<ReceiverOptions, 'senders'>> => {
    keys = await Promise.all(
      Array.from({ length: count }, (_, index) =>
        generateKey('ed25519', 'webhook-signing', { kid: `k-${index}` }),
      ),
    );
    return { senders: keys.map(({ publicJwk }, index) => ({ agentUrl: agent(index), pins: [publicJwk] })) };
  };
  const of = (index: number) => ({ key: keys[index]?.privateJwk ?? {} });

  it.each([
    ['slow', -61_000],
    ['slow', -200_000],
    ['slow', -360_000],
    ['slow', -90 * MINUTE],
    ['fast', 10 * MINUTE],
  ])('one seller: %s by %d ms, 503 with the figure from the third in a row on', async (side, skew) => {
    const made = await skewedSetup({ storeClock: false, skew }, await sellers(1));
    for (const count of [1, 2]) {
      expect(said(await made.deliver(completed(), of(0))), String(count)).toBe(OUTSIDE);
      made.time += 20 * MINUTE;
    }
    made.alarms.length = 0;
    const third = await made.deliver(completed(), of(0));
    expect(said(third)).toBe(SKEWED);
    expect(third).toMatchObject({ check: 5 });
    expect(made.alarms).toMatchObject([{ code: 'clock_skew', offsetMs: -skew, proved: false }]);
    const where = side === 'slow' ? 'ahead of' : 'behind';
    expect(made.alarms[0]?.message).toContain(`${Math.abs(skew) / 1000} s ${where} this machine's clock`);
    expect(made.alarms[0]?.message).toContain('replay');
    expect(said(await made.deliver(completed(), of(0)))).toBe(SKEWED);
    expect(made.seen).toEqual([]);
    made.skew = 0;
    expect(said(await made.deliver(completed(), of(0)))).toBe(ACCEPTED);
  });

  it('several in one burst count each: the third of them, and all behind it, are 503', async () => {
    const made = await skewedSetup({ storeClock: false, skew: -2 * MINUTE }, await sellers(1));
    const burst = await Promise.all(Array.from({ length: 12 }, () => made.deliver(completed(), of(0))));
    const told = burst.map(said).toSorted((a, b) => a.localeCompare(b));
    expect(told).toEqual([OUTSIDE, OUTSIDE, ...Array.from({ length: 10 }, () => SKEWED)]);
  });

  it('three sellers are a row too, and with it all are 503, until one is inside', async () => {
    const made = await skewedSetup({ storeClock: false, skew: 10 * MINUTE }, await sellers());
    for (const index of [0, 1]) {
      expect(said(await made.deliver(completed(), of(index)))).toBe(OUTSIDE);
      made.time += 4 * MINUTE;
    }
    for (const index of [2, 3, 0, 1]) expect(said(await made.deliver(completed(), of(index)))).toBe(SKEWED);
    made.skew = 0;
    expect(said(await made.deliver(completed(), of(0)))).toBe(ACCEPTED);
    const late = { ...of(1), now: () => made.time - 10 * MINUTE };
    for (let count = 0; count < 5; count += 1) {
      expect(said(await made.deliver(completed(), late))).toBe(OUTSIDE);
      made.time += MINUTE;
    }
  });

  it('one that is late by the corrected clock too is 401, and does not end what was found', async () => {
    const made = await skewedSetup({ storeClock: false, skew: 10 * MINUTE }, await sellers(1));
    const signed = async (offMs = 0): Promise<string> =>
      said(await made.deliver(completed(), { ...of(0), now: () => made.time + offMs }));
    expect([await signed(), await signed(), await signed()]).toEqual([OUTSIDE, OUTSIDE, SKEWED]);
    expect(await signed(20 * MINUTE)).toBe(OUTSIDE);
    expect(await signed()).toBe(SKEWED);
  });

  it('one of another amount begins a new row', async () => {
    const made = await skewedSetup({ storeClock: false, skew: 10 * MINUTE }, await sellers());
    const signed = async (offMs: number): Promise<string> => {
      made.time += MINUTE;
      return said(await made.deliver(completed(), { ...of(0), now: () => made.time + offMs }));
    };
    for (const offMs of [0, 61_000, 0, -59_000, 2_000, -58_000, 3_000, 20_000]) {
      expect(await signed(offMs), String(offMs)).toBe(OUTSIDE);
    }
    expect(await signed(0)).toBe(SKEWED);
  });

  it('with one inside within 10 min the others get 401, whoever signed it', async () => {
    const made = await skewedSetup({ storeClock: false }, await sellers());
    expect(said(await made.deliver(completed(), of(3)))).toBe(ACCEPTED);
    for (const index of [0, 1, 2, 0, 0]) {
      made.time += MINUTE;
      const late = { ...of(index), now: () => made.time - 10 * MINUTE };
      expect(said(await made.deliver(completed(), late))).toBe(OUTSIDE);
    }
  });

  it('one inside ends a row, and speaks for the clock for 10 min; a clock that is set back is found', async () => {
    const made = await skewedSetup({ storeClock: false, skew: 90 * MINUTE }, await sellers());
    for (const index of [0, 0]) expect(said(await made.deliver(completed(), of(index)))).toBe(OUTSIDE);
    made.skew = 0;
    expect(said(await made.deliver(completed(), of(0)))).toBe(ACCEPTED);
    made.time += 10 * MINUTE;
    made.skew = -90 * MINUTE;
    for (const index of [0, 0]) expect(said(await made.deliver(completed(), of(index)))).toBe(OUTSIDE);
    expect(said(await made.deliver(completed(), of(0)))).toBe(SKEWED);
  });

  it('a store whose clock agrees: three operators have to be in the row', async () => {
    const made = await skewedSetup({}, await sellers());
    const late = (index: number) => ({ ...of(index), now: () => made.time - 10 * MINUTE });
    for (const index of [0, 0, 0, 1])
      expect(said(await made.deliver(completed(), late(index)))).toBe(OUTSIDE);
    expect(said(await made.deliver(completed(), late(2)))).toBe(SKEWED);
  });

  it('a store whose clock agrees: three agents of one operator are one', async () => {
    const { senders } = await sellers(3);
    const one = 'https://setup.example/.well-known/brand.json';
    const together = Array.isArray(senders)
      ? senders.map((sender) => ({ ...sender, brandJsonUrl: one }))
      : senders;
    const made = await skewedSetup({}, { senders: together });
    for (const index of [0, 1, 2]) {
      const late = { ...of(index), now: () => made.time - 10 * MINUTE };
      expect(said(await made.deliver(completed(), late))).toBe(OUTSIDE);
    }
  });

  it('unauthenticated requests do not count', async () => {
    const made = await skewedSetup({ storeClock: false, skew: 10 * MINUTE }, await sellers());
    const strangers = await Promise.all(
      [0, 1, 2, 3].map((index) => generateKey('ed25519', 'webhook-signing', { kid: `k-${index}` })),
    );
    for (const { privateJwk } of strangers) {
      expect(said(await made.deliver(completed(), { key: privateJwk }))).toBe(OUTSIDE);
    }
    for (const { privateJwk } of strangers) {
      expect(said(await made.deliver(completed(), { key: { ...privateJwk, kid: 'unknown' } }))).toBe(OUTSIDE);
    }
  });
});

describe('windows that are invalid by any clock', () => {
  it.each([
    ['milliseconds', START, START + 300],
    ['both in milliseconds', START, START + 300_000],
    ['expires before created', START / 1000 + 600, START / 1000 + 300],
    ['a day long', START / 1000 - 600, START / 1000 + 86_400],
    ['the largest integers', 999_999_999_999_699, 999_999_999_999_999],
    ['the least', -999_999_999_999_999, -999_999_999_999_699],
    ['zero', 0, 300],
  ])('%s: 401', async (_, created, expires) => {
    for (const storeClock of [true, false]) {
      const made = await skewedSetup({ storeClock });
      expect(said(await made.deliver(completed(), { params: { created, expires } }))).toBe(OUTSIDE);
    }
  });
});
