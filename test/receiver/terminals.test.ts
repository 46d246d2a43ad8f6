import { describe, expect, it } from 'vitest';
import { heldHandler, testReceiver, payloads, said } from './setup.ts';

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

  it('with the same data under another key is a duplicate, without an alarm', async () => {
    const { deliver, seen, alarms } = await testReceiver({ edition: '3.2' });
    await deliver(payloads.tool('completed', SOLD));
    const again = payloads.tool('completed', { ...SOLD, timestamp: UNSOLD.timestamp });
    expect(await deliver(again)).toMatchObject({ kind: 'duplicate', state: 'stale', changed: false });
    expect(await deliver(again)).toMatchObject({ kind: 'duplicate', state: 'stale', changed: false });
    expect(seen).toHaveLength(1);
    expect(alarms).toEqual([]);
  });

  it('is 503 task_busy while the handler of the first runs, and 409 after it', async () => {
    const { handler, started, release } = heldHandler();
    const { deliver } = await testReceiver({ edition: '3.2', waitMs: 60_000, handler });
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
