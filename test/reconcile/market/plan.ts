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

/** The agent of a media buy: of its seller, else of the kind that its seller is. */
export const agentOf = ({ kind, seller = kind }: Pick<BuyTraits, 'kind' | 'seller'>): string =>
  `https://${seller}.example/mcp`;

/** A row of a report. */
export interface Row {
  /** Of the media buy. */
  readonly id: string;
  /** It is `reporting_delayed`, and data are expected then. */
  readonly expected?: number;
}

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
  /** What it is of. A report of several media buys has a row of each; one of none says nothing of any. */
  readonly rows: readonly Row[];
  /** `next_expected_at` of the report. */
  readonly next?: number;
  readonly stage?: string;
}

export interface Window extends Span {
  readonly frequency: Frequency;
  /** In the table of its frequency. */
  readonly index: number;
  /** As reports say it: cut by the flight, with an end as the seller writes it. */
  readonly said: Span;
  /** From then on the seller has data of it. */
  readonly dataAt: number;
  readonly reports: readonly Report[];
  /** The buyer's handler throws so many times for its pulled event. */
  readonly pullThrows: number;
}

export type Frequency = 'hourly' | 'daily' | 'monthly';

/** A change that `get_media_buys` shows. */
export interface Change {
  readonly at: number;
  readonly status: 'active' | 'paused' | 'completed' | 'canceled' | 'rejected';
}

/** The buyer's own change: its seller completes it then, and reports so from then on. */
export interface Becomes {
  readonly at: number;
  readonly frequency: Frequency;
}

interface BuyTraits {
  readonly id: string;
  readonly kind: Kind;
  /** Sellers of one kind may be several. */
  readonly seller?: string;
  /** For which it was bought. */
  readonly account?: string;
  /** The buyer has asked for no reports: it has no windows. */
  readonly isSilent?: true;
  /** By which its days and months begin. */
  readonly zone: Zone;
  /** Its product names this one, and reports are by another. */
  readonly declared?: Zone;
  readonly frequency: Frequency;
  readonly becomes?: Becomes;
  /** Pulls are answered with an error in this time. */
  readonly outage?: Span;
  /** Delivery is told of a whole lifetime alone: as its product declares, or as its seller answers. */
  readonly lifetimeOnly?: 'declared' | 'refused';
}

export interface Buy extends BuyTraits {
  readonly flight: Span;
  readonly delayMs: number;
  /** Windows of its last frequency can be pulled as such; days and months always can. */
  readonly isWindowed: boolean;
  readonly changes: readonly Change[];
  readonly windows: readonly Window[];
}

export interface BuyDraft extends BuyTraits {
  /** Of 1. */
  readonly drop: number;
  readonly isWindowed?: boolean;
  readonly changes?: readonly Change[];
  /** The flight begins and ends within a window, and reports of those are cut. */
  readonly isCut?: boolean;
  /** The flight has so many windows at most. Default: the table's. */
  readonly length?: number;
  /** No report of it is final. */
  readonly isWithoutFinal?: true;
}

const DELAYS: Readonly<Record<Frequency, number>> = {
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

const TABLES: Readonly<Record<Frequency, (zone: Zone) => readonly Span[]>> = {
  hourly: hoursOf,
  daily: daysOf,
  monthly: monthsOf,
};

type Period = Span & Pick<Window, 'frequency' | 'index'>;

/** The periods of a buy, by the frequency that is in force when each ends. */
function periodsOf({ zone, frequency, becomes }: BuyDraft): readonly Period[] {
  const of = (which: Frequency): readonly Period[] =>
    TABLES[which](zone).map((span, index) => ({ ...span, frequency: which, index }));
  if (!becomes) return of(frequency);
  return [
    ...of(frequency).filter(({ end }) => end <= becomes.at),
    ...of(becomes.frequency).filter(({ end }) => end > becomes.at),
  ];
}

/** The flight is agreed on by the zone of the product. */
function flightOf({ isCut, declared }: BuyDraft, periods: readonly Period[]): Span {
  const [first, last] = [periods[0], periods.at(-1)];
  if (!first || !last) throw new Error('an empty table');
  const cut = isCut ? Math.floor((first.end - first.start) / 3) : 0;
  const start = declared === undefined ? first.start : (daysOf(declared)[0]?.start ?? first.start);
  return { start: start + cut, end: last.end - cut };
}

export function buyOf(random: Random, draft: BuyDraft): Buy {
  const { drop: _drop, isCut: _isCut, isWithoutFinal: _is, length = Infinity, ...traits } = draft;
  const periods = periodsOf(draft).slice(0, length);
  const flight = flightOf(draft, periods);
  const short = random.pick(ENDS);
  const delayMs = DELAYS[draft.frequency];
  let drift = 0;
  const windows = (draft.isSilent ? [] : periods).map((period, at): Window => {
    const { start, end } = period;
    const said = { start: Math.max(start, flight.start), end: Math.min(end, flight.end) - short };
    drift += random.below(30 * MINUTE);
    const isLast = at === periods.length - 1;
    const reports = reportsOf(random, draft, { period, at, isLast, delayMs, drift });
    const isLate = reports[0]?.rows[0]?.expected !== undefined;
    return {
      ...period,
      said,
      dataAt: isLate ? (reports[1]?.at ?? end) : end,
      pullThrows: throwsOf(random),
      reports,
    };
  });
  return {
    ...traits,
    flight,
    delayMs,
    isWindowed: draft.isWindowed ?? false,
    changes: draft.changes ?? [],
    windows,
  };
}

/** Buys of one seller and calendar whose reports it joins: those of the first have a row of each, and the others have none of these. */
export function joined([first, ...others]: readonly Buy[]): readonly Buy[] {
  if (!first) return [];
  const withRows = ({ reports, ...window }: Window, at: number): Window => {
    const [main, ...rest] = reports;
    if (!main) return { ...window, reports };
    const rows = [first, ...others].flatMap(({ windows }) => windows[at]?.reports[0]?.rows ?? []);
    const type = main.type === 'delayed' ? 'scheduled' : main.type;
    return { ...window, reports: [{ ...main, type, rows }, ...rest] };
  };
  const withoutFirst = ({ reports, ...window }: Window): Window => ({ ...window, reports: reports.slice(1) });
  return [
    { ...first, windows: first.windows.map(withRows) },
    ...others.map((buy) => ({ ...buy, windows: buy.windows.map(withoutFirst) })),
  ];
}

interface Slot {
  readonly period: Period;
  /** Among the windows of its buy. */
  readonly at: number;
  readonly isLast: boolean;
  readonly delayMs: number;
  readonly drift: number;
}

function reportsOf(random: Random, draft: BuyDraft, slot: Slot): readonly Report[] {
  const { kind, drop, frequency, id, declared, isWithoutFinal } = draft;
  const { period, isLast, delayMs, drift } = slot;
  const { end } = period;
  const isDrift = kind === 'drift';
  const report = (name: string, at: number, more: Partial<Report> = {}): Report => ({
    key: `${id}-${period.frequency.slice(0, 1)}${period.index}-${name}-0123456789`,
    type: 'scheduled',
    at,
    rows: [{ id }],
    waits: WAITS[kind],
    isDropped: random.next() < drop,
    throws: throwsOf(random),
    ...(isDrift && { againMs: HOUR }),
    ...more,
  });
  const chance = random.next();
  let at = end + 1000 + random.below(delayMs);
  // By the first two the buyer sees which clock it is.
  if (declared !== undefined && slot.at < 2) return [report('data', at, { isDropped: false, throws: 0 })];
  if (isDrift) at = end + MINUTE + drift;
  const isFinal = isLast && !isWithoutFinal && (kind === 'honest' || kind === 'gives-up');
  const type = isFinal ? 'final' : 'scheduled';
  const hasNotice = frequency === 'daily' && (kind === 'honest' || kind === 'restarts');
  // The seller says that the data are late, and then sends them.
  if (hasNotice && !isLast && chance < 0.08) {
    const expected = end + (1 + random.below(3)) * DAY + random.below(HOUR);
    return [
      report('late', at, { type: 'delayed', rows: [{ id, expected }], throws: 0 }),
      report('data', expected - random.below(HOUR), { type: chance < 0.04 ? 'delayed' : 'scheduled' }),
    ];
  }
  // It comes so late that it has been pulled by then.
  if (!isDrift && chance > 0.95) at = end + delayMs + GRACE + HOUR + random.below(12 * HOUR);
  const says = hasNotice && random.next() < 0.3;
  const next = end + DAY + delayMs + 2 * HOUR;
  const reports = [report('data', at, { type, ...(says && { next }) })];
  const after = at + 10 * MINUTE + random.below(6 * HOUR);
  const more = random.next();
  if (more < 0.05) reports.push(report('again', after));
  else if (more < 0.1) reports.push(report('fixed', after, { type: 'adjusted' }));
  else if (more < 0.13) reports.push(report('wider', after, { type: 'window_update', stage: 'c3' }));
  else if (more < 0.16) reports.push(report('found', after, { type: 'delayed' }));
  // Without rows it says of no media buy that its data are late.
  else if (more < 0.18) reports.push(report('empty', end + MINUTE, { type: 'delayed', rows: [], next }));
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
