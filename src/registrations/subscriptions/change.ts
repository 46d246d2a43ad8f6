// Changes the subscriptions of one account or agent (a subscription set) at a seller, while this process has the set's
// row reserved (subscriptions.md §2). Compares the seller's entries with the wanted ones, sends the wanted ones once if
// they differ, compares again, and derives the result. Called by `subscribe`, `unsubscribe` and the daily check. After
// each step the row has all that another process needs to continue.
import { utf8 } from '../../codec/encoding.ts';
import { MAX_TEXT, printableText } from '../../codec/printable.ts';
import type { RegistrationErrorCode } from '../../shared/codes.ts';
import { isOfKind, messageOf } from '../../shared/errors.ts';
import { argumentsText, type JsonObject } from '../answer-json.ts';
import { RegistrationError } from '../registrations-errors.ts';
import { SellerBusyError, SellerError, waitMs } from '../seller-error.ts';
import type { Reading } from './account-reading.ts';
import { accountEntries, agentEntries, type SetRoutes } from './entries.ts';
import { type Held, heldOn, whileHeld } from './hold.ts';
import { ask, type CallContext, type Calling, read } from './set-calls.ts';
import { type RoutesContext, sentElsewhere, withEntryRoutes, withRoutes } from './set-routes.ts';
import { accountIn, gone, isToSend, type Look, looked, type News, waitOf } from './set-states.ts';
import { isMoving, type Subscription, type SubscriptionSet } from './set-row.ts';
import { accountAnswer, agentAnswer, type SetAnswer, SYNC_ACCOUNTS, SYNC_AGENT } from './sync-answers.ts';

export interface ChangeContext extends RoutesContext, CallContext {
  readonly newId: () => string;
}

/** The arguments of `changeSet` that come from the application's request, or from the daily check. */
export interface Given {
  /** The `ref` of the subscription that the application subscribes or unsubscribes; absent in a daily check. */
  readonly asked?: string;
  readonly credentials: Readonly<Record<string, string>>;
  readonly signal: AbortSignal;
}

/** The result of `changeSet`. */
export interface Changed extends News {
  /** The subscription set after the change. */
  readonly set: SubscriptionSet;
  /**
   * The `subscriber_id` of each entry of another subscriber that the seller had before the change and no longer has.
   */
  readonly vanished: readonly string[];
  /** The error of the change. Present if the seller refused a part of the change, or if its effect is unknown. */
  readonly error?: unknown;
}

/** The inputs and the interim state of a running change of a subscription set. */
interface Work extends Calling {
  readonly context: ChangeContext;
  readonly held: Held;
  readonly given: Given;
  readonly routes: SetRoutes;
  /** The subscriptions that the seller paused or dropped, and that this change requests again. */
  readonly missed: Subscription[];
}

/** The outcome of the calls of a change, from which `conclude` derives the new states of the subscriptions. */
interface End extends Omit<Look, 'routes' | 'sent' | 'asked'> {
  readonly sent?: Look['sent'];
  readonly vanished?: readonly string[];
  readonly error?: unknown;
  /** True if the seller's answer shows that the seller has the sent entries now. */
  readonly isNow?: boolean;
}

/** The time for which a seller recognises a repeated request by its `idempotency_key`. Ms. */
const KEY_MS = 86_400_000;

/**
 * Changes a subscription set at its seller. The set's row must be reserved for this process.
 * @returns the result; undefined if another process took over the reservation meanwhile, or the set was deleted.
 */
export async function changeSet(
  context: ChangeContext,
  held: Held,
  set: SubscriptionSet,
  given: Given,
): Promise<Changed | undefined> {
  const ref = given.asked ?? set.subscriptions[0]?.ref;
  let work: Work = { context, held, given, routes: new Map(), missed: [], ref };
  let is: SubscriptionSet;
  try {
    const found = await withRoutes(context, held, set);
    if (!found) return undefined;
    is = found.set;
    work = { ...work, routes: found.routes };
  } catch (error) {
    // The error is from this process or its store, and is never a seller's refusal. So the change is retried later.
    return conclude(work, unanswered(error));
  }
  try {
    const account = accountIn(is);
    return await (account ? changeAccount(work, is, account) : changeAgent(work));
  } catch (error) {
    return conclude(work, failed(given, error));
  }
}

async function changeAccount(
  work: Work,
  set: SubscriptionSet,
  account: JsonObject,
): Promise<Changed | undefined> {
  const { context, held, given } = work;
  const before = await read(work, account);
  const seen = await note(work, before);
  if (!seen) return undefined;
  if (!isToSend(seen.set)) return conclude(work, { entries: before.entries });
  const judge = (raw: unknown): SetAnswer => accountAnswer(raw, before.accountId);
  const send = (args: JsonObject): Promise<unknown> =>
    ask(work, SYNC_ACCOUNTS, { ...args, idempotency_key: context.newId() });
  let args: JsonObject;
  let dry: SetAnswer;
  try {
    args = await argumentsOf(work, seen.set, account, before);
    dry = judge(await send({ ...args, dry_run: true }));
    if (dry.kind === 'refused') throw dry.error;
  } catch (error) {
    return conclude(work, { ...failed(given, error), ...isUnsent(error, before) });
  }
  if (!dry.isDryRun) {
    const now = await read(work, account);
    const is = await note(work, now);
    if (!is) return undefined;
    const { entries } = now;
    if (!isToSend(is.set)) return conclude(work, { entries, vanished: gone(before.entries, entries, set) });
    args = await argumentsOf(work, is.set, account, now);
  }
  // If the seller answered the dry run with a running task, nothing more is sent. The entries are read below, to see
  // the task's effect.
  const answer: End = dry.isTask ? { sent: 'answered' } : await sent(work, () => send(args), judge);
  if (!(await heldOn(context, held))) return undefined;
  const after = await read(work, account).catch((error: unknown) => ({ error }));
  if ('error' in after)
    return conclude(work, { ...answer, sent: 'unanswered', error: answer.error ?? after.error });
  return conclude(work, {
    ...answer,
    entries: after.entries,
    vanished: gone(before.entries, after.entries, set),
  });
}

/**
 * Returns the arguments of `sync_accounts`: all entries of the account, with the wanted changes.
 * @throws RegistrationError if they cannot be built, e.g. because another subscriber's credentials are missing.
 */
async function argumentsOf(
  { context, held, routes, given }: Work,
  set: SubscriptionSet,
  account: JsonObject,
  { entries }: Reading,
): Promise<JsonObject> {
  const all = await withEntryRoutes(context, held.agentUrl, routes, entries);
  const configs = accountEntries(set, entries, all, given.credentials);
  const args = { accounts: [{ account, notification_configs: configs }] };
  argumentsText(args);
  return args;
}

/**
 * Returns the seller's current entries after an error. A refusal changed nothing, so these are the entries read before;
 * otherwise they are unknown.
 */
const isUnsent = (error: unknown, { entries }: Reading): Pick<End, 'entries'> =>
  isRefusal(error) ? { entries } : {};

async function changeAgent(work: Work): Promise<Changed | undefined> {
  const { context, held, given, routes } = work;
  const is = await heldOn(context, held);
  if (!is) return undefined;
  const args = { notification_configs: agentEntries(is.set, routes) };
  const preview = async (): Promise<SetAnswer> =>
    agentAnswer(await ask(work, SYNC_AGENT, { ...args, dry_run: true, idempotency_key: context.newId() }));
  /**
   * Finds out if the seller has the wanted entries now: by a dry run, unless the answer to the change already shows it
   * (`isNow`).
   */
  const setBy = async ({ isNow }: Pick<End, 'isNow'>): Promise<Pick<End, 'isSet'>> => {
    if (isNow) return { isSet: true };
    const is = await preview();
    return is.kind === 'taken' && is.isUnchanged ? { isSet: true } : {};
  };
  const dry = await preview();
  if (dry.kind === 'refused') return conclude(work, failed(given, dry.error));
  if (await isMovedOn(work, is.set, dry)) return changeAgent(work);
  if (dry.isUnchanged || dry.isTask) {
    return conclude(work, { ...(dry.isUnchanged && { isSet: true }), sent: 'answered' });
  }
  if (!isToSend(is.set)) {
    const seen = await note(work, { isSet: false });
    if (!seen) return undefined;
    if (!isToSend(seen.set)) return conclude(work, { isSet: false });
  }
  const key = await keyOf(work, args);
  if (key === undefined) return undefined;
  const answer = await sent(
    work,
    () => ask(work, SYNC_AGENT, { ...args, idempotency_key: key }),
    agentAnswer,
  );
  return conclude(work, { ...answer, ...(answer.sent === 'answered' && (await setBy(answer))) });
}

type Taken = Extract<SetAnswer, { kind: 'taken' }>;

/**
 * If a dry run showed that the seller has the wanted entries, and a subscription waits for a move, begins the move.
 * @returns true if the entries with the new URL must be sent now.
 */
async function isMovedOn(work: Work, set: SubscriptionSet, { isUnchanged }: Taken): Promise<boolean> {
  if (!isUnchanged || !set.subscriptions.some(isMoving)) return false;
  const moved = await note(work, { isSet: true });
  return moved !== undefined && isToSend(moved.set);
}

/**
 * Returns the `idempotency_key` for a call, and stores the key before the call is sent. A repeat of an unanswered call
 * with the same arguments gets the key of that call, as long as the seller recognises that key. Any other call gets a
 * new key.
 * @returns undefined if another process has taken over the set's reservation.
 */
async function keyOf({ context, held }: Work, args: JsonObject): Promise<string | undefined> {
  const hash = context.hashes.sha256Hex(utf8(JSON.stringify(args)));
  const fresh = context.newId();
  const is = await whileHeld(context, held, (set, now) => {
    const { sent: last } = set;
    const key = last?.hash === hash && now < last.until ? last.key : fresh;
    const is = key === fresh ? { key, hash, until: now + KEY_MS } : last;
    return { set: { ...set, ...(is && { sent: is }) }, key };
  });
  return is?.key;
}

/**
 * Sends the wanted entries with `send`, after prolonging the set's reservation. Returns the outcome: the answer as
 * judged by `judge`, or the effect of an error.
 * @throws Error if another process has taken over the reservation.
 */
async function sent(
  { context, held, given }: Work,
  send: () => Promise<unknown>,
  judge: (raw: unknown) => SetAnswer,
): Promise<End> {
  if (!(await heldOn(context, held))) throw new Error(TAKEN);
  try {
    const answer = judge(await send());
    return answer.kind === 'taken' ? { sent: 'answered', isNow: answer.isNow } : failed(given, answer.error);
  } catch (error) {
    return failed(given, error);
  }
}

const TAKEN = 'Another process has taken the set meanwhile.';

/**
 * Stores the states that follow from the seller's entries, before anything is sent. The account's id must be stored by
 * then, because the seller may send a challenge (a check of the webhook URL) during the call.
 */
async function note(
  { context, held, given, routes, missed }: Work,
  seen: Partial<Reading> & Pick<Look, 'isSet'>,
) {
  const noted = await whileHeld(context, held, (set, now, rows) => {
    const { accountId, ...look } = seen;
    const after = looked(
      { ...set, ...(accountId !== undefined && { accountId }) },
      { ...look, routes, sent: 'nothing', ...(given.asked !== undefined && { asked: given.asked }) },
      now,
    );
    const wasActive = (one: Subscription): boolean =>
      set.subscriptions.some(({ ref, state }) => ref === one.ref && state === 'active');
    const again = after.set.subscriptions.filter((one) => one.state === 'pending' && wasActive(one));
    const is = sentElsewhere(context, { set: after.set, routes }, rows, now);
    // A subscription that the seller dropped is not stored as `lost` yet: `conclude` stores and reports it at the end
    // of the change.
    return { set: { ...is, subscriptions: unlessLost(set, is) }, again };
  });
  missed.push(...(noted?.again ?? []));
  return noted;
}

/** Returns the subscriptions of `is`, but those that are now `lost` keep their former state from `was`. */
const unlessLost = (was: SubscriptionSet, is: SubscriptionSet): SubscriptionSet['subscriptions'] =>
  is.subscriptions.map((one) =>
    one.state === 'lost' ? (was.subscriptions.find(({ ref }) => ref === one.ref) ?? one) : one,
  );

/** Stores the result of a change, ends the set's reservation, and schedules the set's next check. */
async function conclude(work: Work, end: End): Promise<Changed | undefined> {
  const { context, held, routes, missed } = work;
  const { sent: how = 'nothing', vanished = [], error, isNow: _isNow, ...seen } = end;
  const look: Look = { ...seen, routes, sent: how };
  const askedMs = askedPause(error);
  return whileHeld(context, held, (set, now) => {
    // If the seller never had such an account, nothing was ever sent. So the seller has no entry of this application.
    const isNowhere = set.accountId === undefined && isUnknown(error);
    const { set: is, lost, refused } = looked(set, isNowhere ? { ...look, entries: [] } : look, now);
    // If a change was pending and the seller refused it, the change is finished and has not failed. After any other
    // error the change is retried.
    const isFailed = error !== undefined && !(how === 'refused' && isToSend(set));
    const { failures, waitMs: forMs } = waitOf(is, isFailed ? { askedMs } : undefined);
    const { sent: call, ...rest } = is;
    // The `idempotency_key` is kept only if its call was not answered, so that a retry repeats that call.
    const isOpen = how === 'unanswered' && !isOfKey(error);
    return {
      set: { ...rest, failures, ...(isOpen && call && { sent: call }) },
      lost: [...missed, ...lost],
      refused,
      vanished,
      ...(error !== undefined && { error }),
      released: { waitMs: forMs },
    };
  });
}

const isUnknown = (error: unknown): boolean =>
  isOfKind(error, RegistrationError) && error.code === 'account_unknown';

/**
 * Returns the outcome for an error: `refused` if the seller or this package rejects the change for good, otherwise
 * `unanswered`.
 */
function failed({ signal }: Pick<Given, 'signal'>, error: unknown): End {
  // After an abort the error is the signal's reason. It may be any error, even a seller's, so an abort is never a
  // refusal.
  const isForGood = !signal.aborted && isRefusal(error);
  return isForGood ? { sent: 'refused', error, reason: textOf(error) } : unanswered(error);
}

const unanswered = (error: unknown): End => ({ sent: 'unanswered', error, reason: textOf(error) });

/** Codes of seller errors about the `idempotency_key`. A retry with a new key avoids them. */
const OF_KEY: ReadonlySet<string> = new Set(['IDEMPOTENCY_CONFLICT', 'IDEMPOTENCY_EXPIRED', 'CONFLICT']);

const isOfKey = (error: unknown): boolean => isOfKind(error, SellerError) && OF_KEY.has(error.code);

function isRefusal(error: unknown): boolean {
  if (isOfKind(error, SellerError)) return error.recovery !== 'transient' && !isOfKey(error);
  return isOfKind(error, RegistrationError) && UNSENDABLE.has(error.code);
}

/**
 * Codes of this package's errors for which the change cannot be sent, so that a retry is useless. Errors with other
 * codes are about this process or an answer; then the change is retried.
 */
const UNSENDABLE: ReadonlySet<RegistrationErrorCode> = new Set<RegistrationErrorCode>([
  'account_unknown',
  'foreign_credentials',
  'request_invalid',
  'request_too_large',
  'set_full',
]);

const textOf = (error: unknown): string => printableText(messageOf(error), MAX_TEXT);

/** Returns the pause before the next request that a seller's error asks for; undefined if it asks for none. Ms. */
function askedPause(error: unknown): number | undefined {
  if (!isOfKind(error, SellerError) && !isOfKind(error, SellerBusyError)) return undefined;
  return waitMs(error.retryAfterMs);
}
