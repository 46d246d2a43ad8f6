// Requests the state of a media buy, or its missing reports, from the seller (owed.md §1.2, §4). It stores the outcome
// in the media buy's stream (the record of its reports). reconciler.ts calls it; compare-totals.ts uses `after`.
import { MAX_TEXT, printableText } from '../codec/printable.ts';
import type { Observed } from '../events/observation.ts';
import type { PollFailure } from '../poll/failure.ts';
import type { JsonObject } from '../registrations/answer-json.ts';
import { accountArgument } from '../registrations/operation-rows.ts';
import { type BuyStream, buyStreamIn, streamRow } from '../registrations/streams.ts';
import { freePlace, type Place } from '../registrations/places.ts';
import { ConfigError, isOfKind, messageOf, UnfitObservation } from '../shared/errors.ts';
import type { RegistrationRows } from '../stores/store.ts';
import { DAY_MS, type Frequency, type Period, windowPeriod } from '../windows/calendar.ts';
import { type Run, type Runs, union, without } from '../windows/runs.ts';
import { clockIn, hasReports } from '../windows/stream.ts';
import { type Held, heldRow, type ReconcilerContext } from './context.ts';
import { factsIn, mediaBuyRows, isOlder, withFacts, withWord } from './media-buys.ts';
import { type AfterTry, missedAgain } from './missed.ts';
import { type PullCall, pulledWindows, unpullable } from './pull.ts';
import { type Answered, askSeller, pauseOf } from './question.ts';
import { withSchedule } from './schedule-option.ts';
import { NO_NEWS, snappedBuy, tellImpairments } from './tell-states.ts';

/** After this many failed requests about a media buy, the reconciler works with the facts that it already has. */
export const MOST_ASKS = 3;
/** Half of the wait after the first failed request. Each further failure doubles the wait, up to a day. Ms. */
const ASK_AGAIN_MS = 60_000;

/**
 * After this many failed requests (some eight hours), an answer is accepted even if it is older than the last accepted
 * one.
 */
const MOST_OLDER = 8;

/**
 * The next action for a media buy: nothing, or one call to its seller. `place` is the call slot that the call occupies.
 * The slots limit the concurrent calls to one seller.
 */
export type Todo =
  | { readonly kind: 'nothing' }
  | { readonly kind: 'ask'; readonly stream: BuyStream; readonly place: Place; readonly askedAt: number }
  | { readonly kind: 'pull'; readonly stream: BuyStream; readonly place: Place; readonly call: PullCall }
  | { readonly kind: 'totals'; readonly stream: BuyStream; readonly place: Place; readonly now: number };

/**
 * Frees the call slot (`place`) that a call to the seller occupied. Then stores the outcome of the call in the media
 * buy's stream (its record), if this process still has the row's lease.
 */
export function after(
  { rows: store }: ReconcilerContext,
  held: Held,
  place: Place,
  { failure }: { readonly failure?: PollFailure },
  change: (stream: BuyStream, now: number, rows: RegistrationRows) => BuyStream,
): Promise<void> {
  return store.run(held.sender, (rows, now) => {
    freePlace(rows, now, place, failure && pauseOf(failure));
    const row = heldRow(rows, 'stream', held);
    if (!row) return;
    const changed = change(buyStreamIn(row), now, rows);
    // The media buy's record is due again immediately, because it may need another call to the seller.
    rows.save(streamRow(row, changed, 'open', { dueAt: Math.ceil(now) }));
  });
}

/** Requests the state of a media buy and its impairments from the seller (`get_media_buys`), and stores the answer. */
export async function ask(
  context: ReconcilerContext,
  held: Held,
  { stream, place, askedAt }: Extract<Todo, { kind: 'ask' }>,
  stopping: AbortSignal,
): Promise<void> {
  const { mediaBuyId } = stream;
  const args: JsonObject = { ...accountArgument(stream.account), media_buy_ids: [mediaBuyId] };
  const answered = await askSeller(context, held, stream, ['get_media_buys', args], stopping);
  const data = 'data' in answered ? answered.data : undefined;
  const row = mediaBuyRows(data, new Set([mediaBuyId])).get(mediaBuyId);
  const schedule = await scheduleOf(context, held, stream);
  let unverifiable: string | undefined;
  let news = NO_NEWS;
  await after(context, held, place, answered as { failure?: PollFailure }, (known, now, rows) => {
    unverifiable = undefined;
    news = NO_NEWS;
    if (stopping.aborted) return known;
    let heard = known;
    const facts = row && factsIn(row);
    if (row && facts) {
      const { holder, ...found } = snappedBuy({ rows, askedAt, now }, known, row);
      news = found;
      const isBehind = isOlder(holder, facts) && (known.asks ?? 0) < MOST_OLDER;
      const { asks: _asked, askAt: _at, ...is } = holder;
      if (!isBehind) return scheduled(context, held, withFacts(is, facts, now), schedule);
      heard = holder;
    }
    const is = scheduled(context, held, heard, schedule);
    const next = askedInVain(is, reasonOf(answered, row !== undefined), now);
    if (is.unverifiable === undefined) unverifiable = next.unverifiable;
    return next;
  });
  const { sender, id } = held;
  await tellImpairments(context, { sender, id, mediaBuyId }, news, stopping);
  if (unverifiable === undefined) return;
  context.parts.raiseAlarm({
    code: 'stream_unverifiable',
    sender: held.sender,
    mediaBuyId,
    message: `Which reports media buy ${printableText(mediaBuyId, MAX_TEXT)} owes is not known: get_media_buys fails (${unverifiable}). Give start, end and frequency by the option schedule, or ask the seller.`,
  });
}

const reasonOf = (answered: Answered, isThere: boolean): string => {
  if ('failure' in answered) return answered.failure.message;
  return isThere ? 'the answer is older than the last one' : 'the answer does not have the media buy';
};

/**
 * Returns the media buy's record after a failed request, with one more failure and the time of the next request. An
 * answer that is outdated, or lacks the media buy, is a failure too.
 */
function askedInVain({ unverifiable: _before, ...is }: BuyStream, error: string, now: number): BuyStream {
  const asks = (is.asks ?? 0) + 1;
  const isUnknown = asks >= MOST_ASKS && is.terms.length === 0 && hasReports(is);
  return {
    ...(asks >= MOST_ASKS ? withWord(is, now) : is),
    asks,
    askAt: now + Math.min(ASK_AGAIN_MS * 2 ** Math.min(asks, 11), DAY_MS),
    ...(isUnknown && { unverifiable: error }),
  };
}

/**
 * Calls the option `schedule` for facts about the media buy. If it throws, an alarm is raised, and the known facts
 * stay.
 */
async function scheduleOf(context: ReconcilerContext, { sender }: Held, stream: BuyStream): Promise<unknown> {
  const { mediaBuyId, products, ref } = stream;
  try {
    const buy = { agentUrl: sender, mediaBuyId, productIds: products, ...(ref !== undefined && { ref }) };
    return await context.schedule(buy);
  } catch (error) {
    misconfigured(context, sender, `schedule failed: ${messageOf(error)}`);
    return undefined;
  }
}

function scheduled(
  context: ReconcilerContext,
  { sender }: Held,
  stream: BuyStream,
  given: unknown,
): BuyStream {
  try {
    return withSchedule(stream, given);
  } catch (error) {
    if (!isOfKind(error, ConfigError)) throw error;
    misconfigured(context, sender, error.message);
    return stream;
  }
}

export const misconfigured = ({ parts }: ReconcilerContext, sender: string, message: string): void =>
  parts.raiseAlarm({ code: 'misconfigured', sender, message });

/**
 * Requests the reports of missing windows (report periods), and passes the returned reports to the handlers. Raises an
 * alarm for windows whose first request failed, and for windows that are given up.
 */
export async function pull(
  context: ReconcilerContext,
  held: Held,
  { stream, place, call }: Extract<Todo, { kind: 'pull' }>,
  stopping: AbortSignal,
): Promise<void> {
  const { frequency, run } = call;
  const cannot = unpullable(stream, frequency);
  const answered: Answered =
    cannot === undefined
      ? await askSeller(context, held, stream, ['get_media_buy_delivery', call.arguments], stopping)
      : { failure: { kind: 'refused', code: '', message: cannot } };
  const { got, refused } =
    'data' in answered ? await handedOn(context, held, stream, call, answered.data) : NOTHING_GOT;
  const failure = 'failure' in answered ? answered.failure : undefined;
  const error = refused ?? failure?.message ?? 'the answer has no data of the period';
  let news: Pick<AfterTry, 'fresh' | 'lost'> | undefined;
  await after(context, held, place, answered as { failure?: PollFailure }, (known, now) => {
    news = undefined;
    const runs = without([run], got);
    // A window may still be missing although the answer had its report, e.g. because an earlier call stored the same
    // event. It waits like a window whose request failed, because requesting it immediately would never end.
    const once = missedAgain(
      known,
      { frequency, runs: got, error: 'it was pulled before', isForGood: false },
      now,
    ).stream;
    if (stopping.aborted || runs.length === 0) return once;
    const less = unsupported(once, call, 'code' in answered ? answered.code : undefined);
    if (less) return less;
    const tried = missedAgain(once, { frequency, runs, error, isForGood: cannot !== undefined }, now);
    news = tried;
    return tried.stream;
  });
  const of = { frequency, error };
  tell(context, held, stream, { ...of, code: 'report_missing', runs: news?.fresh ?? [] });
  tell(context, held, stream, { ...of, code: 'report_unrecoverable', runs: news?.lost ?? [] });
}

/**
 * The result of passing on the reports in an answer. `got`: the windows whose reports are stored as events, now or by
 * an earlier call.
 */
interface HandedOn {
  readonly got: Runs;
  /** The reason why one of the reports was refused. Absent: none was refused. */
  readonly refused?: string;
}

const NOTHING_GOT: HandedOn = { got: [] };

/** A report that can never be stored, e.g. because it is too large, counts as refused. */
function unfit(error: unknown): Pick<Extract<Observed, { kind: 'refused' }>, 'kind' | 'detail'> {
  if (!isOfKind(error, UnfitObservation)) throw error;
  return { kind: 'refused', detail: error.message };
}

/** Passes the reports in an answer to the handlers, and returns the windows that these reports cover. */
async function handedOn(
  { observe }: ReconcilerContext,
  { sender }: Held,
  stream: BuyStream,
  call: PullCall,
  data: unknown,
): Promise<HandedOn> {
  let is = NOTHING_GOT;
  for (const { number, report } of pulledWindows(stream, call, data)) {
    const observed = await observe({ sender, mediaBuyId: stream.mediaBuyId, report }).catch(unfit);
    if (observed.kind === 'refused') is = { ...is, refused: observed.detail };
    else is = { ...is, got: union(is.got, [[number, number + 1]]) };
  }
  return is;
}

/**
 * `NO_GRANULARITY` and `NO_RANGES`: the error codes with which sellers refuse requests for single report periods, and
 * for ranges of dates.
 */
const NO_GRANULARITY = 'UNSUPPORTED_GRANULARITY';
export const NO_RANGES: ReadonlySet<string> = new Set(['DATE_RANGE_NOT_SUPPORTED', 'UNSUPPORTED_FEATURE']);

/**
 * Returns the media buy's record with the note that the seller does not support this form of request. Undefined if
 * `code` does not say so.
 */
function unsupported(
  stream: BuyStream,
  { frequency, isWindowed }: PullCall,
  code: string | undefined,
): BuyStream | undefined {
  if (code === undefined) return undefined;
  if (isWindowed && (code === NO_GRANULARITY || NO_RANGES.has(code))) {
    return { ...stream, granularities: (stream.granularities ?? []).filter((one) => one !== frequency) };
  }
  return NO_RANGES.has(code) ? { ...stream, hasRanges: false } : undefined;
}

function tell(
  { parts }: ReconcilerContext,
  { sender }: Held,
  stream: BuyStream,
  {
    code,
    runs,
    frequency,
    error,
  }: {
    readonly code: 'report_missing' | 'report_unrecoverable';
    readonly runs: Runs;
    readonly frequency: Frequency;
    readonly error: string;
  },
): void {
  const [first, last] = [runs[0], runs.at(-1)];
  if (!first || !last) return;
  const { start, end } = periodOf(stream, frequency, [first[0], last[1]]);
  const of = `${printableText(stream.mediaBuyId, MAX_TEXT)}, ${frequency}, ${start} to ${end}`;
  const says = {
    report_missing: `Reports of media buy ${of} did not come, and the first pull failed: ${error}. They are pulled again.`,
    report_unrecoverable: `Reports of media buy ${of} did not come and cannot be pulled: ${error}. Ask the seller for them.`,
  };
  parts.raiseAlarm({
    code,
    sender,
    mediaBuyId: stream.mediaBuyId,
    frequency,
    start,
    end,
    message: says[code],
  });
}

/** Returns the start and the end of consecutive report windows, in ISO 8601. */
function periodOf(
  stream: BuyStream,
  frequency: Frequency,
  [first, end]: Run,
): { readonly [K in keyof Period]: string } {
  const clock = clockIn(stream);
  return {
    start: new Date(windowPeriod(frequency, clock, first).start).toISOString(),
    end: new Date(windowPeriod(frequency, clock, end - 1).end).toISOString(),
  };
}
