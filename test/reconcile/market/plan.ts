import type { Random } from '../../reliability/processes/random.ts';
import { daysOf, hoursOf, monthsOf, type Span, type Zone } from './zones.ts';

/*
 * What the sellers of a market do with their media buys: which windows there are, which are owed, and which webhooks are sent when.
 * Everything is decided before the buyer begins, and nothing of the buyer's code is used.
 */

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

/**
 * Sellers as they are: `gives-up` tries five times within 15 s; `drift` sends later each day and a failed report again as a new event;
 * `never-final` and `restarts` (of its sequence numbers) speak for themselves.
 */
export const KINDS = ['gives-up', 'drift', 'never-final', 'restarts', 'honest'] as const;
export type Kind = (typeof KINDS)[number];

export const agentOf = (kind: Kind): string => `https://${kind}.example/mcp`;

/** An event of a seller. */
export interface Report {
  readonly key: string;
  readonly type: 'scheduled' | 'final' | 'delayed' | 'adjusted' | 'window_update';
  readonly at: number;
  /** Waits between tries; the seller stops at the first 2xx. */
  readonly waits: readonly number[];
  /** All tries get lost on the way. */
  readonly isDropped: boolean;
  /** The buyer's handler throws so many times. */
  readonly throws: number;
  /** A failed event is sent again as a new one, so long after. */
  readonly againMs?: number;
  /** The row is `reporting_delayed`, and data are expected then. */
  readonly expected?: number;
  /** `next_expected_at` of the report. */
  readonly next?: number;
  readonly stage?: string;
}

export interface Window extends Span {
  readonly index: number;
  /** As reports say it: cut by the flight, with an end as the seller writes it. */
  readonly said: Span;
  /** From then on the seller has data of it. */
  readonly dataAt: number;
  readonly reports: readonly Report[];
  /** The buyer's handler throws so many times for its pulled event. */
  readonly pullThrows: number;
}

/** A change that `get_media_buys` shows. */
export interface Change {
  readonly at: number;
  readonly status: 'active' | 'paused' | 'canceled';
}

export interface Buy {
  readonly id: string;
  readonly kind: Kind;
  readonly zone: Zone;
  readonly frequency: 'hourly' | 'daily' | 'monthly';
  readonly flight: Span;
  readonly delayMs: number;
  /** Hourly windows can be pulled; days and months always can. */
  readonly isWindowed: boolean;
  /** Pulls are answered with an error in this time. */
  readonly outage?: Span;
  readonly changes: readonly Change[];
  readonly windows: readonly Window[];
}

export interface BuyDraft {
  readonly id: string;
  readonly kind: Kind;
  readonly zone: Zone;
  readonly frequency: Buy['frequency'];
  /** Of 1. */
  readonly drop: number;
  readonly isWindowed?: boolean;
  readonly outage?: Span;
  readonly changes?: readonly Change[];
  /** The flight begins and ends within a window, and reports of those are cut. */
  readonly isCut?: boolean;
}

export const DELAYS: Readonly<Record<Buy['frequency'], number>> = {
  hourly: HOUR,
  daily: 4 * HOUR,
  monthly: 12 * HOUR,
};

export const GRACE = 5 * MINUTE;

const WAITS: Readonly<Record<Kind, readonly number[]>> = {
  'gives-up': [0, 1000, 2000, 4000, 8000],
  drift: [0, 1000, 2000],
  'never-final': [0, 2000, 4000],
  restarts: [0, 1000, 10_000],
  honest: [0, MINUTE, 5 * MINUTE, 30 * MINUTE, 2 * HOUR],
};

/** How an end is written: 23:59:59, 23:59:00, or the next midnight. */
const ENDS = [1000, 60_000, 0] as const;

/** Always. */
export const FOREVER = 1_000_000;

function throwsOf({ next, below }: Random): number {
  const n = next();
  if (n < 0.05) return 1 + below(3);
  if (n < 0.065) return 8;
  return n < 0.08 ? FOREVER : 0;
}

export function buyOf(random: Random, draft: BuyDraft): Buy {
  const { zone, frequency, isCut = false } = draft;
  const table =
    frequency === 'hourly' ? hoursOf(zone) : frequency === 'daily' ? daysOf(zone) : monthsOf(zone);
  const [first, last] = [table[0], table.at(-1)];
  if (!first || !last) throw new Error('an empty table');
  const cut = isCut ? Math.floor((first.end - first.start) / 3) : 0;
  const flight = { start: first.start + cut, end: last.end - cut };
  const short = random.pick(ENDS);
  const delayMs = DELAYS[frequency];
  let drift = 0;
  const windows = table.map((period, index): Window => {
    const { start, end } = period;
    const said = { start: Math.max(start, flight.start), end: Math.min(end, flight.end) - short };
    drift += random.below(30 * MINUTE);
    const isLast = index === table.length - 1;
    const reports = reportsOf(random, draft, { period, index, isLast, delayMs, drift });
    const isLate = reports[0]?.expected !== undefined;
    return {
      index,
      start,
      end,
      said,
      dataAt: isLate ? (reports[1]?.at ?? end) : end,
      pullThrows: throwsOf(random),
      reports,
    };
  });
  return {
    id: draft.id,
    kind: draft.kind,
    zone,
    frequency,
    flight,
    delayMs,
    isWindowed: draft.isWindowed ?? false,
    ...(draft.outage && { outage: draft.outage }),
    changes: draft.changes ?? [],
    windows,
  };
}

interface Slot {
  readonly period: Span;
  readonly index: number;
  readonly isLast: boolean;
  readonly delayMs: number;
  readonly drift: number;
}

function reportsOf(random: Random, draft: BuyDraft, slot: Slot): readonly Report[] {
  const { kind, drop, frequency, id } = draft;
  const { period, index, isLast, delayMs, drift } = slot;
  const { end } = period;
  const isDrift = kind === 'drift';
  const report = (name: string, at: number, more: Partial<Report> = {}): Report => ({
    key: `${id}-${index}-${name}-0123456789`,
    type: 'scheduled',
    at,
    waits: WAITS[kind],
    isDropped: random.next() < drop,
    throws: throwsOf(random),
    ...(isDrift && { againMs: HOUR }),
    ...more,
  });
  const chance = random.next();
  let at = end + 1000 + random.below(delayMs);
  if (isDrift) at = end + MINUTE + drift;
  const isFinal = isLast && (kind === 'honest' || kind === 'gives-up');
  const type = isFinal ? 'final' : 'scheduled';
  const hasNotice = frequency === 'daily' && (kind === 'honest' || kind === 'restarts');
  // The seller says that the data are late, and then sends them.
  if (hasNotice && !isLast && chance < 0.08) {
    const expected = end + (1 + random.below(3)) * DAY + random.below(HOUR);
    return [
      report('late', at, { type: 'delayed', expected, throws: 0 }),
      report('data', expected - random.below(HOUR), { type: chance < 0.04 ? 'delayed' : 'scheduled' }),
    ];
  }
  // It comes so late that it has been pulled by then.
  if (!isDrift && chance > 0.95) at = end + delayMs + GRACE + HOUR + random.below(12 * HOUR);
  const says = hasNotice && random.next() < 0.3;
  const reports = [report('data', at, { type, ...(says && { next: end + DAY + delayMs + 2 * HOUR }) })];
  const after = at + 10 * MINUTE + random.below(6 * HOUR);
  const more = random.next();
  if (more < 0.05) reports.push(report('again', after));
  else if (more < 0.1) reports.push(report('fixed', after, { type: 'adjusted' }));
  else if (more < 0.13) reports.push(report('wider', after, { type: 'window_update', stage: 'c3' }));
  return reports;
}

/** Whether a buy is active at an instant, by its changes. */
export function statusAt({ changes }: Buy, at: number): Change['status'] {
  return changes.findLast((one) => one.at <= at)?.status ?? 'active';
}

/** A window is owed where its buy is active when it ends; the flight's end is the end of the last one. */
export function isOwed(buy: Buy, { start, end }: Span): boolean {
  const { flight } = buy;
  if (start >= flight.end || end <= flight.start) return false;
  return statusAt(buy, Math.min(end, flight.end)) === 'active';
}
