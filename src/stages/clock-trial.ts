import type { LateDelivery, SetUpWatch, SignatureWindow } from '../auth/auth-contract.ts';
import { windowHolds } from '../auth/rfc9421/checks.ts';
import type { Candidate } from '../keys/key-resolver.ts';
import type { Unavailability } from '../shared/outcome.ts';
import type { SenderEntry } from '../config/sender-entry.ts';
import type { SetUpKnowledge, SetUpParts, TrialPace } from './trial-pace.ts';

/** The store's clock is asked at most once in so many ms. */
const STORE_CLOCK_MS = 10_000;
/** Clocks that are less apart agree: to ask the store takes time, and a window may end in between. Ms. */
const AGREE_MS = 1_000;
/** One that was inside its window speaks for this clock so long. Ms. */
const INSIDE_MS = 600_000;
/** Deliveries in a row that speak against it. */
const ROW = 3;
/** How far apart two of a row are at most. Ms. */
const ALIKE_MS = 60_000;

/** Authentic deliveries outside their windows, by a like amount, with none inside between them. */
interface Row {
  /** `SetUpKnowledge.insideAt`, as it was. */
  readonly insideAt: number | undefined;
  /** By how much the last one was signed ahead of this clock. Ms. */
  offsetMs: number;
  count: number;
  readonly operators: Set<string>;
}

/** Instants are this process' own, Unix ms. */
interface ClockTrialContext extends SetUpParts {
  readonly known: SetUpKnowledge;
  /** The store's clock, as it was asked last. */
  asked: { readonly offsetMs: number; readonly at: number } | undefined;
  row: Row | undefined;
  /** What was found last. */
  found: Finding | undefined;
}

interface Finding {
  /** What has to be added to this clock. Ms. */
  readonly offsetMs: number;
  /** The store whose clock says so; absent: what was signed alone says so. */
  readonly store?: string;
}

const within = (a: number, b: number, ms: number): boolean => Math.abs(a - b) < ms;

/** How far the store's clock is ahead of this one; undefined where it has none of its own. @throws what the store throws. */
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

/** The window does not hold here, and does by a clock that is not this machine's. */
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

/** The operator that publishes the keys: several agents of one operator have one clock. */
function operatorOf({ brandJsonUrl, agentUrl }: SenderEntry): string {
  return new URL(brandJsonUrl ?? agentUrl).host;
}

/** By those who sign. A store whose clock agrees with this one takes three of them to be wrong too. */
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

/** An authentic delivery, and what it shows of this clock. */
interface Tried {
  readonly found: Finding | undefined;
}

/** One delivery, whose key is found and tried. Undefined: it is not known to be authentic, and shows nothing. */
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

/** A row may be the seller's doing, or anybody's who has recorded what it sent. */
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

/** By what was found before: the sender that signed it. */
function asKnown(
  context: ClockTrialContext,
  late: LateDelivery,
  arrivedAt: number,
): Unavailability | undefined {
  const { known, found } = context;
  // One that is inside has forgotten it.
  if (!found || known.offsetMs === undefined) return undefined;
  return windowHolds(late.window, arrivedAt + known.offsetMs) ? skewed(context, found) : undefined;
}

/** Whom a trial is counted for. Where keys could not be had, nobody: one trial for all of those. */
function names({ candidates, undecided }: Awaited<ReturnType<LateDelivery['find']>>): Iterable<string> {
  if (candidates.length > 0) return new Set(candidates.map(({ sender }) => sender.agentUrl));
  return undecided.length > 0 ? [''] : [];
}

/**
 * After check 5 failed: whether this receiver's clock is what is wrong (verification.md §2.35). Accepts nothing. Keys are
 * looked for as for any delivery; of a sender no signature is verified for a second after a wrong one. Where keys cannot be
 * had (by a clock that is years off no certificate holds) the store's clock alone can say it. Rejects with a Fault where that clock cannot
 * be had: then nobody can.
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
        // Perhaps by a trial that was waited for.
        const before = asKnown(context, late, arrivedAt);
        return before ? { found: undefined } : tryClock(context, late, arrivedAt, own);
      });
      const ours = tried?.found ? skewed(context, tried.found) : asKnown(context, late, arrivedAt);
      // An authentic one counts once, whoever else has its key.
      if (ours || tried) return ours;
    }
    return undefined;
  };
}
