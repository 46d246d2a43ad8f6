// Carries out moves of media buys to another webhook URL (told.md §3.2). Begins each move in one process, calls the
// seller, and checks the move until its end. Called by move-loop.ts with rows that are due.
import { type JsonObject, present, textMember } from '../../codec/members.ts';
import { MAX_TEXT, printableText } from '../../codec/printable.ts';
import type { Hashes } from '../../crypto/engine.ts';
import { isOfKind, messageOf } from '../../shared/errors.ts';
import type { RaiseAlarm } from '../../shared/alarms.ts';
import { storedId } from '../../stages/ids.ts';
import type { RegistrationRow, RegistrationRows, StoreRegistrations } from '../../stores/store.ts';
import { DAY_MS } from '../../windows/calendar.ts';
import { isTerminalBuy } from '../../windows/ends.ts';
import type { JsonObject as Arguments } from '../answer-json.ts';
import type { CallSeller } from '../call-seller.ts';
import { beforeDeadline } from '../call-deadline.ts';
import { rowsOf } from '../media-buy-rows.ts';
import { type Stored, storedIn } from '../operation.ts';
import { storedObject } from '../operation-rows.ts';
import type { Operation, Operations } from '../registrations-contract.ts';
import { reportingWebhook } from '../request.ts';
import type { Routes } from '../routes.ts';
import type { Seller } from '../seller.ts';
import { SellerBusyError, SellerError, waitMs } from '../seller-error.ts';
import { type BuyStream, isRegistered, streamAt } from '../streams.ts';
import { pauseOf, saveSellerRow, sellerRowIn } from '../watch-task.ts';
import { askInPlace, failedQuestion } from './check-question.ts';
import { type Judged, judged } from './move-judging.ts';
import { type Needed, needOf } from './move-needs.ts';
import { freeTurn, goneRow, keepTurn, type Move, moveIn, moveRow, wakeTurns } from './move-row.ts';
import { ownRoutesIn, schemeOf, sellerOf } from './own-routes.ts';

export interface StepsContext {
  readonly registrations: StoreRegistrations;
  readonly hashes: Hashes;
  readonly routes: Pick<Routes, 'routeOf' | 'reportsRouteOf'>;
  readonly operations: Pick<Operations, 'createStep'>;
  readonly call: CallSeller;
  /** Calls the seller for an operation (a stored call), and stores the answer. */
  readonly make: (operation: Operation, signal: AbortSignal) => Promise<unknown>;
  readonly warn: (fields: object, message: string) => void;
  readonly raise: RaiseAlarm;
  /** The time after which a call is aborted. It ends before another process may repeat the call. Ms. */
  readonly deadlineMs: number;
  /** The time for which a row is reserved for this process: longer than a call takes. Ms. */
  readonly holdMs: number;
  readonly sleep: (ms: number, signal?: AbortSignal) => Promise<void>;
}

/**
 * A row that was due and is now reserved for this process. The reservation is valid while the row's `dueAt` is
 * unchanged.
 */
export type HeldRow = Pick<RegistrationRow, 'sender' | 'id' | 'dueAt'>;

/**
 * Returns the media buy of a move; undefined if unknown. The row of the move and the row of the media buy have the same
 * id.
 */
export function buyOf(rows: RegistrationRows, id: string): BuyStream | undefined {
  const stream = streamAt(rows, id);
  return stream && isRegistered(stream) ? stream : undefined;
}

/** A move that this process has reserved, with all that its update needs. */
interface Begun {
  readonly move: Move;
  readonly stream: BuyStream;
  readonly needed: Needed;
  readonly seller: Seller;
}

/** Begins a move that this process has reserved: creates the update, and calls the seller. */
export async function begin(context: StepsContext, held: HeldRow, stopping: AbortSignal): Promise<void> {
  const { registrations, raise } = context;
  const { begun, refused } = await registrations.run(held.sender, (rows, now) => begunIn(rows, held, now));
  if (refused) raise(alarmOf(held, refused));
  if (!begun || stopping.aborted) return;
  let operation: Operation | undefined;
  try {
    operation = await created(context, held, begun);
  } catch (error) {
    // The move waits again. Its lease is not ended early, because the seller's next move would meet the same error.
    await waits(context, held, messageOf(error));
    throw error;
  }
  if (operation) await called(context, held, operation, stopping);
}

function begunIn(
  rows: RegistrationRows,
  held: HeldRow,
  now: number,
): { readonly begun?: Begun; readonly refused?: RefusedStep } {
  const row = rows.get('move', held.id);
  if (row?.list !== 'claimed' || row.dueAt !== held.dueAt) return {};
  const move = moveIn(row);
  const stream = buyOf(rows, held.id);
  const routes = ownRoutesIn(rows);
  const need = stream && needOf(stream, { routes, to: move.to });
  if (stream && need?.kind === 'update') {
    return { begun: { move, stream, needed: need, seller: sellerOf(held.sender, routes) } };
  }
  const refused = need?.kind === 'unknown' && { ...move, reason: need.reason };
  rows.save(refused ? refusedRow(row, move, refused.reason) : goneRow(row));
  freeTurn(rows, held.sender, held.id, now);
  return refused ? { refused } : {};
}

const refusedRow = (row: RegistrationRow, { operationId: _over, ...move }: Move, reason: string) =>
  moveRow(row, { ...move, reason: printableText(reason, MAX_TEXT) }, 'refused');

/**
 * Creates the operation (stored call) of a move's update and marks the move `under_way`, in one transaction. Undefined
 * if another process has taken over the move.
 */
async function created(
  { routes, operations, holdMs }: StepsContext,
  { sender, id, dueAt }: HeldRow,
  { move, stream, needed: { push, reports }, seller }: Begun,
): Promise<Operation | undefined> {
  const { account, frequency, metrics, ref } = stream;
  const route =
    reports &&
    (await (reports.kind === 'reports'
      ? routes.reportsRouteOf(seller, reports.base)
      : routes.routeOf(seller, reports.kind, reports.base)));
  const { revision = stream.changes } = move;
  const args = {
    media_buy_id: stream.mediaBuyId,
    ...(account !== undefined && { account: storedObject(account) as Arguments }),
    ...(Number.isSafeInteger(revision) && { revision: revision as number }),
    ...(route &&
      frequency && {
        reporting_webhook: reportingWebhook(route, {
          frequency,
          ...(metrics && { requestedMetrics: metrics }),
        }),
      }),
  };
  const request = {
    ...seller,
    taskType: 'update_media_buy',
    arguments: args,
    ...(ref !== undefined && { ref }),
    scheme: schemeOf(push.kind),
  };
  return operations.createStep(request, {
    base: push.base,
    begins: (rows, now, { operationId }) => {
      const row = rows.get('move', id);
      const until = Math.ceil(now + holdMs);
      if (row?.list !== 'claimed' || row.dueAt !== dueAt) return false;
      // If the lease has ended, another move may have begun instead, and too many updates would run concurrently.
      if (!keepTurn(rows, { sender, id }, now, until)) return false;
      const { reason: _before, ...is } = moveIn(row);
      const next: Move = { ...is, operationId, tries: is.tries + 1, looks: 0 };
      rows.save(moveRow({ sender, id }, next, 'under_way', until));
      return true;
    },
  });
}

/** Calls the seller for a move's update. Once the call is answered, the move is due to be checked. */
async function called(
  context: StepsContext,
  held: HeldRow,
  operation: Operation,
  stopping: AbortSignal,
): Promise<void> {
  const { registrations, hashes, make, warn, deadlineMs, sleep } = context;
  const deadline = { ms: deadlineMs, reason: 'The call took too long.', sleep };
  let pauseMs: number | undefined;
  try {
    await beforeDeadline(deadline, stopping, (signal) => make(operation, signal));
  } catch (error) {
    pauseMs = pauseIn(error);
    const { agentUrl: sender, operationId } = operation;
    warn({ sender, operationId, error }, `A step of a move did not succeed. ${messageOf(error)}`);
  }
  await registrations.run(held.sender, (rows, now) => {
    if (pauseMs !== undefined) {
      const seller = sellerRowIn(rows);
      const pausedUntil = Math.max(seller.pausedUntil ?? 0, Math.ceil(now + pauseMs));
      saveSellerRow(rows, held.sender, { ...seller, pausedUntil });
    }
    const row = rows.get('operation', storedId(operation.operationId, hashes));
    // If the call is still unanswered, its lease stays, because the call will be repeated.
    if (row && storedIn(row).state === 'calling') return;
    freeTurn(rows, held.sender, held.id, now);
    const step = rows.get('move', held.id);
    const isIts = step !== undefined && moveIn(step).operationId === operation.operationId;
    if (isIts && step.list === 'under_way') rows.save({ ...step, dueAt: Math.ceil(now) });
  });
}

/**
 * Returns the pause before the next request of any kind that a seller's error asks for; undefined if it asks for none.
 * Ms.
 */
function pauseIn(error: unknown): number | undefined {
  if (isOfKind(error, SellerBusyError)) return waitMs(error.retryAfterMs);
  if (!isOfKind(error, SellerError) || error.recovery !== 'transient') return undefined;
  return waitMs(error.retryAfterMs);
}

/** Sets a move back to `waiting`. This process had reserved the move, but could not begin it. */
const waits = ({ registrations }: StepsContext, held: HeldRow, reason: string): Promise<void> =>
  registrations.run(held.sender, (rows) => {
    const row = rows.get('move', held.id);
    if (row?.list !== 'claimed' || row.dueAt !== held.dueAt) return;
    rows.save(moveRow(row, { ...moveIn(row), reason: printableText(reason, MAX_TEXT) }, 'waiting'));
  });

/**
 * Checks a running move that is due. Raises the alarm if the move was refused, and reads the media buy's revision if it
 * is needed.
 */
export async function look(context: StepsContext, held: HeldRow, stopping: AbortSignal): Promise<void> {
  const { registrations, hashes, raise } = context;
  const { asks, refused } = await registrations.run(held.sender, (rows, now) =>
    lookedIn(rows, held, now, hashes),
  );
  if (refused) raise(alarmOf(held, refused));
  if (asks) await askRevision(context, held, asks, stopping);
}

/** A refused move that needs an alarm here, because no other alarm has reported it. */
type RefusedStep = Pick<Move, 'mediaBuyId' | 'operationId'> & { readonly reason: string };

const alarmOf = (
  { sender }: HeldRow,
  { mediaBuyId, operationId, reason }: RefusedStep,
): Parameters<RaiseAlarm>[0] => ({
  code: 'operation_refused',
  message: `The media buy stays where it was told to send: ${printableText(reason, MAX_TEXT)}. Look at registrations.plan().`,
  sender,
  mediaBuyId,
  ...(operationId !== undefined && { operationId }),
});

/**
 * Checks a move and stores the decision, in one transaction.
 * @returns `asks`: the move whose media buy's revision must be read; `refused`: the refused move that needs an alarm.
 */
function lookedIn(
  rows: RegistrationRows,
  held: HeldRow,
  now: number,
  hashes: Hashes,
): { readonly asks?: Asked; readonly refused?: RefusedStep } {
  const row = rows.get('move', held.id);
  if (!row || row.dueAt !== held.dueAt) return {};
  const move = moveIn(row);
  const stream = buyOf(rows, held.id);
  const operation = updateOf(rows, move, hashes);
  // Unless a process is still calling the seller for this update, the lease of the move ends, so that another move may
  // begin.
  if (operation?.state !== 'calling') freeTurn(rows, held.sender, held.id, now);
  const does = judged(move, {
    need: stream && needOf(stream, { routes: ownRoutesIn(rows), to: move.to }),
    operation,
    isOver: isTerminalBuy(stream?.status),
    isGivenUp: isGivenUp(rows, operation, now, hashes),
    now,
  });
  if (does.kind === 'ask') return stream ? { asks: { move, stream } } : {};
  keep(rows, row, does, now);
  if (does.kind !== 'refused' || isTold(operation)) return {};
  return { refused: { ...move, reason: does.reason } };
}

/**
 * True if a refused move raises no alarm here. A refused call has already raised an alarm, unless the refusal was
 * `CONFLICT`. If the update was done, but the seller accepts no webhook configuration in updates, no alarm is raised
 * either.
 */
const isTold = (operation: Stored | undefined): boolean =>
  (operation?.withoutConfig === true && operation.status === 'completed') ||
  (operation?.state === 'refused' && operation.refusal !== 'CONFLICT');

/** A move that needs the current revision of its media buy before another update. */
interface Asked {
  readonly move: Move;
  readonly stream: BuyStream;
}

function updateOf(rows: RegistrationRows, { operationId }: Move, hashes: Hashes): Stored | undefined {
  const row = operationId === undefined ? undefined : rows.get('operation', storedId(operationId, hashes));
  return row && storedIn(row);
}

/** The longest wait for the end of an update, even if the update's task is still polled. Ms. */
const TASK_MS: number = 7 * DAY_MS;

/** True if an update has run for `TASK_MS`, or if polling of its task was given up. */
function isGivenUp(
  rows: RegistrationRows,
  operation: Stored | undefined,
  now: number,
  hashes: Hashes,
): boolean {
  if (!operation) return false;
  const { taskId, createdAt } = operation;
  const watch = taskId === undefined ? undefined : rows.get('watch', storedId(taskId, hashes));
  return watch?.list === 'unresolved' || now - createdAt >= TASK_MS;
}

function keep(
  rows: RegistrationRows,
  row: RegistrationRow,
  does: Exclude<Judged, { kind: 'ask' }>,
  now: number,
): void {
  if (does.kind === 'wait') rows.save(moveRow(row, does.move, 'under_way', does.until));
  if (does.kind === 'done') rows.save(goneRow(row));
  if (does.kind === 'refused') rows.save(refusedRow(row, moveIn(row), does.reason));
  if (does.kind !== 'again') return;
  rows.save(moveRow(row, does.move, 'waiting'));
  wakeTurns(rows, row.sender, now);
}

/** Reads the current revision of a media buy, so that its move can begin another update (told.md §3.2). */
async function askRevision(
  { registrations, call, deadlineMs: callMs, sleep, raise }: StepsContext,
  held: HeldRow,
  { move, stream }: Asked,
  stopping: AbortSignal,
): Promise<void> {
  const { mediaBuyId, account, ref } = stream;
  const args = {
    ...(account !== undefined && { account: storedObject(account) as Arguments }),
    media_buy_ids: [mediaBuyId],
  };
  const of = { agentUrl: held.sender, ref };
  let found: { readonly buy: JsonObject | undefined } | { readonly failed: string };
  try {
    const context = { registrations, call, callMs, sleep };
    const data = await askInPlace(context, of, ['get_media_buys', args], stopping);
    found = { buy: rowsOf(data, mediaBuyId)[0] };
  } catch (error) {
    // This process is stopping. Another process will read the revision.
    if (stopping.aborted) return;
    found = { failed: failedQuestion(error).message };
  }
  const reason = await registrations.run(held.sender, (rows, now) =>
    answeredIn(rows, held, move, found, now),
  );
  if (reason !== undefined) raise(alarmOf(held, { ...move, reason }));
}

/** Stores the result of reading the revision. @returns the reason if the move was refused; otherwise undefined. */
function answeredIn(
  rows: RegistrationRows,
  held: HeldRow,
  { operationId }: Move,
  found: { readonly buy: JsonObject | undefined } | { readonly failed: string },
  now: number,
): string | undefined {
  const row = rows.get('move', held.id);
  if (!row || row.dueAt !== held.dueAt || moveIn(row).operationId !== operationId) return undefined;
  const known = moveIn(row);
  if ('failed' in found) {
    const reason = printableText(`its revision cannot be read: ${found.failed}`, MAX_TEXT);
    const looks = known.looks + 1;
    if (looks >= MOST_ASKS) {
      rows.save(refusedRow(row, known, reason));
      return reason;
    }
    const until = Math.max(now + ASK_AGAIN_MS * 2 ** looks, pauseOf(sellerRowIn(rows), now));
    rows.save(moveRow(row, { ...known, looks, reason }, 'under_way', until));
    return undefined;
  }
  const { operationId: _over, reason: _before, revision: _old, asksAt: _asked, ...is } = known;
  const status = found.buy && textMember(found.buy, 'status');
  const revision = found.buy && present(found.buy, 'revision');
  const next: Move = {
    ...is,
    conflicts: is.conflicts + 1,
    looks: 0,
    ...(Number.isSafeInteger(revision) && { revision: revision as number }),
  };
  rows.save(isTerminalBuy(status) ? goneRow(row) : moveRow(row, next, 'waiting'));
  wakeTurns(rows, held.sender, now);
  return undefined;
}

/** The number of failed requests for the revision in a row after which the move is refused. */
const MOST_ASKS = 10;
/** Half of the wait after the first failed request for the revision. Each further failure doubles the wait. Ms. */
const ASK_AGAIN_MS = 1000;
