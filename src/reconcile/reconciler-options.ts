// Checks the options of `createReconciler`, and makes the reconciler. The package entry calls it with the timers of the
// runtime.
import { boundedCall } from '../calls/bounded-call.ts';
import { createSessions } from '../calls/sessions.ts';
import { onlyKnown, text, wholeNumber } from '../config/validate.ts';
import type { Receiver } from '../config/receiver-options.ts';
import { observeReportWith } from '../receiver/observe-report.ts';
import { observeStateWith } from '../receiver/observe-state.ts';
import { CAPABILITIES, type WithCapabilities } from '../registrations/capabilities.ts';
import { givenCaller, transportOf } from '../registrations/option-checks.ts';
import type { Registrations } from '../registrations/registrations.ts';
import { ConfigError } from '../shared/errors.ts';
import { startStop } from '../shared/start-stop.ts';
import { backgroundTimer } from '../shared/time-limits.ts';
import { LONGEST_LEASE_MS } from '../stores/constants.ts';
import { partsOf, tasksOf } from '../poll/given.ts';
import { type Account, accountOf, type AccountQuery, streamsOf } from './account.ts';
import { type Tolerance, TOLERANCE } from './evaluate.ts';
import { type CompareQuery, compareNow } from './compare-totals.ts';
import type { ReconcilerContext } from './context.ts';
import type { DiscoverContext } from './discover.ts';
import type { DiscoverQuery, Discovery } from './discover-types.ts';
import { reconcileLoop } from './reconciler.ts';
import { roundLoop } from './snapshots.ts';
import { readerRowsLoop, requireReader, type SnapshotReader } from './state-readers.ts';
import type { ReportSchedule, ScheduledBuy } from './schedule-option.ts';
import { STREAM_PAGES, type WithStreamPages } from './stream-pages.ts';
import { type BookedBuy, givenTolerance, type TotalsTolerance } from './totals.ts';
import type { BuyTotals, ComparedTotals } from '../registrations/streams.ts';
import { DAY_MS } from '../windows/calendar.ts';

/** Options of `createReconciler`. */
export interface ReconcilerOptions {
  /**
   * The receiver, which must have `registrations`. Reports that were requested from sellers go to its `deliveryReport`
   * handler.
   */
  readonly receiver: Receiver;
  /** The receiver's registrations, created with the option `call`: the reconciler asks sellers with that function. */
  readonly registrations: Registrations;
  /**
   * Returns facts about the reports of a media buy, e.g. from the `reporting_capabilities` of its products; undefined
   * for none. It is called after each request to the seller about the media buy, even if the request failed.
   */
  readonly schedule?:
    ((buy: ScheduledBuy) => ReportSchedule | undefined | Promise<ReportSchedule | undefined>) | undefined;
  /** The delay of reports, if `schedule` gives none: ms after the end of a window. Default: 4 h. */
  readonly expectedDelayMs?: number | undefined;
  /**
   * The additional time after the expected delay, ms. Once it is over, a report counts as missing and is requested.
   * Default: 300 000.
   */
  readonly graceMs?: number | undefined;
  /**
   * The time limit of a request, ms, at most 300 000. If the process dies, another one takes over after twice that
   * time. Default: 20 000.
   */
  readonly callMs?: number | undefined;
  /** The most concurrent requests to one seller, of all processes together, including polls. Default: 4. */
  readonly perSeller?: number | undefined;
  /**
   * The time between two requests for the impairments of a media buy, ms, at least 60 000. It is also the time between
   * two calls of a function that `snapshot` registered. One request is about up to 100 media buys. Default: 900 000.
   */
  readonly snapshotMs?: number | undefined;
  /** The most media buys that this process checks concurrently. Default: 16. */
  readonly concurrency?: number | undefined;
  /** The time for which the account of a closed media buy is kept, ms, at least a day. Default: 365 days. */
  readonly keepMs?: number | undefined;
  /**
   * Returns the totals that you have booked for a media buy, or undefined for none. It is called when a media buy has
   * ended, and by `compare`. It may take half of `callMs`. Absent: no totals are compared.
   */
  readonly ours?: ((buy: BookedBuy) => BuyTotals | undefined | Promise<BuyTotals | undefined>) | undefined;
  /** The largest differences of your totals from the seller's. Default: 2 % of impressions, 1 % of spend. */
  readonly tolerance?: TotalsTolerance | undefined;
}

/**
 * Requests the reports that sellers owe and that did not arrive, and lists those that are missing. `createReconciler`
 * makes it.
 */
export interface Reconciler {
  /** Checks the receiver's store, settings and keys. It is the receiver's own `ready`. */
  readonly ready: Receiver['ready'];
  /**
   * Starts the reconciler in this process; it may run in several processes. Resolves when it has started. While it
   * runs, a further call has no effect. You may call it again after `stop`.
   */
  readonly start: () => Promise<void>;
  /**
   * Stops: begins no more requests, aborts the running ones, and resolves when they have ended. A further call has no
   * effect.
   */
  readonly stop: () => Promise<void>;
  /** Calls `stop`, for `await using`. */
  readonly [Symbol.asyncDispose]: () => Promise<void>;
  /**
   * Returns a page of the account: for each media buy, the reports that are due, that came, and that are missing. It
   * asks no seller, and works without `start`.
   */
  readonly account: (query?: AccountQuery) => Promise<Account>;
  /**
   * Registers your function that reads the current states of one type from a seller, e.g. `creative.status_changed`.
   * You may call it before or after `start`. Your function is called every `snapshotMs`, for each subscription with
   * this type. A state, or the end of a state, that no webhook reported becomes an event with `source: 'pull'`.
   * @throws ConfigError if the type already has a function, or if one of its events may be about several objects.
   */
  readonly snapshot: (type: string, read: SnapshotReader) => void;
  /**
   * Compares your totals of a media buy with the seller's now. If they differ, it raises the alarm `totals_differ`. It
   * works without `start`. The account of a closed media buy keeps the result.
   * @throws ConfigError (rejects) without the option `ours`. CompareError if the media buy is unknown, `ours` fails, or
   * the seller cannot be asked or has no totals.
   */
  readonly compare: (query: CompareQuery) => Promise<ComparedTotals>;
  /**
   * Asks a seller for the running media buys and tasks of an account. Returns those that the store does not know,
   * whatever their state. Pass them to `registrations.adopt`, e.g. after a lost store. `discover` adopts nothing, and
   * works without `start`.
   *
   * A call reads up to 100 pages of each list, and `next` continues. If a later page fails, the entries so far are
   * returned, with the error in `errors`. If nothing could be read, `discover` rejects with the seller's error, e.g.
   * SellerError or SellerBusyError.
   * @throws RegistrationError (rejects) `request_invalid` for a wrong query.
   */
  readonly discover: (query: DiscoverQuery) => Promise<Discovery>;
}

const KNOWN: Readonly<Record<keyof ReconcilerOptions, true>> = {
  receiver: true,
  registrations: true,
  schedule: true,
  expectedDelayMs: true,
  graceMs: true,
  callMs: true,
  perSeller: true,
  snapshotMs: true,
  concurrency: true,
  keepMs: true,
  ours: true,
  tolerance: true,
};

const COMPARED: Readonly<Record<keyof CompareQuery, true>> = { agentUrl: true, mediaBuyId: true };

/** The largest `keepMs`: a hundred years. Ms. */
const MOST_KEEP_MS = 36_525 * DAY_MS;

/** Checks the options `ours` and `tolerance`. @throws ConfigError */
function totalsOption({ ours, tolerance }: ReconcilerOptions): Pick<ReconcilerContext, 'totals'> {
  const given = givenTolerance(tolerance);
  if (ours === undefined) return {};
  if (typeof ours !== 'function') {
    throw new ConfigError(
      "createReconciler: ours is not a function. Give async (buy) => ({ impressions, spend, currency: 'USD' }).",
    );
  }
  return { totals: { ours, tolerance: given } };
}

const QUERY: Readonly<Record<keyof AccountQuery, true>> = {
  agentUrl: true,
  mediaBuyId: true,
  since: true,
  after: true,
  limit: true,
};

/** The timers that the package entry supplies. */
export type ReconcilerParts = Pick<ReconcilerContext, 'sleep' | 'lookMs'>;

/** Checks the options, and makes a reconciler. @throws ConfigError if an option is missing or wrong. */
export function reconcilerOf(
  options: ReconcilerOptions,
  { sleep, lookMs }: ReconcilerParts,
): Reconciler & WithStreamPages {
  onlyKnown('createReconciler', options, KNOWN);
  const { receiver, schedule } = options;
  const parts = partsOf('createReconciler', options);
  const tasks = tasksOf('createReconciler', options);
  const call = boundedCall(givenCaller('createReconciler', tasks.call));
  if (schedule !== undefined && typeof schedule !== 'function') {
    throw new ConfigError(
      "createReconciler: schedule is not a function. Give (buy) => ({ timeZone: 'America/New_York' }).",
    );
  }
  const callMs = wholeNumber('callMs', options.callMs, 20_000, 1, LONGEST_LEASE_MS / 2);
  const tolerance: Tolerance = {
    delayMs: wholeNumber('expectedDelayMs', options.expectedDelayMs, TOLERANCE.delayMs, 0),
    graceMs: wholeNumber('graceMs', options.graceMs, TOLERANCE.graceMs, 0),
  };
  const sessions = createSessions(backgroundTimer);
  const { [CAPABILITIES]: capabilities } = options.registrations as Registrations & WithCapabilities;
  const context: ReconcilerContext = {
    parts,
    rows: tasks.rows,
    observe: observeReportWith(parts),
    observeState: observeStateWith(parts),
    capabilities,
    snapshotMs: wholeNumber('snapshotMs', options.snapshotMs, 900_000, 60_000),
    call,
    sessions,
    schedule: (buy) => schedule?.(buy),
    tolerance,
    callMs,
    leaseMs: 2 * callMs,
    perSeller: wholeNumber('perSeller', options.perSeller, 4),
    concurrency: wholeNumber('concurrency', options.concurrency, 16),
    keepMs: wholeNumber('keepMs', options.keepMs, 365 * DAY_MS, DAY_MS, MOST_KEEP_MS),
    ...totalsOption(options),
    sleep,
    lookMs,
  };
  const readers = new Map<string, SnapshotReader>();
  const loops = [
    reconcileLoop(context),
    roundLoop(context, readers),
    readerRowsLoop(context, tasks.hashes, readers),
  ];
  let stopping = new AbortController();
  let running: Promise<unknown> | undefined;
  const begin = async (): Promise<void> => {
    stopping = new AbortController();
    running = Promise.all(loops.map((run) => run(stopping.signal)));
  };
  const end = async (): Promise<void> => {
    stopping.abort(new DOMException('The reconciler stops.', 'AbortError'));
    await running;
    await sessions.end();
  };
  const { start, stop } = startStop(begin, end);
  const source = { rows: tasks.rows, hashes: tasks.hashes, tolerance };
  const asking: DiscoverContext = {
    ...context,
    hashes: tasks.hashes,
    host: new URL(options.registrations.publicUrl).host,
    transport: transportOf(call),
  };
  return {
    ready: receiver.ready,
    start,
    stop,
    [Symbol.asyncDispose]: stop,
    account: async (query = {}) => {
      onlyKnown('account', query, QUERY);
      return accountOf(source, query);
    },
    snapshot: (type, read) => {
      requireReader(readers, type, read);
      readers.set(type, read);
    },
    compare: async (query) => {
      onlyKnown('compare', query, COMPARED);
      if (!context.totals) {
        throw new ConfigError('compare: needs the option ours of createReconciler. Give the function.');
      }
      const of = {
        agentUrl: text('agentUrl', query.agentUrl),
        mediaBuyId: text('mediaBuyId', query.mediaBuyId),
      };
      return compareNow(context, tasks.hashes, of);
    },
    // The file is loaded at the first call, because most users never lose a store and so never call `discover`.
    discover: async (query) => (await import('./discover.ts')).discovered(asking, query),
    [STREAM_PAGES]: (query) => streamsOf(source, query),
  };
}
