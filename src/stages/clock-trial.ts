import type { LateDelivery, SetUpWatch } from '../auth/contract.ts';
import { windowHolds, type SignatureWindow } from '../auth/rfc9421/window.ts';
import { putBounded } from '../bounded.ts';
import type { Candidate } from '../keys/contract.ts';
import type { Unavailability } from '../outcome.ts';
import type { SenderEntry } from '../senders.ts';
import type { SetUpKnowledge, SetUpParts } from './set-up.ts';
import type { TrialPace } from './trial-pace.ts';

/** The store's clock is asked at most once in so many ms. */
const STORE_CLOCK_MS = 10_000;
/** Clocks that are less apart agree: to ask the store takes time, and a window may end in between. Ms. */
const AGREE_MS = 1_000;
/** What several operators' deliveries show counts so long. Ms. */
const WITNESS_MS = 600_000;
/** Operators that have to agree that it is this clock. One seller alone is told that it is the seller's. */
const WITNESSES = 3;
/** More than are ever needed. */
const MAX_OPERATORS = 100;

/** Instants are this process' own, Unix ms. */
interface Context extends SetUpParts {
  readonly known: SetUpKnowledge;
  /** The store's clock, as it was asked last. */
  asked: { readonly offsetMs: number; readonly at: number } | undefined;
  /** By operator, when one of its deliveries was outside last: signed ahead of this clock, or behind it. */
  readonly outside: Readonly<Record<'ahead' | 'behind', Map<string, number>>>;
}

interface Finding {
  /** What has to be added to this clock. Ms. */
  readonly offsetMs: number;
  readonly why: string;
}

const within = (a: number, b: number, ms: number): boolean => Math.abs(a - b) < ms;

/** How far the store's clock is ahead of this one; undefined where it has none of its own. @throws what the store throws. */
async function storeOffset(context: Context): Promise<number | undefined> {
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
  context: Context,
  window: SignatureWindow,
  arrivedAt: number,
): Promise<Finding | undefined> {
  const offsetMs = await storeOffset(context);
  if (offsetMs === undefined || Math.abs(offsetMs) < AGREE_MS) return undefined;
  if (!windowHolds(window, arrivedAt + offsetMs)) return undefined;
  return { offsetMs, why: `by the clock of the ${context.store.name} store` };
}

/** Whoever publishes the keys: several agents of one operator have one clock. */
function operatorOf({ brandJsonUrl, agentUrl }: SenderEntry): string {
  return new URL(brandJsonUrl ?? agentUrl).host;
}

/** By those who sign: three operators on one side, and none inside. */
function byOperators(
  { known, outside }: Context,
  { created, expires }: SignatureWindow,
  arrivedAt: number,
  signer: SenderEntry,
): Finding | undefined {
  const middle = ((created + expires) / 2) * 1000;
  const seen = outside[middle > arrivedAt ? 'ahead' : 'behind'];
  putBounded(seen, operatorOf(signer), arrivedAt, MAX_OPERATORS);
  if (known.insideAt !== undefined && within(arrivedAt, known.insideAt, WITNESS_MS)) return undefined;
  const names = [...seen].filter(([, at]) => within(arrivedAt, at, WITNESS_MS)).map(([name]) => name);
  if (names.length < WITNESSES) return undefined;
  const offsetMs = Math.round(middle - arrivedAt);
  return { offsetMs, why: `by what ${names.slice(-WITNESSES).join(', ')} signed` };
}

/** One delivery, whose key is found and tried. */
async function tryClock(
  context: Context,
  late: LateDelivery,
  arrivedAt: number,
  own: readonly Candidate[],
): Promise<Finding | undefined> {
  const signer = own.length > 0 ? await late.signer(own) : 'undecided';
  if (signer === undefined) return undefined;
  const found =
    (await byStore(context, late.window, arrivedAt)) ??
    (signer === 'undecided' ? undefined : byOperators(context, late.window, arrivedAt, signer.sender));
  if (found) context.known.offsetMs = found.offsetMs;
  return found;
}

function skewed({ raiseAlarm }: Context, { offsetMs, why }: Finding): Unavailability {
  const offsetSeconds = Math.round(offsetMs / 1000);
  const side = offsetSeconds > 0 ? 'behind' : 'ahead';
  const message = `This machine's clock is ${Math.abs(offsetSeconds)} s ${side}, ${why}: deliveries get 503 until it is set right (NTP).`;
  raiseAlarm({ code: 'clock_skew', message, offsetSeconds, proved: true });
  return { kind: 'unavailable', code: 'clock_skew', check: 5, detail: message };
}

/** By what was found before: whoever signed it. */
function asKnown(context: Context, late: LateDelivery, arrivedAt: number): Unavailability | undefined {
  const { offsetMs } = context.known;
  if (offsetMs === undefined || !windowHolds(late.window, arrivedAt + offsetMs)) return undefined;
  return skewed(context, { offsetMs, why: 'as deliveries before this one have shown' });
}

/** Whom a trial is counted for. Where keys could not be had, nobody: one trial for all of those. */
function names({ candidates, undecided }: Awaited<ReturnType<LateDelivery['find']>>): Iterable<string> {
  if (candidates.length > 0) return new Set(candidates.map(({ sender }) => sender.agentUrl));
  return undecided.length > 0 ? [''] : [];
}

/**
 * After check 5 failed: whether this receiver's clock is what is wrong (verification.md §2.35). Accepts nothing. Keys are
 * looked for as for any delivery; its signature is verified once a second a sender. Where keys cannot be had (by a clock
 * that is years off no certificate holds) the store's clock alone can say it. Rejects with a Fault where that clock cannot
 * be had: then nobody can.
 */
export function clockTrial(
  parts: SetUpParts,
  known: SetUpKnowledge,
  pace: TrialPace,
): SetUpWatch['outsideWindow'] {
  const outside = { ahead: new Map<string, number>(), behind: new Map<string, number>() };
  const { raiseAlarm, store, now, config } = parts;
  const context: Context = { raiseAlarm, store, now, config, known, asked: undefined, outside };
  return async ({ arrivedAt }, late) => {
    const before = asKnown(context, late, arrivedAt);
    if (before) return before;
    const search = await late.find();
    for (const name of names(search)) {
      const own = search.candidates.filter(({ sender }) => sender.agentUrl === name);
      const found = await pace.once(name, arrivedAt, () => tryClock(context, late, arrivedAt, own));
      const ours = found ? skewed(context, found) : asKnown(context, late, arrivedAt);
      if (ours) return ours;
    }
    return undefined;
  };
}
