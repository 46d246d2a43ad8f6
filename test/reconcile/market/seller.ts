import { type JsonObject, SellerError } from '../../../src/registrations/index.ts';
import { type Buy, isOwed, statusAt, type Window } from './plan.ts';
import { dateOf, monthDateOf } from './zones.ts';

/* What the sellers of a market answer. */

const iso = (ms: number): string => new Date(ms).toISOString();

/** What is said of media buys, in one page. */
export const answerMediaBuys = (buys: readonly Buy[], now: number): JsonObject => ({
  media_buys: buys.map((buy) => mediaBuyRow(buy, now)),
});

/** A media buy as its seller describes it. */
export function mediaBuyRow(buy: Buy, now: number): JsonObject {
  const status = statusAt(buy, now);
  const changed = [...buy.changes, ...(buy.becomes ? [buy.becomes] : [])].map(({ at }) => at);
  const changes = changed.filter((at) => at <= now);
  const isOver = now >= buy.flight.end && status === 'active';
  const updated = isOver ? buy.flight.end : Math.max(Date.parse('2026-02-27T00:00:00Z'), ...changes);
  return {
    media_buy_id: buy.id,
    status: isOver ? 'completed' : status,
    revision: 1 + changes.length + (isOver ? 1 : 0),
    updated_at: iso(updated),
    currency: 'USD',
    total_budget: 100,
    start_time: iso(buy.flight.start),
    end_time: iso(buy.flight.end),
    ...(status === 'canceled' && { cancellation: { canceled_at: iso(updated), canceled_by: 'seller' } }),
    packages: [{ package_id: 'p1', product_id: `product-of-${buy.id}` }],
  };
}

const dateIn = ({ frequency, index }: Window): string =>
  frequency === 'monthly' ? monthDateOf(index) : dateOf(index);

/** @throws Error in an outage, SellerError for a range of a buy that has none. */
export function answerDelivery(buy: Buy, args: JsonObject, now: number): JsonObject {
  const { outage } = buy;
  if (outage && outage.start <= now && now < outage.end) throw new Error('the seller is away');
  const [from, to] = [args['start_date'] as string, args['end_date'] as string];
  if (buy.lifetimeOnly) throw new SellerError('DATE_RANGE_NOT_SUPPORTED', 'only the lifetime of a media buy');
  const row = { media_buy_id: buy.id, status: 'active' };
  const hasData = (window: Window): boolean => window.dataAt <= now && isOwed(buy, window);
  if (args['include_window_breakdown'] === true) {
    const [begins, ends] = [Date.parse(`${from}T00:00:00Z`), Date.parse(`${to}T00:00:00Z`)];
    const windows = buy.windows
      .filter(
        (one) =>
          one.frequency === args['time_granularity'] &&
          one.start >= begins - 12 * 3_600_000 &&
          one.start < ends + 12 * 3_600_000 &&
          hasData(one),
      )
      .map(({ start, end }) => ({
        window_start: iso(start),
        window_end: iso(end),
        totals: { impressions: 2, spend: 2 },
        by_package: [],
      }));
    return {
      reporting_period: { start: iso(begins), end: iso(ends) },
      currency: 'USD',
      media_buy_deliveries: [{ ...row, totals: { impressions: 9, spend: 9 }, windows }],
    };
  }
  const asked = buy.windows.filter(
    (one) => one.frequency !== 'hourly' && from <= dateIn(one) && dateIn(one) < to,
  );
  const [first, last] = [asked[0], asked.at(-1)];
  if (!first || !last || !asked.some(hasData)) {
    return {
      reporting_period: { start: `${from}T00:00:00Z`, end: `${to}T00:00:00Z` },
      currency: 'USD',
      media_buy_deliveries: [],
    };
  }
  // Some say the period in their own zone, others the dates.
  const period =
    buy.kind === 'honest' || buy.kind === 'drift'
      ? { start: iso(first.start), end: iso(last.end) }
      : { start: `${from}T00:00:00Z`, end: `${to}T00:00:00Z` };
  return {
    reporting_period: period,
    currency: 'USD',
    media_buy_deliveries: [
      {
        ...row,
        totals: { impressions: 2, spend: 2 },
        by_package: [],
        daily_breakdown: asked
          .filter(hasData)
          .map((one) => ({ date: dateIn(one), impressions: 2, spend: 2 })),
      },
    ],
  };
}
