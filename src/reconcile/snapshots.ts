// Requests the impairments of a seller's open media buys, a hundred in a call (owed.md §6.2). `reconciler.start` runs
// the loop. A round is one pass, in which the impairments of each open media buy are requested once.
import type { JsonObject } from '../codec/members.ts';
import type { Declared } from '../keys/declarations.ts';
import type { JsonObject as Arguments } from '../registrations/answer-json.ts';
import { accountArgument } from '../registrations/operation-rows.ts';
import { roundIn, roundRow, type SnapshotRound } from '../registrations/snapshot-rows.ts';
import { type BuyStream, buyStreamIn, isRegistered, streamRow } from '../registrations/streams.ts';
import { freePlace, type Place, takePlace } from '../registrations/places.ts';
import { limited } from '../shared/time-limits.ts';
import type { RegistrationRow, RegistrationRows } from '../stores/store.ts';
import { isTerminalBuy } from '../windows/ends.ts';
import { type Held, heldRow, type ReconcilerContext } from './context.ts';
import { dueLoop } from './due-loop.ts';
import { mediaBuyRows, standingIn } from './media-buys.ts';
import { type Answered, askSeller, cursorIn, pauseOf } from './question.ts';
import { isReaderRow, lookAtStates, type Readers } from './state-readers.ts';
import { snappedBuy, type Snapped, tellImpairments } from './tell-states.ts';

/** The most media buys in one call. */
const MOST_BUYS = 100;
/** The wait after the first failed request. It doubles with each further failure, up to `snapshotMs`. Ms. */
const FAILED_MS = 60_000;

export const roundLoop = (
  context: ReconcilerContext,
  readers: Readers,
): ((stopping: AbortSignal) => Promise<void>) =>
  dueLoop(context, {
    kind: 'snapshot',
    look: (row, stopping, called) =>
      isReaderRow(row)
        ? lookAtStates(context, readers, row, stopping)
        : lookAtRound(context, row, stopping, called),
    failed: 'The impairments of media buys could not be read: they are asked for again.',
  });

/** The media buys that one call requests together. */
interface Batch {
  /** The ids of the rows that store the media buys' streams (records), by media buy id. */
  readonly ids: ReadonlyMap<string, string>;
  /** The number of media buys on the page of the store, including those that are not requested. */
  readonly found: number;
  /** The store's cursor for the next page. */
  readonly next?: string | undefined;
}

/**
 * Requests the impairments of the next batch of media buys, with at most one call to the seller. Then ends the loop's
 * wait (`called`), because the row may be due again.
 */
async function lookAtRound(
  context: ReconcilerContext,
  row: RegistrationRow,
  stopping: AbortSignal,
  called: () => void,
): Promise<void> {
  if (stopping.aborted) return;
  const round = roundIn(row);
  if (round.began === undefined) await learn(context, row, round, stopping);
  const declared = await context.capabilities.of(row.sender);
  const batch = await batchOf(context, row, round, declared);
  if (batch.ids.size === 0) await passed(context, row, batch);
  else await asked(context, row, batch, stopping);
  called();
}

/**
 * Asks the seller for its capabilities at the beginning of a round (one pass over its media buys). They decide if
 * impairments are requested, and if an alarm is raised for a missed webhook.
 */
function learn(
  { capabilities, sessions, callMs }: ReconcilerContext,
  { sender }: Held,
  { ref }: SnapshotRound,
  stopping: AbortSignal,
): Promise<void> {
  // This request for capabilities gets half of `callMs`. The request for impairments may take `callMs`, and both must
  // fit into the row's lease, which is twice `callMs`.
  const limit = { ms: callMs / 2, reason: 'the snapshot is to be read' };
  return limited(limit, stopping, (signal) =>
    capabilities.ask({ agentUrl: sender, sessions, ...(ref !== undefined && { ref }) }, signal),
  ).catch(() => undefined);
}

/** True unless the seller declares that its impairments cannot be requested (owed.md §6.2). */
const hasSnapshots = ({ surfaces }: Declared): boolean =>
  surfaces === undefined || surfaces.includes('snapshot') || surfaces.includes('webhook');

/** True for editions of the protocol before 3.1, which have no impairments. */
const isBefore31 = (edition: string | undefined): boolean =>
  edition !== undefined && /^(?:[0-2]\.|3\.0$)/.test(edition);

/** Returns the protocol edition that the receiver is configured for; undefined if none is configured. */
function editionOf({ parts }: ReconcilerContext): string | undefined {
  const { name, keyPurposes } = parts.config.edition;
  return keyPurposes && name;
}

async function batchOf(
  context: ReconcilerContext,
  { sender, id }: Held,
  { after }: SnapshotRound,
  declared: Declared,
): Promise<Batch> {
  const of = { kind: 'stream', sender, list: id, limit: MOST_BUYS } as const;
  const { rows, next } = await context.rows.page({ ...of, ...(after !== undefined && { after }) });
  const { edition = editionOf(context) } = declared;
  const isAsked = (stream: BuyStream): boolean =>
    hasSnapshots(declared) && !isBefore31(stream.edition ?? edition) && mayBeImpaired(stream);
  const ids = rows.flatMap((row): readonly (readonly [string, string])[] => {
    const stream = buyStreamIn(row);
    return isRegistered(stream) && isAsked(stream) ? [[stream.mediaBuyId, row.id]] : [];
  });
  return { ids: new Map(ids), found: rows.length, next };
}

/** False for a media buy that is terminal and has no open impairment. */
const mayBeImpaired = ({ status, states = [] }: BuyStream): boolean =>
  !isTerminalBuy(status) || states.some(({ isEnded }) => !isEnded);

/** Goes on to the next page of media buys without a call, because no impairments have to be requested for this page. */
async function passed(
  { rows: store, snapshotMs }: ReconcilerContext,
  held: RegistrationRow,
  batch: Batch,
): Promise<void> {
  await store.run(held.sender, (rows, now) => {
    const row = heldRow(rows, 'snapshot', held);
    // If no open media buy is left, the row of the round is deleted, unless a media buy was added since the row was
    // read.
    const isEmpty = batch.found === 0 && roundIn(held).after === undefined;
    if (row && isEmpty && row.value === held.value) rows.save({ ...row, dueAt: null, expiresAt: 1 });
    else if (row) rows.save(behind(row, batch, { now, snapshotMs, failures: roundIn(row).failures ?? 0 }));
  });
}

async function asked(
  context: ReconcilerContext,
  held: RegistrationRow,
  batch: Batch,
  stopping: AbortSignal,
): Promise<void> {
  const { rows: store, perSeller } = context;
  const place: Place = { sender: held.sender, id: held.id, until: held.dueAt ?? 0 };
  const askedAt = await store.run(held.sender, (rows, now) => {
    const row = heldRow(rows, 'snapshot', held);
    const waitMs = row && takePlace(rows, now, place, perSeller);
    if (!row || waitMs === 0) return row && now;
    rows.save({ ...row, dueAt: Math.ceil(now + (waitMs ?? 0)) });
    return undefined;
  });
  if (askedAt === undefined) return;
  const round = roundIn(held);
  const answered = await askSeller(
    context,
    held,
    round,
    ['get_media_buys', argumentsOf(round, batch)],
    stopping,
  );
  const taken = await take(context, held, batch, { answered, askedAt, place, isStopping: stopping.aborted });
  for (const [mediaBuyId, one] of taken) {
    const id = batch.ids.get(mediaBuyId) ?? '';
    await tellImpairments(context, { sender: held.sender, id, mediaBuyId }, one, stopping);
  }
}

const argumentsOf = ({ account, page }: SnapshotRound, { ids }: Batch): Arguments => ({
  ...accountArgument(account),
  media_buy_ids: [...ids.keys()],
  pagination: { max_results: MOST_BUYS, ...(page && { cursor: page.cursor }) },
});

/** A request for impairments, and its outcome. */
interface Asked {
  readonly answered: Answered;
  readonly askedAt: number;
  readonly place: Place;
  readonly isStopping: boolean;
}

/**
 * Stores the impairments in an answer, and the position of the next request, in one transaction.
 * @returns the changes for the handlers, by media buy.
 */
function take(
  { rows: store, snapshotMs, leaseMs }: ReconcilerContext,
  held: Held,
  batch: Batch,
  { answered, askedAt, place, isStopping }: Asked,
): Promise<ReadonlyMap<string, Snapped<BuyStream>>> {
  const data = 'data' in answered ? answered.data : undefined;
  const found = mediaBuyRows(data, new Set(batch.ids.keys()));
  return store.run(held.sender, (rows, now) => {
    const taken = new Map<string, Snapped<BuyStream>>();
    freePlace(rows, now, place, 'failure' in answered ? pauseOf(answered.failure) : undefined);
    const row = heldRow(rows, 'snapshot', held);
    if (!row) return taken;
    if (isStopping) {
      rows.save({ ...row, dueAt: Math.ceil(now) });
      return taken;
    }
    for (const [mediaBuyId, said] of found) {
      const one = noted(rows, batch.ids.get(mediaBuyId) ?? '', said, { askedAt, now, leaseMs });
      if (one) taken.set(mediaBuyId, one);
    }
    rows.save(goneOn(row, batch, { now, askedAt, snapshotMs, data, brought: found.size }));
    return taken;
  });
}

/**
 * Stores the impairments of one media buy in its stream (record). If the media buy has changed, a request about its
 * state becomes due (owed.md §6.3).
 */
function noted(
  rows: RegistrationRows,
  id: string,
  said: JsonObject,
  { leaseMs, ...times }: { readonly askedAt: number; readonly now: number; readonly leaseMs: number },
): Snapped<BuyStream> | undefined {
  const row = rows.get('stream', id);
  if (!row || row.list === 'closed') return undefined;
  const known = buyStreamIn(row);
  if (!isRegistered(known)) return undefined;
  const one = snappedBuy({ rows, ...times }, known, said);
  const isChanged = isAnother(known, said, times.now);
  const stream = isChanged ? { ...one.holder, changedAt: times.now } : one.holder;
  // If a process may be checking the media buy now, `dueAt` stays. That process reads facts that are as new. If it does
  // not, the next snapshot shows the difference again.
  const isLater = (row.dueAt ?? Infinity) > times.now + leaseMs;
  const dueAt = isChanged && isLater ? Math.ceil(times.now) : row.dueAt;
  if (stream !== known) rows.save(streamRow(row, stream, 'open', { dueAt }));
  return one;
}

/**
 * The shortest time between two requests that are made only because of a new revision. A seller may send a new revision
 * in each answer. Ms.
 */
const REVISED_MS = 3_600_000;

/**
 * True if a media buy has changed since the seller was asked about its state. If the seller was never asked (e.g. no
 * reports are requested), only the end of the media buy is a change.
 */
function isAnother(known: BuyStream, said: JsonObject, now: number): boolean {
  const { status, revision = known.revision } = standingIn(said);
  const { askedAt } = known;
  if (askedAt === undefined) return isTerminalBuy(status);
  if (status !== known.status) return true;
  return revision !== known.revision && Math.abs(now - askedAt) >= REVISED_MS;
}

interface Gone {
  readonly now: number;
  readonly askedAt: number;
  readonly snapshotMs: number;
  readonly data: unknown;
  /** The number of requested media buys that the answer contains. */
  readonly brought: number;
}

/**
 * Returns the row after a request for a batch of media buys. Further pages of the seller's list are read as long as the
 * last page had some of these media buys. Then the next batch follows, even if the request failed. So a seller gets no
 * more calls than its media buys need.
 */
function goneOn(
  row: RegistrationRow,
  batch: Batch,
  { now, askedAt, snapshotMs, data, brought }: Gone,
): RegistrationRow {
  const { began = askedAt, page, ...round } = roundIn(row);
  const left = (page?.left ?? batch.ids.size) - brought;
  const cursor = cursorIn(data) ?? undefined;
  if (cursor !== undefined && cursor !== page?.cursor && brought > 0 && left > 0) {
    return roundRow(row, { ...round, failures: 0, began, page: { cursor, left } }, now);
  }
  const failures = data === undefined ? (round.failures ?? 0) + 1 : 0;
  return behind(roundRow(row, { ...round, began }, now), batch, { now, snapshotMs, failures });
}

/**
 * Returns the row after a batch of media buys. The next batch is due immediately, or after a wait if the request
 * failed. After the last batch, the row is due `snapshotMs` after the first batch began.
 */
function behind(
  row: RegistrationRow,
  { found, next }: Batch,
  {
    now,
    snapshotMs,
    failures,
  }: { readonly now: number; readonly snapshotMs: number; readonly failures: number },
): RegistrationRow {
  const { began = now, page: _page, after: _after, ...round } = roundIn(row);
  const all = (round.found ?? 0) + found;
  const from = failures > 0 ? now + Math.min(FAILED_MS * 2 ** Math.min(failures - 1, 10), snapshotMs) : now;
  if (next !== undefined) return roundRow(row, { ...round, failures, began, found: all, after: next }, from);
  const { found: _found, ...rest } = round;
  return roundRow(row, { ...rest, failures }, Math.max(from, began + snapshotMs));
}
