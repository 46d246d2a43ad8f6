// Decides if this machine's clock is wrong, when a signature is outside its time window (verification.md §2.35).
// Made by `misconfiguration.ts` when the first delivery fails check 5 (the time window) or 10 (the signature). It never
// accepts a delivery; if the clock is wrong, the answer is 503 instead of 401.

import type { LateDelivery, SetUpWatch, SignatureWindow } from '../auth/auth-contract.ts';
import { windowHolds } from '../auth/rfc9421/checks.ts';
import type { Candidate } from '../keys/key-resolver.ts';
import type { Unavailability } from '../shared/outcome.ts';
import type { SenderEntry } from '../config/sender-entry.ts';
import type { SetUpKnowledge, SetUpParts, TrialPace } from './trial-pace.ts';

/** Minimum time between two requests for the store's time. Ms. */
const STORE_CLOCK_MS = 10_000;
/**
 * Two clocks that differ by less than this agree. The request for the time takes a while, and a signature's time window
 * may end meanwhile. Ms.
 */
const AGREE_MS = 1_000;
/** After a delivery inside its time window, this machine's clock is taken to be right for this long. Ms. */
const INSIDE_MS = 600_000;
/**
 * The number of consecutive deliveries outside their time windows that count as evidence against this clock. If the
 * store has a clock, it is the number of operators that sent such deliveries.
 */
const ROW = 3;
/** Largest difference in how far two consecutive deliveries of one series are off this clock. Ms. */
const ALIKE_MS = 60_000;

/**
 * A series of authentic deliveries outside their time windows by similar amounts, without a delivery inside its window
 * between them.
 */
interface Row {
  /**
   * The value of `SetUpKnowledge.insideAt` when the series began. A later value means that a delivery was inside its
   * window, which ends the series.
   */
  readonly insideAt: number | undefined;
  /** Time by which the last delivery was signed ahead of this clock; negative if behind. Ms. */
  offsetMs: number;
  count: number;
  readonly operators: Set<string>;
}

/** The state of the clock trial. All times are from this process's clock, in Unix ms. */
interface ClockTrialContext extends SetUpParts {
  readonly known: SetUpKnowledge;
  /**
   * The last answer of the store to a request for its time. `offsetMs`: the time by which the store's clock was ahead.
   * `at`: the time of the request.
   */
  asked: { readonly offsetMs: number; readonly at: number } | undefined;
  row: Row | undefined;
  /** The last error of this machine's clock that a trial found. */
  found: Finding | undefined;
}

interface Finding {
  /** Correction to be added to this machine's clock. Ms. */
  readonly offsetMs: number;
  /** Name of the store whose clock revealed the error. Absent if only signatures revealed it. */
  readonly store?: string;
}

const within = (a: number, b: number, ms: number): boolean => Math.abs(a - b) < ms;

/**
 * Returns the time in ms by which the store's clock is ahead of this one. Undefined if the store has no clock of its
 * own.
 * @throws the store's errors.
 */
async function storeOffset(context: ClockTrialContext): Promise<number | undefined> {
  const { store, asked, now } = context;
  if (!store.clock) return undefined;
  const before = now();
  if (asked && within(before, asked.at, STORE_CLOCK_MS)) return asked.offsetMs;
  const told = await store.clock();
  const offsetMs = Math.round(told - (before + now()) / 2);
  if (!Number.isFinite(offsetMs)) return undefined;
  context.asked = { offsetMs, at: before };
  return offsetMs;
}

/**
 * Returns this clock's error if the signature is inside its time window by the store's clock but not by this machine's.
 */
async function byStore(
  context: ClockTrialContext,
  window: SignatureWindow,
  arrivedAt: number,
): Promise<Finding | undefined> {
  const offsetMs = await storeOffset(context);
  if (offsetMs === undefined || Math.abs(offsetMs) < AGREE_MS) return undefined;
  if (!windowHolds(window, arrivedAt + offsetMs)) return undefined;
  return { offsetMs, store: context.store.name };
}

/**
 * Returns the host of the operator that publishes the keys. Several agents of one operator share a clock, so they count
 * once as evidence.
 */
function operatorOf({ brandJsonUrl, agentUrl }: SenderEntry): string {
  return new URL(brandJsonUrl ?? agentUrl).host;
}

/**
 * Returns this clock's error if `ROW` consecutive signed deliveries contradict this clock. If the store has a clock,
 * that clock has not shown the error, so the deliveries must be from `ROW` operators.
 */
function byRow(
  context: ClockTrialContext,
  { created }: SignatureWindow,
  arrivedAt: number,
  signer: SenderEntry,
): Finding | undefined {
  const { insideAt } = context.known;
  const offsetMs = created * 1000 - arrivedAt;
  const last = context.row;
  const goesOn = last?.insideAt === insideAt && within(last?.offsetMs ?? 0, offsetMs, ALIKE_MS);
  const row = last && goesOn ? last : { insideAt, offsetMs, count: 0, operators: new Set<string>() };
  context.row = row;
  row.offsetMs = offsetMs;
  row.count += 1;
  if (row.operators.size < ROW) row.operators.add(operatorOf(signer));
  if (insideAt !== undefined && within(arrivedAt, insideAt, INSIDE_MS)) return undefined;
  const shown = context.store.clock ? row.operators.size : row.count;
  return shown < ROW ? undefined : { offsetMs };
}

/**
 * The result of a trial that proves something. `found`: the error of this clock; undefined if the delivery shows none.
 */
interface Tried {
  readonly found: Finding | undefined;
}

/**
 * Judges this clock by one late delivery. Undefined if the delivery proves nothing: its signature is wrong, or cannot
 * be verified now while the store's clock shows no error.
 */
async function tryClock(
  context: ClockTrialContext,
  late: LateDelivery,
  arrivedAt: number,
  own: readonly Candidate[],
): Promise<Tried | undefined> {
  const signer = own.length > 0 ? await late.signer(own) : 'undecided';
  if (signer === undefined) return undefined;
  const byClock = await byStore(context, late.window, arrivedAt);
  if (!byClock && signer === 'undecided') return undefined;
  const found =
    byClock ?? (signer === 'undecided' ? undefined : byRow(context, late.window, arrivedAt, signer.sender));
  if (found) {
    context.found = found;
    context.known.offsetMs = found.offsetMs;
  }
  return { found };
}

const OUR_CLOCK = 'deliveries are answered 503 until it is corrected (NTP)';

/**
 * Returns the alarm's text. If only signatures revealed the error, the text names other causes: the seller's clock, or
 * a replay of recorded deliveries.
 */
function told({ offsetMs, store }: Finding): string {
  const seconds = Math.abs(Math.round(offsetMs / 1000));
  if (store !== undefined) {
    const side = offsetMs > 0 ? 'behind' : 'ahead';
    return `This machine's clock is ${seconds} s ${side}, by the clock of the ${store} store: ${OUR_CLOCK}.`;
  }
  const side = offsetMs > 0 ? 'ahead of' : 'behind';
  return `${ROW} signed deliveries in a row are ${seconds} s ${side} this machine's clock, and none was inside its window for 10 min. If the clock is wrong, ${OUR_CLOCK}. If it is right, the seller's is wrong, or this is a replay of recorded deliveries: change nothing.`;
}

function skewed({ raiseAlarm }: ClockTrialContext, found: Finding): Unavailability {
  const message = told(found);
  const offsetMs = Math.round(found.offsetMs / 1000) * 1000;
  raiseAlarm({ code: 'clock_skew', message, offsetMs, proved: found.store !== undefined });
  return { kind: 'unavailable', code: 'clock_skew', check: 5, detail: message };
}

/**
 * Answers a late delivery with 503 if the clock error that an earlier trial found explains it. Undefined if no error is
 * known, or if the delivery is late by the corrected clock too.
 */
function asKnown(
  context: ClockTrialContext,
  late: LateDelivery,
  arrivedAt: number,
): Unavailability | undefined {
  const { known, found } = context;
  // `offsetMs` is undefined if a later delivery inside its time window has disproved the clock error.
  if (!found || known.offsetMs === undefined) return undefined;
  return windowHolds(late.window, arrivedAt + known.offsetMs) ? skewed(context, found) : undefined;
}

/**
 * Returns the senders whose limit of trials this trial counts against. If no keys could be fetched, all senders share
 * one name.
 */
function names({ candidates, undecided }: Awaited<ReturnType<LateDelivery['find']>>): Iterable<string> {
  if (candidates.length > 0) return new Set(candidates.map(({ sender }) => sender.agentUrl));
  return undecided.length > 0 ? [''] : [];
}

/**
 * Makes the function that decides, after check 5 (the time window) failed, if this receiver's clock is wrong
 * (verification.md §2.35). It never accepts a delivery. It finds keys as for any delivery; after a signature that does
 * not verify, it verifies none of that sender for a second.
 *
 * If keys cannot be fetched, only the store's clock can decide: to a clock that is years off, no TLS certificate is
 * valid. It rejects with a Fault if the store's clock does not answer.
 */
export function clockTrial(
  parts: SetUpParts,
  known: SetUpKnowledge,
  pace: TrialPace,
): SetUpWatch['outsideWindow'] {
  const { raiseAlarm, store, now, config } = parts;
  const own = { asked: undefined, row: undefined, found: undefined };
  const context: ClockTrialContext = { raiseAlarm, store, now, config, known, ...own };
  return async ({ arrivedAt }, late) => {
    const before = asKnown(context, late, arrivedAt);
    if (before) return before;
    const search = await late.find();
    for (const name of names(search)) {
      const own = search.candidates.filter(({ sender }) => sender.agentUrl === name);
      const tried = await pace.once(name, arrivedAt, async () => {
        // Another trial may have found the clock's error while this one waited.
        const before = asKnown(context, late, arrivedAt);
        return before ? { found: undefined } : tryClock(context, late, arrivedAt, own);
      });
      const ours = tried?.found ? skewed(context, tried.found) : asKnown(context, late, arrivedAt);
      // The delivery has been used as evidence. It must not count again if another sender publishes the same key.
      if (ours || tried) return ours;
    }
    return undefined;
  };
}
