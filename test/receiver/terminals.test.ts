import { describe, expect, it } from 'vitest';
import type { Event } from '../../src/events/index.ts';
import { AGENT, heldHandler, testReceiver, payloads, said } from './setup.ts';

const SOLD = { task_id: 't', timestamp: '2026-01-01T00:00:00Z', result: { media_buy_id: 'mb_1' } };
const UNSOLD = { task_id: 't', timestamp: '2026-01-01T00:00:01Z', result: { media_buy_id: 'mb_2' } };

/** Edition 3.2 (verification.md §2.19). */
describe('a second terminal status in edition 3.2', () => {
  it('with other data is answered 409 and raises an alarm', async () => {
    const { deliver, seen, alarms } = await testReceiver({ edition: '3.2' });
    await deliver(payloads.tool('completed', SOLD));
    const outcome = await deliver(payloads.tool('completed', UNSOLD));
    expect(said(outcome)).toBe('refused task_already_final 409');
    expect(JSON.parse(outcome.response.body)).toMatchObject({ error: { code: 'task_already_final' } });
    expect(seen).toHaveLength(1);
    expect(alarms.map(({ code }) => code)).toEqual(['second_terminal_status']);
  });

  it('with the same data under another key is a duplicate', async () => {
    const { deliver, seen } = await testReceiver({ edition: '3.2' });
    await deliver(payloads.tool('completed', SOLD));
    const again = payloads.tool('completed', { ...SOLD, timestamp: UNSOLD.timestamp });
    expect(await deliver(again)).toMatchObject({ kind: 'duplicate', state: 'stale', changed: false });
    expect(await deliver(again)).toMatchObject({ kind: 'duplicate', state: 'stale', changed: false });
    expect(seen).toHaveLength(1);
  });

  it('with the same data is a duplicate after a status that is not terminal too, and that is stale', async () => {
    const { deliver, seen } = await testReceiver({ edition: '3.2' });
    await deliver(payloads.tool('completed', SOLD));
    const { timestamp: _none, ...timeless } = payloads.tool('working', { task_id: 't' });
    for (const late of [payloads.tool('working', { task_id: 't', timestamp: UNSOLD.timestamp }), timeless]) {
      expect(said(await deliver(late))).toBe('stale 200');
    }
    const again = payloads.tool('completed', { ...SOLD, timestamp: '2026-01-01T00:00:02Z' });
    expect(await deliver(again)).toMatchObject({ kind: 'duplicate', state: 'stale' });
    expect(seen).toHaveLength(1);
  });

  it('is 503 task_busy while the handler of the first runs, and 409 after it', async () => {
    const { handler, started, release } = heldHandler();
    const { deliver } = await testReceiver({ edition: '3.2', advanced: { waitMs: 60_000 }, handler });
    const first = deliver(payloads.tool('completed', SOLD));
    await started;
    const second = payloads.tool('failed', UNSOLD);
    expect(said(await deliver(second))).toBe('unavailable task_busy 503');
    release();
    expect(said(await first)).toBe('accepted 200');
    expect(said(await deliver(second))).toBe('refused task_already_final 409');
  });

  it.each(['3.0', '3.1'] as const)('is applied in edition %s', async (edition) => {
    const { deliver, seen } = await testReceiver({ edition });
    await deliver(payloads.tool('completed', SOLD));
    expect(said(await deliver(payloads.tool('completed', UNSOLD)))).toBe('accepted 200');
    expect(seen).toHaveLength(2);
  });
});

const codesOf = (event: Event | undefined): readonly string[] =>
  (event?.warnings ?? []).map(({ code }) => code);

/** admission.md §5.4a. */
describe('the ends of tasks are told, whatever is answered', () => {
  const EDITIONS = ['3.0', '3.1', '3.2'] as const;
  const { timestamp: _none, ...TIMELESS } = payloads.tool('completed', { task_id: 't', result: SOLD.result });
  const again = (changes: object): object => ({
    ...TIMELESS,
    idempotency_key: crypto.randomUUID(),
    ...changes,
  });

  it.each(
    EDITIONS.flatMap((edition) =>
      (
        [
          ['without a time', {}],
          ['at the same time', { timestamp: SOLD.timestamp }],
          ['at a later time', { timestamp: '2026-01-01T00:00:09Z' }],
          ['at an earlier time', { timestamp: '2025-12-31T00:00:00Z' }],
        ] as const
      ).map(([when, changes]) => [edition, when, changes] as const),
    ),
  )(
    'edition %s, one end under several keys, %s: a warning each, one alarm',
    async (edition, _when, changes) => {
      const { deliver, seen, alarms, outcomes } = await testReceiver({ edition });
      await deliver(payloads.tool('completed', SOLD));
      for (let copy = 0; copy < 3; copy += 1) await deliver(again(changes));
      expect(outcomes.map(({ response }) => response.status)).toEqual([200, 200, 200, 200]);
      const handled = new Map(seen.map(({ event }) => [event.idempotencyKey, event]));
      const told = outcomes.slice(1).map((outcome) => {
        const event = 'event' in outcome ? outcome.event : undefined;
        return codesOf(handled.get(event?.idempotencyKey ?? '') ?? event);
      });
      expect(told.map((codes) => codes.filter((code) => code === 'second_terminal_status'))).toEqual(
        Array.from({ length: 3 }, () => ['second_terminal_status']),
      );
      expect(alarms).toMatchObject([{ code: 'second_terminal_status', sender: AGENT, taskId: 't' }]);
    },
  );

  it('one alarm for each task', async () => {
    const { deliver, alarms } = await testReceiver();
    for (const task of ['t', 'u', 't', 'u', 't']) await deliver(again({ task_id: task }));
    expect(alarms.map(({ taskId }) => taskId)).toEqual(['t', 'u']);
  });

  it.each(EDITIONS)(
    'edition %s: an end under the key of an earlier status is dropped, and told',
    async (edition) => {
      const { deliver, seen, alarms } = await testReceiver({ edition });
      const key = { idempotency_key: 'one-key-an-operation' };
      await deliver(payloads.tool('working', { task_id: 't', ...key }));
      const outcome = await deliver(payloads.tool('completed', { ...SOLD, ...key }));
      await deliver(payloads.tool('completed', { ...SOLD, ...key }));
      expect(outcome.response.status).toBe(edition === '3.2' ? 409 : 200);
      expect(codesOf('event' in outcome ? outcome.event : undefined)).toEqual(
        edition === '3.2' ? [] : ['end_dropped'],
      );
      expect(seen).toHaveLength(1);
      expect(alarms).toMatchObject([{ code: 'end_dropped', taskId: 't', key: key.idempotency_key }]);
      expect(alarms[0]?.message).toContain('get_task_status');
    },
  );

  it('an end of the inbox is told by who takes it, and its handler is told too', async () => {
    const { receiver, deliver, seen, alarms } = await testReceiver({ mode: 'inbox' });
    await deliver(payloads.tool('completed', SOLD));
    await deliver(again({ timestamp: UNSOLD.timestamp }));
    expect(alarms).toMatchObject([{ code: 'second_terminal_status', taskId: 't' }]);
    const running = receiver.start();
    await expect.poll(() => seen).toHaveLength(2);
    await receiver.stop();
    await running;
    expect(seen.map(({ event }) => codesOf(event))).toEqual([[], ['second_terminal_status']]);
    expect(alarms).toHaveLength(1);
  });
});

describe('after the final report of a media buy', () => {
  const report = { media_buy_deliveries: [{ media_buy_id: 'mb_1' }] };
  const FINAL = payloads.report('final', report, { timestamp: '2026-01-02T00:00:00Z' });

  it.each([
    ['a notification of a later time', payloads.family('indicators.changed'), '2026-01-03T00:00:00Z', 1],
    ['a status of a later time', payloads.tool('completed'), '2026-01-03T00:00:00Z', 1],
    ['a notification of an earlier time', payloads.family('indicators.changed'), '2026-01-01T00:00:00Z', 0],
    ['one of the same time', payloads.family('indicators.changed'), '2026-01-02T01:00:00+01:00', 0],
  ])('%s', async (_is, payload, timestamp, warned) => {
    const { deliver, seen, alarms } = await testReceiver();
    await deliver(FINAL);
    await deliver({ ...payload, timestamp });
    const codes = seen[1]?.event.warnings.map(({ code }) => code) ?? [];
    expect(codes.filter((code) => code === 'report_after_final')).toHaveLength(warned);
    expect(alarms.map(({ warning }) => warning)).toEqual(warned ? ['report_after_final'] : []);
  });

  it('an event without a timestamp is compared by its observation time; without either it is not compared', async () => {
    const { deliver, seen } = await testReceiver();
    await deliver(FINAL);
    const at = (observed_at: string | undefined): object => {
      const { timestamp: _none, ...payload } = payloads.family('creative.assignment_changed', {
        observed_at,
      });
      return payload;
    };
    for (const time of ['2026-01-03T00:00:00Z', '2026-01-01T00:00:00Z', undefined]) await deliver(at(time));
    const codes = seen.slice(1).map(({ event }) => event.warnings.map(({ code }) => code));
    expect(codes).toEqual([['report_after_final'], [], []]);
  });
});
