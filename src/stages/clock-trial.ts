// Finds out whether this machine's clock is wrong when a signature is outside its window (verification.md
// §2.35).
// Made by `misconfiguration.ts` when the first delivery fails check 5. Accepts nothing: a wrong clock turns
// 401 into 503.

import type { LateDelivery, SetUpWatch, SignatureWindow } from '../auth/auth-contract.ts';
import { windowHolds } from '../auth/rfc9421/checks.ts';
import type { Candidate } from '../keys/key-resolver.ts';
import type { Unavailability } from '../shared/outcome.ts';
import type { SenderEntry } from '../config/sender-entry.ts';
import type { SetUpKnowledge, SetUpParts, TrialPace } from './trial-pace.ts';

/** Minimum time between two questions to the store's clock. */
const STORE_CLOCK_MS = 10_000;
/** Clocks closer than this agree: asking the store takes time, and a window may end meanwhile. Ms. */
const AGREE_MS = 1_000;
/** A delivery inside its window vouches for this clock for this long. Ms. */
const INSIDE_MS = 600_000;
/** Deliveries in a row that it takes to speak against this clock. */
const ROW = 3;
/** Largest difference between two deliveries of one row. Ms. */
const ALIKE_MS = 60_000;

/** Authentic deliveries that are outside their windows by similar amounts, with none inside between them. */
interface Row {
  /** `SetUpKnowledge.insideAt` at the row's beginning. */
  readonly insideAt: number | undefined;
  /** Time by which the last one was signed ahead of this clock. Ms. */
  offsetMs: number;
  count: number;
  readonly operators: Set<string>;
}

/** Instants are of this process's clock, in Unix ms. */
interface ClockTrialContext extends SetUpParts {
  readonly known: SetUpKnowledge;
  /** The last answer of the store's clock. */
  asked: { readonly offsetMs: number; readonly at: number } | undefined;
  row: Row | undefined;
  /** The last finding. */
  found: Finding | undefined;
}

interface Finding {
  /** Correction to be added to this clock. Ms. */
  readonly offsetMs: number;
  /** The store whose clock showed it; absent if signatures alone did. */
  readonly store?: string;
}

const within = (a: number, b: number, ms: number): boolean => Math.abs(a - b) < ms;

/**
 * The time by which the store's clock is ahead of this one; undefined if the store has no clock of its own.
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

/** Finds an error if the window holds by the store's clock but not by this machine's. */
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

/** The operator that publishes the keys: several agents of one operator share one clock. */
function operatorOf({ brandJsonUrl, agentUrl }: SenderEntry): string {
  return new URL(brandJsonUrl ?? agentUrl).host;
}

/**
 * Finds an error by a row of signed deliveries. If the store's clock agrees with this one, the row needs
 * three operators.
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

/** An authentic delivery, and what it shows about this clock. */
interface Tried {
  readonly found: Finding | undefined;
}

/**
 * Judges one delivery after its key was found and tried. Undefined if it is not known to be authentic: then
 * it shows nothing.
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

/** A row may also be the seller's doing, or that of anybody who recorded its deliveries. */
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

/** Applies an earlier finding to this delivery, without a new trial. */
function asKnown(
  context: ClockTrialContext,
  late: LateDelivery,
  arrivedAt: number,
): Unavailability | undefined {
  const { known, found } = context;
  // `offsetMs` is undefined if a delivery inside its window has cleared the finding.
  if (!found || known.offsetMs === undefined) return undefined;
  return windowHolds(late.window, arrivedAt + known.offsetMs) ? skewed(context, found) : undefined;
}

/**
 * The senders for which a trial is counted. If no keys could be fetched, one shared trial counts for all of
 * them.
 */
function names({ candidates, undecided }: Awaited<ReturnType<LateDelivery['find']>>): Iterable<string> {
  if (candidates.length > 0) return new Set(candidates.map(({ sender }) => sender.agentUrl));
  return undecided.length > 0 ? [''] : [];
}

/**
 * Decides, after check 5 failed, whether this receiver's clock is wrong (verification.md §2.35). Accepts
 * nothing. Finds keys as for any delivery. After a wrong signature, verifies none of that sender for a
 * second. If keys cannot be fetched, only the store's clock can decide: under a clock that is years off, no
 * certificate is valid. Rejects with a Fault if that clock does not answer: then nothing can be decided.
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
        // Another trial may have found the wrong clock while this one waited.
        const before = asKnown(context, late, arrivedAt);
        return before ? { found: undefined } : tryClock(context, late, arrivedAt, own);
      });
      const ours = tried?.found ? skewed(context, tried.found) : asKnown(context, late, arrivedAt);
      // An authentic delivery counts once, even if other senders publish the same key.
      if (ours || tried) return ours;
    }
    return undefined;
  };
}
