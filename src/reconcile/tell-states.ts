// Compares a snapshot (an answer with all current states) with the stored states, and passes the changes to the
// handlers (owed.md §6.4 to §6.7). Called by ask-seller.ts, snapshots.ts and state-readers.ts.
import type { JsonObject } from '../codec/members.ts';
import { MAX_TEXT, printableText } from '../codec/printable.ts';
import { endPayload } from '../events/state-reading.ts';
import type { PulledState } from '../receiver/observe-state.ts';
import type { BuyStream } from '../registrations/streams.ts';
import { isOfKind, UnfitObservation } from '../shared/errors.ts';
import { judged, SETTLE_MS, type Judged, type SnapshotAnswer, type ToldState } from '../states/judge.ts';
import { MOST_STATES, type StateHolder, statesIn } from '../states/states.ts';
import type { RegistrationRows } from '../stores/store.ts';
import type { Held, ReconcilerContext } from './context.ts';
import { impairmentsIn, nothingImpaired } from './snapshot-answer.ts';

/**
 * The transaction in which an answer is stored, the time of the request, and the current time. Times are on the store's
 * clock, Unix ms.
 */
export interface SnapshotStep {
  readonly rows: RegistrationRows;
  readonly askedAt: number;
  readonly now: number;
}

/** The changes in a snapshot that handlers must be informed of. */
export type News = Pick<Judged, 'told' | 'isFull'>;

export const NO_NEWS: News = { told: [], isFull: false };

/**
 * The result of comparing a snapshot: the changes for the handlers, and the media buy or subscription with its new
 * states.
 */
export interface Snapped<S extends StateHolder> extends News {
  /**
   * The media buy or subscription with its new states. If no state has changed, it is the object that was passed in.
   */
  readonly holder: S;
}

/** Compares the impairments in an answer with the stored ones. @param row the row of the media buy in the answer. */
export function snappedBuy(step: SnapshotStep, stream: BuyStream, row: JsonObject): Snapped<BuyStream> {
  const answer = impairmentsIn(row, step.askedAt);
  if (!answer) return { holder: stream, ...NO_NEWS };
  return snapped(step, stream, answer, { most: MOST_STATES.stream, since: stream.since });
}

/** Ends the open impairments of a terminal media buy. This needs no answer of the seller (owed.md §6.4). */
export const endedBuy = (rows: RegistrationRows, stream: BuyStream, now: number): Snapped<BuyStream> =>
  snapped({ rows, askedAt: now, now }, stream, nothingImpaired(now), {
    most: MOST_STATES.stream,
    since: stream.since,
  });

export function snapped<S extends StateHolder>(
  { rows, askedAt, now }: SnapshotStep,
  holder: S,
  answer: SnapshotAnswer,
  limits: { readonly most: number; readonly since: number },
): Snapped<S> {
  const kept = statesIn(holder, now);
  const isGone = (key: string): boolean => rows.eventState(key) === undefined;
  // The seller may have stopped sending the event of a state that is not handled yet. So the event is acknowledged
  // here, and a worker handles it (owed.md §6.1).
  for (const { key, keptAt } of kept) {
    if (key !== undefined && keptAt + SETTLE_MS <= askedAt) rows.acknowledge(key);
  }
  const { states, ...is } = judged(kept, answer, { ...limits, isGone });
  return { holder: states === kept ? holder : { ...holder, states }, ...is };
}

/** The media buy or subscription to which the states belong. */
export type Holder = Pick<PulledState, 'sender' | 'family' | 'mediaBuyId' | 'subscription' | 'holder'>;

/** Passes changed impairments of a media buy to the handlers. @param id the id of the row that stores the media buy. */
export const tellImpairments = (
  context: ReconcilerContext,
  { sender, id, mediaBuyId }: Pick<Held, 'sender' | 'id'> & { readonly mediaBuyId: string },
  news: News,
  stopping: AbortSignal,
): Promise<void> =>
  tellStates(
    context,
    { sender, family: 'impairment', mediaBuyId, holder: { kind: 'stream', id } },
    news,
    stopping,
  );

/**
 * Passes changed states to the handlers. If a state cannot be stored, an alarm is raised, and the other states follow.
 * If the process stops meanwhile, the next snapshot reports the remaining states.
 */
export async function tellStates(
  context: ReconcilerContext,
  of: Holder,
  { told, isFull }: News,
  stopping: AbortSignal,
): Promise<void> {
  if (isFull) alarm(context, of, 'cap_near', FULL, { limit: 'states' });
  for (const one of told) {
    if (stopping.aborted) return;
    if ((await isNew(context, of, one)) && one.isMissed && (await promisesWebhooks(context, of))) {
      alarm(context, of, 'impairment_missed', one.state.ended ? MISSED_END : MISSED, { id: one.state.id });
    }
  }
}

async function isNew(
  { observeState, parts }: ReconcilerContext,
  of: Holder,
  { entry, state, seen }: ToldState,
): Promise<boolean> {
  const { id, at } = state;
  const payload = entry?.payload ?? endPayload(of.family, { id, from: seen?.to, at });
  try {
    return (await observeState({ ...of, payload, state, seen })).kind === 'accepted';
  } catch (error) {
    if (!isOfKind(error, UnfitObservation)) throw error;
    const message = `A ${of.family} of the seller cannot be kept, and no handler is told: ${error.message}`;
    parts.raiseAlarm({ code: 'answer_refused', sender: of.sender, message });
    return false;
  }
}

/**
 * True if the seller declares that it sends webhooks for impairments. A seller that declares nothing does not promise
 * any (owed.md §6.2).
 */
async function promisesWebhooks(
  { capabilities }: ReconcilerContext,
  { sender, mediaBuyId }: Holder,
): Promise<boolean> {
  return mediaBuyId !== undefined && (await capabilities.of(sender)).surfaces?.includes('webhook') === true;
}

const FULL = 'has more states than are kept: the latest are told, others are not. Ask the seller.';
const MISSED = 'was read from a snapshot: no webhook brought it. Handlers are told now. Ask the seller.';
const MISSED_END =
  'has ended, as a snapshot shows: no webhook brought its end. Handlers are told now. Ask the seller.';

function alarm(
  { parts }: ReconcilerContext,
  { sender, family, mediaBuyId, subscription }: Holder,
  code: 'cap_near' | 'impairment_missed',
  says: string,
  more: { readonly id?: string; readonly limit?: string },
): void {
  const of = mediaBuyId ?? subscription?.subscriberId ?? '';
  const name = [family, ...(more.id === undefined ? [] : [more.id]), 'of', of];
  parts.raiseAlarm({
    code,
    sender,
    ...(mediaBuyId !== undefined && { mediaBuyId }),
    ...more,
    message: `${name.map((word) => printableText(word, MAX_TEXT)).join(' ')} ${says}`,
  });
}
