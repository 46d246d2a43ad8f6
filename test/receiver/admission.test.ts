import { describe, expect, it, vi } from 'vitest';
import { createReceiver, type Store } from '../../src/index.ts';
import { memoryStore } from '../../src/stores/memory.ts';
import { createMemoryState } from '../../src/stores/for-tests.ts';
import { signDelivery } from '../../src/sender/sign.ts';
import { acceptRequest } from '../stores/requests.ts';
import { AGENT, gate, heldHandler, testReceiver, payloads, said, sellerKey, type Signed } from './setup.ts';

const at = (iso: string) => ({ timestamp: iso });

describe('retries, replays and duplicates', () => {
  it('a retry with a fresh nonce is a duplicate: 200, and the handler does not run again', async () => {
    const { deliver, seen } = await testReceiver();
    const payload = payloads.tool('completed');
    expect(said(await deliver(payload))).toBe('accepted 200');
    expect(await deliver(payload)).toMatchObject({ kind: 'duplicate', state: 'applied', changed: false });
    expect(seen).toHaveLength(1);
  });

  it('the same bytes are replayed once the event is safe, and processed after our 503', async () => {
    let broken = true;
    const { sign, send, seen } = await testReceiver({
      // No back-off step: within one they wait.
      retry: { baseMs: 1 },
      handler: () => {
        if (broken) throw new Error('down');
      },
    });
    const signed = await sign(payloads.tool('completed'));
    expect(said(await send(signed))).toBe('unavailable handler_failed 503');
    broken = false;
    expect(said(await send(signed))).toBe('accepted 200');
    const replay = await send(signed);
    expect(said(replay)).toBe('refused webhook_signature_replayed 401');
    expect(replay).toMatchObject({ check: 12 });
    expect(seen).toHaveLength(2);
  });

  it('the same bytes are replayed until the last millisecond of their window', async () => {
    vi.useFakeTimers({ toFake: ['Date'] });
    try {
      const { sign, send } = await testReceiver();
      const nowMs = 1_800_000_000_000;
      vi.setSystemTime(nowMs);
      const signed = await sign(payloads.tool('completed'));
      expect(said(await send(signed))).toBe('accepted 200');
      vi.setSystemTime(nowMs + 360_000);
      expect(said(await send(signed))).toBe('refused webhook_signature_replayed 401');
      vi.setSystemTime(nowMs + 360_001);
      expect(said(await send(signed))).toBe('refused webhook_signature_window_invalid 401');
    } finally {
      vi.useRealTimers();
    }
  });

  it('a changed payload under a used key is dropped with 200 and an alarm (editions 3.0, 3.1)', async () => {
    const { deliver, seen, alarms } = await testReceiver();
    const payload = payloads.tool('completed');
    await deliver(payload);
    expect(await deliver({ ...payload, message: 'other' })).toMatchObject({
      kind: 'duplicate',
      changed: true,
    });
    expect(seen).toHaveLength(1);
    expect(alarms.map(({ code }) => code)).toEqual(['payload_changed']);
  });

  it('a changed payload is 409 in edition 3.2, other white space is not a change there', async () => {
    const { deliver, seen } = await testReceiver({ edition: '3.2' });
    const payload = payloads.tool('completed');
    await deliver(payload);
    const changed = await deliver({ ...payload, message: 'other' });
    expect(said(changed)).toBe('refused payload_changed 409');
    expect(said(await deliver(JSON.stringify(payload, null, 2)))).toBe('duplicate 200');
    expect(seen).toHaveLength(1);
  });

  it('the handler gets the stored first copy when the first run failed and the retry differs', async () => {
    let broken = true;
    const { deliver, seen } = await testReceiver({
      handler: () => {
        if (broken) throw new Error('down');
      },
    });
    const payload = payloads.tool('completed');
    await deliver(payload);
    broken = false;
    expect(await deliver({ ...payload, message: 'other' })).toMatchObject({
      kind: 'accepted',
      changed: true,
    });
    expect(seen.map(({ event }) => event.message)).toEqual([payload.message, payload.message]);
  });

  it('64 deliveries of one event at once run the handler once and are all answered 200', async () => {
    const { deliver, seen } = await testReceiver();
    const payload = payloads.tool('completed');
    const outcomes = await Promise.all(Array.from({ length: 64 }, () => deliver(payload)));
    expect(outcomes.map(({ response }) => response.status)).toEqual(Array(64).fill(200));
    expect(outcomes.filter(({ kind }) => kind === 'accepted')).toHaveLength(1);
    expect(seen).toHaveLength(1);
  });

  it('a seller that signs under ever new key ids fills 256 places of the store and no more, and each nonce counts once', async () => {
    const { privateJwk, publicJwk } = await sellerKey();
    const kids = Array.from({ length: 300 }, (_, n) => `key-${n}`);
    const pins = kids.map((kid) => ({ ...publicJwk, kid }));
    const at = await testReceiver({ senders: [{ agentUrl: AGENT, pins }] });
    const nonce = 'one-nonce-of-all-of-them';
    const kinds = new Set<string>();
    let last: Signed | undefined;
    for (const [n, kid] of kids.entries()) {
      const payload = payloads.tool('completed', {
        idempotency_key: `the-key-of-event-${n}`,
        task_id: `task-${n}`,
      });
      last = await at.sign(payload, { key: { ...privateJwk, kid }, nonce });
      kinds.add(said(await at.send(last)));
    }
    expect(kinds).toEqual(new Set(['accepted 200']));
    expect(at.state.senders.get(AGENT)?.nonces.size).toBeLessThanOrEqual(256);
    expect(at.state.allNonces).toBe(300);
    expect(await at.send(last ?? expect.fail('signed'))).toMatchObject({
      code: 'webhook_signature_replayed',
    });
  });

  it('two receivers with different publicUrl on one store share the keyspace (contract.md §9.2)', async () => {
    const state = createMemoryState();
    const { deliver, seen } = await testReceiver({ state });
    const key = await sellerKey();
    const elsewhere = 'https://buyer.example/tenant-2/hook';
    const other = createReceiver({
      publicUrl: elsewhere,
      senders: [{ agentUrl: AGENT, pins: [key.publicJwk] }],
      store: memoryStore({ state }),
      durability: { require: 'process' },
      handlers: { other: () => expect.fail('a duplicate is a no-op') },
    });
    const payload = payloads.tool('completed');
    await deliver(payload);
    const signed = await signDelivery({ url: elsewhere, body: payload, key: key.privateJwk });
    expect(said(await other.verifyAndDispatch(signed.body, signed.headers))).toBe('duplicate 200');
    expect(seen).toHaveLength(1);
  });
});

describe('an event whose first copy is still running', () => {
  it('is waited for, then answered 200', async () => {
    const { handler, started, release } = heldHandler();
    const { deliver, seen } = await testReceiver({
      handler,
    });
    const payload = payloads.tool('completed');
    const first = deliver(payload);
    await started;
    const second = deliver(payload);
    release();
    expect(said(await first)).toBe('accepted 200');
    expect(said(await second)).toBe('duplicate 200');
    expect(seen).toHaveLength(1);
  });

  it('is handled by the waiting delivery when the first run fails', async () => {
    const { handler, started, release } = heldHandler();
    let runs = 0;
    const { deliver } = await testReceiver({
      handler: async () => {
        runs += 1;
        if (runs > 1) return;
        await handler();
        throw new Error('first copy failed');
      },
    });
    const payload = payloads.tool('completed');
    const first = deliver(payload);
    await started;
    const second = deliver(payload);
    release();
    expect(said(await first)).toBe('unavailable handler_failed 503');
    expect(said(await second)).toBe('accepted 200');
  });

  it('is 503 when waitMs is over, and at once in edition 3.2', async () => {
    for (const [options, wait] of [
      [{ advanced: { waitMs: 0 } }, 0],
      [{ edition: '3.2' as const, advanced: { waitMs: 60_000 } }, 0],
    ] as const) {
      const { handler, started, release } = heldHandler();
      const { deliver } = await testReceiver({
        ...options,
        handler,
      });
      const payload = payloads.tool('completed');
      const first = deliver(payload);
      await started;
      expect(said(await deliver(payload)), String(wait)).toBe('unavailable in_flight 503');
      release();
      expect(said(await first)).toBe('accepted 200');
    }
  });

  it('another event of its task is 503 task_busy when waitMs is over, and runs on the retry', async () => {
    const { handler, started, release } = heldHandler();
    let running = 0;
    const { deliver, seen } = await testReceiver({
      advanced: { waitMs: 0 },
      handler: async () => {
        running += 1;
        expect(running).toBe(1);
        await handler();
        running -= 1;
      },
    });
    const first = deliver(payloads.tool('working', { task_id: 't', ...at('2026-01-01T00:00:00Z') }));
    await started;
    const next = payloads.tool('completed', { task_id: 't', ...at('2026-01-01T00:01:00Z') });
    expect(said(await deliver(next))).toBe('unavailable task_busy 503');
    release();
    await first;
    expect(said(await deliver(next))).toBe('accepted 200');
    expect(seen).toHaveLength(2);
  });
});

describe('the handler deadline', () => {
  it('answers 503 and aborts the signal; the late completion answers the retry 200', async () => {
    const { opened, open } = gate();
    const { deliver, seen } = await testReceiver({ handlerDeadlineMs: 1, handler: () => opened });
    const payload = payloads.tool('completed');
    expect(said(await deliver(payload))).toBe('unavailable handler_timeout 503');
    expect(seen[0]?.ctx.signal.aborted).toBe(true);
    const retry = deliver(payload);
    open();
    expect(said(await retry)).toBe('duplicate 200');
    expect(seen).toHaveLength(1);
  });

  it('keeps the lease until the handler settles, so that two runs never overlap', async () => {
    const { opened, open } = gate();
    let offset = 0;
    let renewed = gate<string>();
    const state = createMemoryState();
    const store = memoryStore({ state, clockOffsetMs: () => offset });
    const { deliver, seen } = await testReceiver({
      store: {
        ...store,
        renew: async (request) => {
          const result = await store.renew(request);
          renewed.open(result);
          return result;
        },
      },
      handlerDeadlineMs: 1,
      leaseMs: 60_000,
      advanced: { renewMs: 1, waitMs: 0 },
      handler: () => opened,
    });
    const payload = payloads.tool('completed');
    expect(said(await deliver(payload))).toBe('unavailable handler_timeout 503');
    // Three times two thirds of a lease, each renewed in between: without renewal it would be over.
    for (let step = 0; step < 3; step += 1) {
      renewed = gate<string>();
      expect(await renewed.opened).toBe('renewed');
      offset += 40_000;
    }
    expect(said(await deliver(payload))).toBe('unavailable in_flight 503');
    expect(seen).toHaveLength(1);
    open();
  });

  it('when another process takes over an expired lease, the late owner changes nothing: 503 lease_lost', async () => {
    const { handler, started, release } = heldHandler();
    let offset = 0;
    const state = createMemoryState();
    const store = (): Store => memoryStore({ state, clockOffsetMs: () => offset });
    const here = await testReceiver({
      store: store(),
      advanced: { renewMs: 7_999 },
      handler,
    });
    const there = await testReceiver({ store: store() });
    const payload = payloads.tool('completed');
    const first = here.deliver(payload);
    await started;
    offset = 8_001;
    expect(said(await there.deliver(payload))).toBe('accepted 200');
    release();
    expect(said(await first)).toBe('unavailable lease_lost 503');
    expect([here.seen.length, there.seen.length]).toEqual([1, 1]);
  });

  it('an event that runs in a process is not started again there, whatever became of its lease', async () => {
    const { handler, started, release } = heldHandler();
    let offset = 0;
    const { deliver, receiver, seen } = await testReceiver({
      store: memoryStore({ clockOffsetMs: () => offset }),
      advanced: { renewMs: 7_999, waitMs: 1 },
      handler,
    });
    const payload = payloads.tool('completed');
    const first = deliver(payload);
    await started;
    offset = 8_001;
    expect(said(await deliver(payload))).toBe('unavailable in_flight 503');
    expect(await receiver.inbox.redrive(AGENT, payload.idempotency_key)).toBe('busy');
    expect(seen).toHaveLength(1);
    release();
    await first;
  });

  it('stop() waits for a delivery that is being handled', async () => {
    const { handler, started, release } = heldHandler();
    const { receiver, deliver } = await testReceiver({
      handler,
    });
    const first = deliver(payloads.tool('completed'));
    await started;
    const stopped = receiver.stop();
    expect(said(await deliver(payloads.tool('completed')))).toBe('unavailable shutting_down 503');
    release();
    expect(said(await first)).toBe('accepted 200');
    await stopped;
  });
});

describe('ordering (admission.md §5)', () => {
  it('an older status of a task is stale: 200, not handled', async () => {
    const { deliver, seen } = await testReceiver();
    await deliver(payloads.tool('completed', { task_id: 't', ...at('2026-01-01T00:00:01.5Z') }));
    const older = payloads.tool('working', { task_id: 't', ...at('2026-01-01T00:00:01.49999Z') });
    expect(said(await deliver(older))).toBe('stale 200');
    expect(await deliver(older)).toMatchObject({ kind: 'duplicate', state: 'stale' });
    expect(seen).toHaveLength(1);
  });

  it('the same instant with another offset is equal, and applied', async () => {
    const { deliver } = await testReceiver();
    await deliver(payloads.tool('working', { task_id: 't', ...at('2026-01-01T00:00:00Z') }));
    expect(
      said(await deliver(payloads.tool('working', { task_id: 't', ...at('2026-01-01T02:00:00+02:00') }))),
    ).toBe('accepted 200');
  });

  it('a later non-terminal status is handled with the warning after_terminal', async () => {
    const { deliver, seen } = await testReceiver();
    await deliver(payloads.tool('completed', { task_id: 't', ...at('2026-01-01T00:00:00Z') }));
    await deliver(payloads.tool('working', { task_id: 't', ...at('2026-01-01T00:00:01Z') }));
    expect(seen[1]?.event.warnings.map(({ code }) => code)).toEqual(['after_terminal']);
  });

  it('a second terminal status, newer, is handled and raises an alarm', async () => {
    const { deliver, seen, alarms } = await testReceiver();
    await deliver(payloads.tool('completed', { task_id: 't', ...at('2026-01-01T00:00:00Z') }));
    await deliver(payloads.tool('failed', { task_id: 't', ...at('2026-01-01T00:00:01Z') }));
    expect(seen[1]?.event.warnings.map(({ code }) => code)).toEqual(['second_terminal_status']);
    expect(alarms).toMatchObject([
      { code: 'second_terminal_status', taskId: 't', message: expect.stringContaining('its handler runs') },
    ]);
  });

  it('a status that nobody knows goes to other and is counted by an alarm', async () => {
    const { deliver, seen, alarms } = await testReceiver();
    for (const status of ['reviewing', 'unknown', 'reviewing']) {
      expect(said(await deliver({ ...payloads.tool('working'), status }))).toBe('accepted 200');
    }
    expect(seen.map(({ event }) => event.kind)).toEqual(['other', 'other', 'other']);
    expect(alarms).toMatchObject([{ code: 'nonconforming_sender', warning: 'unknown_status' }]);
  });

  it.each([
    ['3.0', []],
    ['3.1', ['missing_operation_id']],
  ] as const)('edition %s: without operation_id the warnings are %j', async (edition, codes) => {
    const { deliver, seen } = await testReceiver({ edition });
    await deliver(payloads.tool('completed', { operation_id: undefined }));
    expect(seen[0]?.event.warnings.map(({ code }) => code)).toEqual(codes);
  });

  it('reports are never stale, whatever their task_id and timestamp', async () => {
    const { deliver, seen } = await testReceiver();
    await deliver(payloads.report('scheduled', {}, { task_id: 't', ...at('2026-01-02T00:00:00Z') }));
    expect(
      said(await deliver(payloads.report('scheduled', {}, { task_id: 't', ...at('2026-01-01T00:00:00Z') }))),
    ).toBe('accepted 200');
    expect(seen).toHaveLength(2);
  });

  it('a report after the final one of its media buy is handled, with a warning and an alarm', async () => {
    const { deliver, seen, alarms } = await testReceiver();
    await deliver(payloads.report('scheduled'));
    const final = payloads.report('final');
    await deliver(final);
    await deliver(final);
    expect(alarms).toEqual([]);
    await deliver(payloads.report('adjusted'));
    await deliver(payloads.report('scheduled', { media_buy_deliveries: [{ media_buy_id: 'mb_2' }] }));
    expect(seen.map(({ event }) => event.warnings.map(({ code }) => code))).toEqual([
      [],
      [],
      ['report_after_final'],
      [],
    ]);
    expect(alarms).toMatchObject([{ code: 'nonconforming_sender', warning: 'report_after_final' }]);
  });

  it('a report after the final one is noticed for each of a hundred media buys', async () => {
    const { deliver, alarms } = await testReceiver();
    const buys = Array.from({ length: 101 }, (_, n) => ({ media_buy_id: `mb_${n}` }));
    await deliver(payloads.report('final', { media_buy_deliveries: buys }));
    await deliver(payloads.report('scheduled', { media_buy_deliveries: buys.slice(100) }));
    expect(alarms).toEqual([]);
    await deliver(payloads.report('scheduled', { media_buy_deliveries: buys.slice(99, 100) }));
    expect(alarms).toMatchObject([{ code: 'nonconforming_sender', warning: 'report_after_final' }]);
  });

  it('a timestamp far ahead raises an alarm and does not move the mark', async () => {
    const { deliver, alarms } = await testReceiver();
    await deliver(payloads.tool('working', { task_id: 't', ...at('2999-01-01T00:00:00Z') }));
    expect(alarms.map(({ code }) => code)).toEqual(['timestamp_ahead']);
    expect(said(await deliver(payloads.tool('completed', { task_id: 't' })))).toBe('accepted 200');
  });

  it('a notification_id under another key is a re-emission', async () => {
    const { deliver, seen } = await testReceiver();
    const first = payloads.family('impairment');
    await deliver(first);
    await deliver({ ...first, idempotency_key: crypto.randomUUID() });
    expect(seen.map(({ event }) => event.reemission)).toEqual([false, true]);
  });

  it.each(['\u0000', '\ud800', 'x'.repeat(100_000)])('takes any task_id (%#)', async (task_id) => {
    const { deliver, seen } = await testReceiver();
    expect(said(await deliver(payloads.tool('completed', { task_id })))).toBe('accepted 200');
    expect(seen[0]?.event.taskId).toBe(task_id);
  });
});

describe('stop()', () => {
  it('ends the renewals of a handler that never settles', async () => {
    const renewals: number[] = [];
    const store = memoryStore();
    const { receiver, deliver } = await testReceiver({
      store: {
        ...store,
        renew: async (request) => {
          renewals.push(1);
          return store.renew(request);
        },
      },
      handlerDeadlineMs: 1,
      leaseMs: 8,
      advanced: { renewMs: 1 },
      handler: () => new Promise(() => {}),
    });
    await deliver(payloads.tool('completed'));
    await receiver.stop();
    const after = renewals.length;
    // Ten more periods of the renewal: a timer that still ran would have fired.
    for (let turn = 0; turn < 10; turn += 1) await new Promise((resolve) => setTimeout(resolve, 1));
    expect(renewals).toHaveLength(after);
  });
});

describe('an accept of an event without attempts left', () => {
  it('answers 200, so that the seller stops, and raises the alarm dead', async () => {
    const state = createMemoryState();
    let offsetMs = 0;
    const store = memoryStore({ state, clockOffsetMs: () => offsetMs });
    const payload = payloads.report();
    // Two processes that died with the event in their hands: the second knew it for a suspect.
    for (let process = 0; process < 2; process += 1) {
      const { nonce: _nonce, ...request } = acceptRequest({ key: payload.idempotency_key, sender: AGENT });
      await store.accept({ ...request, leaseMs: 1_000 });
      offsetMs += 1_001;
    }
    const { deliver, alarms, seen } = await testReceiver({ store, retry: { crashes: 1 } });
    expect(await deliver(payload)).toMatchObject({
      kind: 'accepted',
      state: 'dead',
      response: { status: 200 },
    });
    expect(seen).toEqual([]);
    // Its retries are duplicates of a dead event: they take nothing and alarm nobody.
    expect(await deliver(payload)).toMatchObject({ kind: 'duplicate', state: 'dead' });
    expect(seen).toEqual([]);
    const dead = { code: 'dead', sender: AGENT, key: payload.idempotency_key };
    expect(alarms.filter(({ code }) => code === 'dead')).toMatchObject([dead]);
  });
});

it('a store whose clock was set back raises an alarm that says what to check', async () => {
  const store = memoryStore();
  const accept: Store['accept'] = async (request) => ({
    ...(await store.accept(request)),
    clockSteppedMs: 90_400,
  });
  const { deliver, alarms } = await testReceiver({ store: { ...store, accept } });
  expect(said(await deliver(payloads.tool('completed')))).toBe('accepted 200');
  const message = expect.stringContaining('set back by 90 s: waiting events may run up to an hour late');
  expect(alarms).toEqual([{ code: 'clock_stepped', steppedMs: 90_400, message }]);
});

describe('caps: 429 with Retry-After, duplicates still 200', () => {
  it('sender_over_limit', async () => {
    const { deliver, alarms } = await testReceiver({ maxRecordsPerSender: 3 });
    const first = payloads.tool('completed');
    await deliver(first);
    const second = payloads.report();
    await deliver(second);
    const over = await deliver(payloads.report());
    expect(said(over)).toBe('refused sender_over_limit 429');
    expect(over.response.headers).toEqual({ 'Retry-After': '5' });
    expect(said(await deliver(second))).toBe('duplicate 200');
    expect(new Set(alarms.map(({ code }) => code))).toEqual(new Set(['cap_near', 'cap_reached']));
    expect(alarms.filter(({ code }) => code === 'cap_reached')).toMatchObject([{ limit: 'records' }]);
    expect(alarms.filter(({ code }) => code === 'cap_near')).toMatchObject([{ limit: 'records' }]);
  });

  it('sender_over_limit by pending bytes: the alarm names that limit', async () => {
    const { deliver, alarms } = await testReceiver({ maxPendingBytesPerSender: 10 });
    expect(said(await deliver(payloads.tool('completed')))).toBe('refused sender_over_limit 429');
    expect(alarms).toMatchObject([{ code: 'cap_reached', limit: 'pending-bytes' }]);
  });

  it('webhook_signature_rate_abuse: no WWW-Authenticate', async () => {
    const { deliver, alarms } = await testReceiver({ maxNoncesPerKey: 1 });
    await deliver(payloads.tool('completed'));
    const over = await deliver(payloads.tool('completed'));
    expect(said(over)).toBe('refused webhook_signature_rate_abuse 429');
    expect(alarms.filter(({ code }) => code === 'cap_reached')).toMatchObject([{ limit: 'nonces' }]);
    expect(alarms.filter(({ code }) => code === 'cap_near')).toMatchObject([{ limit: 'nonces' }]);
    expect(over).toMatchObject({ check: '9a', detail: 'too many live nonces' });
    expect(over.response.headers).toEqual({ 'Retry-After': '5' });
  });
});
