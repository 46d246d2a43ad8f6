import { describe, expect, it } from 'vitest';
import { memoryStore } from '../../src/stores/memory.ts';
import { sqliteStore } from '../../src/stores/sqlite.ts';
import type { Store } from '../../src/stores/index.ts';
import { inThisForm, LONG, ROWS as ROWS_FORM } from '../reliability/form.ts';
import { daily, hourly, monthly, silent, unusual } from './market/buys.ts';
import { type MarketOptions, play, type Played } from './market/run.ts';
import { handlesWhileCompared, marksBeside, threeIsDone, upToArrivals } from './market/controls.ts';

const HOUR = 3_600_000;

const at = (text: string): number => Date.parse(text);

const MONTH = { begin: at('2026-02-27T12:00:00Z'), end: at('2026-04-06T12:00:00Z') };
/** The first part of it, in which New York has a day of 23 hours. */
const FORTNIGHT = {
  begin: MONTH.begin,
  end: at(ROWS_FORM ? '2026-03-15T12:00:00Z' : '2026-03-11T12:00:00Z'),
};
const YEAR = { begin: at('2026-02-27T12:00:00Z'), end: at('2027-04-05T12:00:00Z') };

const STORES: readonly (readonly [string, () => Store])[] = [
  ['memory', () => memoryStore()],
  ['SQLite', () => sqliteStore(':memory:')],
];

/** Days, hours and months of a buyer, on a store. */
const MARKETS: readonly (readonly [string, (seed: number) => Omit<MarketOptions, 'store' | 'mode'>])[] = [
  ['days of a month', (seed) => ({ ...MONTH, buys: daily(seed) })],
  ['hours of a month', (seed) => ({ ...(LONG ? MONTH : FORTNIGHT), buys: hourly(seed) })],
  ['what is unusual', (seed) => ({ ...(LONG ? MONTH : FORTNIGHT), buys: unusual(seed) })],
  ['13 months', (seed) => ({ ...YEAR, lookMs: HOUR, stepMs: 5 * 24 * HOUR, buys: monthly(seed) })],
];

/** What is unusual, in memory, is in the short form; days of both, hours and a year in memory in `rows`; all in the long one. */
const ROWS = inThisForm(
  STORES.flatMap(([name, newStore], at) =>
    MARKETS.map(([what, market], index) => ({
      what,
      name,
      newStore,
      market,
      isFirst: (at + index) % 2 === 0,
    })),
  ).filter(({ what, name }) => LONG || name === 'memory' || what === 'days of a month'),
  ({ what, name }) => name === 'memory' && what === 'what is unusual',
);

describe.each(ROWS)('the account of a market, $what, $name', ({ newStore, market, isFirst }) => {
  it.each(LONG ? [1, 2, 3, 4] : [1])('is exact after each day, seed %i', async (seed) => {
    const mode = isFirst === (seed % 2 === 1) ? 'inline' : 'inbox';
    const played = await play({ ...market(seed), store: newStore(), mode });
    expect(played.wrong).toEqual([]);
    // Both channels had their part.
    expect(played.byWebhook).toBeGreaterThan(0);
    expect(played.byPull).toBeGreaterThan(0);
  });
});

/** Buyers that are wrong: the market has to notice each of them. */
describe('a market catches a buyer', () => {
  const half = (options: Partial<MarketOptions>): Promise<Played> =>
    play({ ...FORTNIGHT, buys: daily(1, 0.1), store: memoryStore(), mode: 'inline', ...options });

  it('whose windows are in UTC', async () => {
    const played = await half({ timeZone: () => 'UTC' });
    expect(played.wrong).toContainEqual(expect.stringContaining('is said to be missing, and is no window'));
  });

  it('that marks what came beside the step that completes it', async () => {
    const played = await half({ store: marksBeside(memoryStore()) });
    expect(played.wrong).toContainEqual(expect.stringContaining('pulled though it came'));
  });

  it('that counts as had what its handler has refused three times', async () => {
    const played = await half({ store: threeIsDone(memoryStore()) });
    expect(played.wrong).toContainEqual(expect.stringContaining('came, is due, and was not handled'));
  });

  it('that handles an event of no window while it is compared, and is right then', async () => {
    const played = await half({
      buys: silent(),
      end: at('2026-03-01T12:00:00Z'),
      account: handlesWhileCompared(),
    });
    expect(played.wrong).toEqual([expect.stringContaining('handled: an event of no window')]);
  });

  it('that expects nothing behind the last report that came', async () => {
    const played = await half({
      buys: silent(),
      end: at('2026-03-06T12:00:00Z'),
      account: upToArrivals,
    });
    expect(played.wrong).toContainEqual(expect.stringContaining('missing, and not said'));
  });
});
