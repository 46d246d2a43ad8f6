import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { memoryStore } from '../../src/stores/memory.ts';
import { createMemoryState } from '../../src/stores/for-tests.ts';
import { AGENT, testReceiver, payloads, said } from './setup.ts';

/** A receiver whose handler fails until it is mended, and a store whose clock the test moves. */
async function failing() {
  const state = createMemoryState();
  let offsetMs = 0;
  let broken = true;
  const built = await testReceiver({
    state,
    store: memoryStore({ state, clockOffsetMs: () => offsetMs }),
    // A step lasts half a minute.
    retry: { baseMs: 60_000, maxMs: 60_000 },
    handler: () => {
      if (broken) throw new Error('down');
    },
  });
  return {
    ...built,
    mend: () => {
      broken = false;
    },
    advance: (ms: number) => {
      offsetMs += ms;
    },
  };
}

beforeEach(() => {
  // Of the back-off's jitter: half of what a step can be.
  vi.spyOn(Math, 'random').mockReturnValue(0);
});

afterEach(() => {
  vi.restoreAllMocks();
});

describe('captured bytes that are sent again while a handler fails', () => {
  it('twelve concurrent copies: not DEAD, one attempt, and the seller’s own retry is handled', async () => {
    const { sign, send, deliver, seen, alarms, receiver, mend } = await failing();
    const payload = payloads.tool('completed');
    const captured = await sign(payload);
    const outcomes = await Promise.all(Array.from({ length: 12 }, () => send(captured)));
    expect(outcomes.map(({ response }) => response.status)).toEqual(Array(12).fill(503));
    expect(outcomes.filter(({ code }) => code === 'handler_failed')).toHaveLength(1);
    const record = await receiver.inbox.inspect(AGENT, payload.idempotency_key);
    expect(record).toMatchObject({ state: 'queued', attempts: 1 });
    mend();
    expect(said(await deliver(payload))).toBe('accepted 200');
    expect(seen).toHaveLength(2);
    expect(alarms).toEqual([]);
  });

  it('get in_flight with Retry-After, then continue the event like the seller’s retry', async () => {
    const { sign, send, mend, advance, seen } = await failing();
    const captured = await sign(payloads.tool('completed'));
    expect(said(await send(captured))).toBe('unavailable handler_failed 503');
    const again = await send(captured);
    expect(said(again)).toBe('unavailable in_flight 503');
    expect(again.response.headers).toEqual({ 'Retry-After': '30' });
    expect(seen).toHaveLength(1);
    mend();
    advance(30_000);
    expect(said(await send(captured))).toBe('accepted 200');
    expect(said(await send(captured))).toBe('refused webhook_signature_replayed 401');
  });
});
