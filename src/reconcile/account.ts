import { wholeNumber } from '../config/validate.ts';
import type { Hashes } from '../crypto/engine.ts';
import { ConfigError } from '../shared/errors.ts';
import { storedId } from '../stages/ids.ts';
import { allRows } from '../registrations/operation-rows.ts';
import { watchIn } from '../registrations/watch-task.ts';
import { type OperationState, storedIn } from '../registrations/operation.ts';
import { type BuyStream, buyStreamIn, isRegistered } from '../registrations/streams.ts';
import type { RegistrationRow, StoreRegistrations } from '../stores/store.ts';
import type { Frequency } from '../windows/calendar.ts';
import { windowPeriod } from '../windows/calendar.ts';
import { common, count, type Runs } from '../windows/runs.ts';
import { clockIn } from '../windows/stream.ts';
import { MOST_TERMS } from '../windows/terms.ts';
import { isOver, type Owing, owing, type Tolerance } from './evaluate.ts';
import { unpullable } from './pull.ts';

/** Selects a page of the account: a seller, a media buy, a time. Passed to `reconciler.account`. */
export interface AccountQuery {
  /** The agent URL of one seller. Absent: all. */
  readonly agentUrl?: string | undefined;
  /** One media buy. Requires `agentUrl`. */
  readonly mediaBuyId?: string | undefined;
  /** Only missing and held windows that end after this time, Unix ms. Absent: all. */
  readonly since?: number | undefined;
  /** The `next` of the page before. */
  readonly after?: string | undefined;
  /** The largest number of media buys on the page, 1 to 1000. Default: 100. */
  readonly limit?: number | undefined;
}

/** A page of the account: what was promised, what came, and what is missing. */
export interface Account {
  /**
   * True if nothing on this page is missing, held or unverifiable, and no task is unresolved or orphaned. The
   * account is complete if each of its pages is. It is false if nothing is known of `mediaBuyId`.
   */
  readonly complete: boolean;
  /** The time of the page, Unix ms on the store's clock. */
  readonly asOf: number;
  /** Present on the first page: without `after`. */
  readonly tasks?: TaskCounts;
  readonly streams: readonly StreamAccount[];
  /** The `after` of the next page. Absent on the last page. */
  readonly next?: string;
}

/** The operations of the seller, or of all sellers, by how they stand. */
export interface TaskCounts {
  readonly ended: number;
  /** Calls without an answer, and tasks that have not ended. */
  readonly open: number;
  /** Tasks that are no longer polled, and have not ended. */
  readonly unresolved: number;
  /** Calls of which nobody knows if they were performed. */
  readonly orphaned: number;
  /** The time of registration of the oldest of them, Unix ms; absent if there is none. */
  readonly since?: number;
}

/** The reports of one media buy. */
export interface StreamAccount {
  readonly agentUrl: string;
  readonly mediaBuyId: string;
  /** null: no reports are asked for. */
  readonly frequency: Frequency | null;
  /**
   * The clock by which days and months begin, and how it was learned: `product` by the option `schedule`, `reports` if
   * two periods in a row fit UTC and not that zone.
   */
  readonly zone: { readonly value: string; readonly source: 'product' | 'reports' | 'default' };
  readonly windows: {
    /** The windows that are due by now. */
    readonly due: number;
    /** The windows that webhooks brought first, and those that a pull brought. Their handlers have completed. */
    readonly byWebhook: number;
    readonly byPull: number;
    /** The reports whose window another event had brought before. */
    readonly repeated: number;
  };
  readonly missing: readonly MissingWindow[];
  /** The windows whose event is DEAD: redrive or discard it. */
  readonly held: readonly HeldWindow[];
  /** The last periods that fit no window of the media buy. Their events were handled. */
  readonly unaligned: readonly { readonly start: string; readonly end: string; readonly key: string }[];
  /** The reason why it is not known what the media buy owes. */
  readonly unverifiable?: string;
  /** True if the media buy owes nothing more. */
  readonly closed: boolean;
}

/** A window that is due and did not come. */
export interface MissingWindow {
  /** ISO 8601, in UTC. */
  readonly start: string;
  readonly end: string;
  /** The time at which it was due, ISO 8601. */
  readonly dueAt: string;
  /** The number of pulls in vain; 0 if it is not pulled any more. */
  readonly tries: number;
  /** The error of the last one, or the reason why it cannot be pulled. */
  readonly lastError?: string;
  /** False if it cannot be pulled: ask the seller. */
  readonly recoverable: boolean;
}

/** A window whose event is DEAD. */
export interface HeldWindow {
  readonly start: string;
  readonly end: string;
  /** The idempotency key of the event. */
  readonly key: string;
}

const iso = (ms: number): string => new Date(ms).toISOString();

/** The most windows of one media buy that are listed: a year of hours. */
const MOST_LISTED = 10_000;

/** The parts from which an account is read. */
export interface AccountSource {
  readonly rows: StoreRegistrations;
  readonly hashes: Hashes;
  readonly tolerance: Tolerance;
}

/** @throws ConfigError (rejects) for a query that cannot be. */
export async function accountOf(source: AccountSource, query: AccountQuery): Promise<Account> {
  const { agentUrl, mediaBuyId, after } = query;
  const { streams, asOf, next } = await streamsOf(source, query);
  const tasks = after === undefined ? await tasksOf(source.rows, agentUrl) : undefined;
  const isKnown = mediaBuyId === undefined || streams.length > 0;
  return {
    complete: isKnown && streams.every(isWhole) && !tasks?.unresolved && !tasks?.orphaned,
    asOf,
    ...(tasks && { tasks }),
    streams,
    ...(next !== undefined && { next }),
  };
}

/** A page of the account, without its tasks. */
export type StreamPage = Pick<Account, 'streams' | 'asOf' | 'next'>;

/** @throws ConfigError (rejects) for a query that cannot be. */
export async function streamsOf(source: AccountSource, query: AccountQuery): Promise<StreamPage> {
  const { agentUrl, since } = query;
  // Any time may be asked for.
  if (since !== undefined) wholeNumber('account: since', since, 0, -Number.MAX_SAFE_INTEGER);
  const page = await namesOf(source, query);
  const described = await Promise.all(page.rows.map((row) => streamOf(source, row, since)));
  return {
    streams: described.flatMap((one) => one ?? []),
    asOf: await source.rows.run(agentUrl ?? '', (_rows, now) => now),
    ...(page.next !== undefined && { next: page.next }),
  };
}

/** True if nothing of a stream is missing, held or unverifiable (owed.md §5.1). */
export const isWhole = ({ missing, held, unverifiable }: StreamAccount): boolean =>
  missing.length === 0 && held.length === 0 && unverifiable === undefined;

/** A page of the streams that are asked for. */
interface StreamNames {
  readonly rows: readonly Pick<RegistrationRow, 'sender' | 'id'>[];
  readonly next?: string;
}

async function namesOf(
  { rows, hashes }: AccountSource,
  { agentUrl, mediaBuyId, limit, after }: AccountQuery,
): Promise<StreamNames> {
  const most = wholeNumber('account: limit', limit, 100, 1, 1000);
  if (mediaBuyId === undefined) {
    return rows.page({
      kind: 'stream',
      limit: most,
      ...(agentUrl !== undefined && { sender: agentUrl }),
      ...(after !== undefined && { after }),
    });
  }
  if (agentUrl !== undefined) return { rows: [{ sender: agentUrl, id: storedId(mediaBuyId, hashes) }] };
  throw new ConfigError('account: mediaBuyId needs agentUrl. Media buys of two sellers may have one id.');
}

async function streamOf(
  { rows, tolerance }: AccountSource,
  { sender, id }: Pick<RegistrationRow, 'sender' | 'id'>,
  since: number | undefined,
): Promise<StreamAccount | undefined> {
  return rows.run(sender, (step, now) => {
    const row = step.get('stream', id);
    const stream = row && buyStreamIn(row);
    if (!stream || !isRegistered(stream)) return undefined;
    return described(sender, stream, {
      owed: owing(stream, (key) => step.eventState(key), now, tolerance),
      now,
      tolerance,
      since,
    });
  });
}

interface Seen {
  readonly owed: Owing;
  readonly now: number;
  readonly tolerance: Tolerance;
  readonly since: number | undefined;
}

function described(agentUrl: string, stream: BuyStream, seen: Seen): StreamAccount {
  const { owed, now, since = -Infinity } = seen;
  const { clock, counts, frequency, mediaBuyId, unplaced } = stream;
  const unverifiable = unverifiableIn(stream);
  const held = owed.held
    .map((claim) => ({ ...periodIn(stream, claim.frequency, claim.number), key: claim.key }))
    .filter((one) => one.end > since);
  return {
    agentUrl,
    mediaBuyId,
    frequency,
    zone: { value: clock.zone, source: clock.source },
    windows: { due: owed.windows.reduce((sum, { due }) => sum + count(due), 0), ...counts },
    missing: missingIn(stream, seen).filter(({ end }) => Date.parse(end) > since),
    held: held.map(({ start, end, key }) => ({ start: iso(start), end: iso(end), key })),
    unaligned: unplaced.map(({ start, end, key }) => ({ start: iso(start), end: iso(end), key })),
    ...(unverifiable !== undefined && { unverifiable }),
    closed: isOver(stream, now) && owed.nextAt === Infinity,
  };
}

/** Nothing is said to be complete of which it is not known what it owes. */
function unverifiableIn({ unverifiable, terms }: BuyStream): string | undefined {
  if (unverifiable !== undefined) return unverifiable;
  if (terms.length === 0) return 'its seller has not said yet what the media buy is';
  return terms.length < MOST_TERMS ? undefined : 'it was changed so often that its first terms are forgotten';
}

const periodIn = (stream: BuyStream, frequency: Frequency, number: number) =>
  windowPeriod(frequency, clockIn(stream), number);

function missingIn(stream: BuyStream, { owed, tolerance }: Seen): readonly MissingWindow[] {
  const lateMs = (stream.delayMs ?? tolerance.delayMs) + tolerance.graceMs;
  return owed.windows.flatMap(({ frequency, missing, lost, due }) => {
    const cannot = unpullable(stream, frequency);
    const gone = common(due, lost);
    const of = (runs: Runs, recoverable: boolean): readonly MissingWindow[] =>
      numbersIn(runs).map((number) => {
        const { start, end } = periodIn(stream, frequency, number);
        const missed = stream.missed.find(
          (one) => one.frequency === frequency && one.first <= number && number < one.end,
        );
        return {
          start: iso(start),
          end: iso(end),
          dueAt: iso(end + lateMs),
          tries: missed?.tries ?? 0,
          ...((missed || !recoverable) && { lastError: missed?.error ?? cannot ?? GIVEN_UP }),
          recoverable,
        };
      });
    return [...of(missing, cannot === undefined), ...of(gone, false)].toSorted((a, b) =>
      a.start < b.start ? -1 : 1,
    );
  });
}

const GIVEN_UP = 'it was pulled in vain for seven days';

function numbersIn(runs: Runs): readonly number[] {
  const numbers: number[] = [];
  for (const [first, end] of runs) {
    for (let number = first; number < end && numbers.length < MOST_LISTED; number += 1) numbers.push(number);
  }
  return numbers;
}

const STATES: Readonly<Record<OperationState, 'ended' | 'open' | 'orphaned' | undefined>> = {
  calling: 'open',
  open: 'open',
  ended: 'ended',
  orphaned: 'orphaned',
  refused: undefined,
};

async function tasksOf(rows: StoreRegistrations, agentUrl: string | undefined): Promise<TaskCounts> {
  const of = agentUrl === undefined ? {} : { sender: agentUrl };
  const counts = { ended: 0, open: 0, orphaned: 0, unresolved: 0 };
  let since = Infinity;
  for await (const row of allRows(rows, { kind: 'operation', ...of })) {
    const { state, createdAt } = storedIn(row);
    const as = STATES[state];
    if (!as) continue;
    counts[as] += 1;
    since = Math.min(since, createdAt);
  }
  for await (const row of allRows(rows, { kind: 'watch', list: 'unresolved', ...of })) {
    since = Math.min(since, watchIn(row).since);
    counts.unresolved += 1;
  }
  return { ...counts, ...(since < Infinity && { since }) };
}
