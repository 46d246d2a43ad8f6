import { afterEach, describe, expect, it } from 'vitest';
import type { DeliveryReportEvent, Event, ReportWindow } from '../../src/events/index.ts';
import type { JsonObject } from '../../src/registrations/index.ts';
import { AGENT, payloads, testReceiver } from '../receiver/setup.ts';
import { BUY, buy, day, type Process, reportBody, world, type World } from './kit.ts';

let here: World | undefined;
afterEach(() => here?.end());

const FLIGHT = { start: '2026-03-02T00:00:00Z', end: '2026-03-06T00:00:00Z' };

async function begin(receiving: Parameters<World['process']>[1] = {}): Promise<Process> {
  here = world('2026-03-05T00:30:00Z');
  const one = await here.process({}, receiving);
  return one;
}

const reportsOf = ({ seen }: Pick<Process, 'seen'>): readonly DeliveryReportEvent[] =>
  seen.map(({ event }) => event).filter((event: Event) => event.kind === 'delivery-report');
const last = (process: Pick<Process, 'seen'>): DeliveryReportEvent =>
  reportsOf(process).at(-1) as DeliveryReportEvent;
const windowsOf = (process: Pick<Process, 'seen'>): readonly ReportWindow[] | undefined =>
  last(process).windows;

const THIRD = { mediaBuyId: BUY, start: '2026-03-03T00:00:00.000Z', end: '2026-03-04T00:00:00.000Z' };

describe.each(['inline', 'inbox'] as const)('event.windows, in mode %s', (mode) => {
  const settled = async (process: Process, reports: number): Promise<void> => {
    await expect.poll(() => reportsOf(process).length).toBe(reports);
    await here?.clock.settled();
  };

  it('names the window, and says repeated where another event brought it', async () => {
    const one = await begin({ mode });
    await buy(one, FLIGHT);
    await one.report(day(3), { key: 'first-of-the-third-day' });
    await settled(one, 1);
    expect(windowsOf(one)).toEqual([{ ...THIRD, repeated: false }]);
    // The same event again reaches no handler.
    expect(await one.report(day(3), { key: 'first-of-the-third-day' })).toMatchObject({ kind: 'duplicate' });
    await one.report({ ...day(3), end: '2026-03-03T23:59:59Z' });
    await settled(one, 2);
    expect(windowsOf(one)).toEqual([{ ...THIRD, repeated: true }]);
    // A correction repeats nothing; another stage is another report.
    let reports = 2;
    for (const more of [
      { type: 'adjusted' },
      { type: 'window_update' },
      { row: { is_adjusted: true } },
      { row: { measurement_window: 'c3' } },
    ]) {
      await one.report(day(3), more);
      await settled(one, (reports += 1));
      expect(windowsOf(one), JSON.stringify(more)).toMatchObject([{ ...THIRD, repeated: false }]);
    }
    expect(windowsOf(one)?.[0]?.stage).toBe('c3');
  });
});

describe('event.windows', () => {
  it('a period that the flight cuts is a whole window; one that fits none is none, and is handled', async () => {
    const one = await begin();
    await buy(one, { start: '2026-03-02T07:00:00Z', end: '2026-03-04T21:00:00Z' });
    await one.report({ start: '2026-03-02T07:00:00Z', end: '2026-03-03T00:00:00Z' });
    expect(windowsOf(one)).toMatchObject([{ start: '2026-03-02T00:00:00.000Z', end: THIRD.start }]);
    await one.report({ start: '2026-03-04T00:00:00Z', end: '2026-03-04T21:00:00Z' });
    expect(windowsOf(one)).toMatchObject([{ start: THIRD.end, end: '2026-03-05T00:00:00.000Z' }]);
    await one.report({ start: '2026-03-03T00:00:00Z', end: '2026-03-03T11:00:00Z' });
    expect(windowsOf(one)).toEqual([]);
    expect(reportsOf(one)).toHaveLength(3);
    const { streams } = await one.reconciler.account();
    expect(streams[0]?.unaligned).toMatchObject([{ start: THIRD.start, end: '2026-03-03T11:00:00.000Z' }]);
  });

  it('several buys of a report, each with its stage; those that are not known have none', async () => {
    const one = await begin();
    await buy(one, FLIGHT);
    const row = (media_buy_id: string, more: JsonObject = {}): JsonObject => ({
      media_buy_id,
      status: 'active',
      totals: { spend: 1 },
      by_package: [],
      ...more,
    });
    const rows = [row('buy-9'), row(BUY, { by_package: [{ measurement_window: 'c7' }] }), row('buy-8')];
    await one.report(day(3), { report: { media_buy_deliveries: rows } });
    expect(windowsOf(one)).toEqual([{ ...THIRD, stage: 'c7', repeated: false }]);
  });

  it('of a report without rows, without a period, or with one that is none', async () => {
    const one = await begin();
    await buy(one, FLIGHT);
    for (const report of [
      { media_buy_deliveries: [] },
      { reporting_period: undefined },
      { reporting_period: { start: day(3).end, end: day(3).start } },
    ]) {
      expect(await one.report(day(3), { report })).toMatchObject({ kind: 'accepted' });
      expect(windowsOf(one) ?? []).toEqual([]);
    }
  });

  it('a receiver without registrations has none, and asks its store for nothing', async () => {
    const at = await testReceiver();
    await at.receiver.ready();
    await at.deliver(reportBody(day(3), {}));
    expect(last(at)).toMatchObject({ kind: 'delivery-report' });
    expect(last(at).windows).toBeUndefined();
    await at.deliver(payloads.tool('completed'));
    expect(at.seen.at(-1)?.event).not.toHaveProperty('windows');
    await at.receiver.stop();
  });

  it('at most 10,000 buys of a report are counted, with a warning', async () => {
    const one = await begin({ maxBodyBytes: 4 * 1024 * 1024 });
    await buy(one, FLIGHT);
    const row = (media_buy_id: string): JsonObject => ({ media_buy_id, status: 'active', totals: {} });
    const rows = [...Array.from({ length: 10_000 }, (_, at) => row(`b${at}`)), row(BUY)];
    expect(await one.report(day(3), { report: { media_buy_deliveries: rows } })).toMatchObject({
      kind: 'accepted',
    });
    expect(last(one).warnings.map(({ code }) => code)).toContain('report_too_wide');
    expect(windowsOf(one)).toEqual([]);
  });
});

describe('a report before its stream', () => {
  it('counts once the buy is registered: done, or claimed by an event that is DEAD', async () => {
    let fails = false;
    const one = await begin({
      retry: { attempts: 1 },
      handler: async () => {
        if (fails) throw new Error('no');
      },
    });
    await one.report(day(2));
    fails = true;
    await one.report(day(3), { key: 'dead-of-the-third-day' });
    expect(windowsOf(one)).toEqual([]);
    await buy(one, FLIGHT);
    const { streams } = await one.reconciler.account();
    expect(streams[0]).toMatchObject({
      windows: { byWebhook: 1, due: 2 },
      missing: [],
      held: [{ start: THIRD.start, end: THIRD.end, key: 'dead-of-the-third-day' }],
      unaligned: [],
    });
  });

  it('is forgotten with the events, if nobody registers its buy', async () => {
    const one = await begin();
    await one.report(day(2));
    await here?.until('2026-05-05T00:00:00Z');
    await buy(one, { ...FLIGHT, end: '2026-03-03T00:00:00Z' });
    expect((await one.reconciler.account()).streams[0]).toMatchObject({
      windows: { byWebhook: 0 },
      missing: [{ start: '2026-03-02T00:00:00.000Z' }],
    });
  });

  it('of another seller counts for nothing', async () => {
    const one = await begin();
    await one.report(day(2));
    await buy(one, FLIGHT, 'daily', 'https://other.example/mcp');
    const { streams } = await one.reconciler.account();
    expect(streams.map(({ agentUrl, windows }) => [agentUrl === AGENT, windows.byWebhook])).toEqual([
      [false, 0],
    ]);
  });
});
