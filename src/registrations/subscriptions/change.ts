// Changes a subscription set that is reserved for this process (subscriptions.md §2). It reads the set, sends it once
// if it differs, reads it again, and derives the result. `subscribe`, `unsubscribe` and the daily check call it. After
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

/** The arguments that the owner of a change passes to it. */
export interface Given {
  /** The `ref` of the subscription that the owner requests; absent for a daily check. */
  readonly asked?: string;
  readonly credentials: Readonly<Record<string, string>>;
  readonly signal: AbortSignal;
}

/** The result of a change. */
export interface Changed extends News {
  /** The set after the change. */
  readonly set: SubscriptionSet;
  /** The subscriber ids of entries of others that the seller had before the change and no longer has. */
  readonly vanished: readonly string[];
  /** The error because of which a part of the result is unknown, or was refused. */
  readonly error?: unknown;
}

/** The context of a running change. */
interface Work extends Calling {
  readonly context: ChangeContext;
  readonly held: Held;
  readonly given: Given;
  readonly routes: SetRoutes;
  /** The subscriptions that the seller paused or dropped, and that this change requests again. */
  readonly missed: Subscription[];
}

/** The facts from which the result of a change is derived. */
interface End extends Omit<Look, 'routes' | 'sent' | 'asked'> {
  readonly sent?: Look['sent'];
  readonly vanished?: readonly string[];
  readonly error?: unknown;
  /** True if the seller's answer shows the current state of the set. */
  readonly isNow?: boolean;
}

/** The time for which the seller recognises a repeated request by its key. Ms. */
const KEY_MS = 86_400_000;

/** Changes a set. @returns the result; undefined if another process has taken the set meanwhile, or it was deleted. */
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
    // The fault is in this process or its store, and not an answer of the seller.
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
  // If a task is running, its outcome is read, and the change is not begun again.
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

/** Returns the arguments that are sent to the seller. @throws RegistrationError */
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

/** After a refusal nothing was changed, so the current entries are those that were read before. */
const isUnsent = (error: unknown, { entries }: Reading): Pick<End, 'entries'> =>
  isRefusal(error) ? { entries } : {};

async function changeAgent(work: Work): Promise<Changed | undefined> {
  const { context, held, given, routes } = work;
  const is = await heldOn(context, held);
  if (!is) return undefined;
  const args = { notification_configs: agentEntries(is.set, routes) };
  const preview = async (): Promise<SetAnswer> =>
    agentAnswer(await ask(work, SYNC_AGENT, { ...args, dry_run: true, idempotency_key: context.newId() }));
  /** Asks if the seller has the set now, unless its answer already shows that. */
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
 * If the seller has the set unchanged, notes that. Returns true if a subscription must still be moved: then the set is
 * sent once more.
 */
async function isMovedOn(work: Work, set: SubscriptionSet, { isUnchanged }: Taken): Promise<boolean> {
  if (!isUnchanged || !set.subscriptions.some(isMoving)) return false;
  const moved = await note(work, { isSet: true });
  return moved !== undefined && isToSend(moved.set);
}

/**
 * Returns the request key of the same earlier call, if it was not answered and the seller still recognises the key.
 * Otherwise returns a new key. The key is stored durably.
 * @returns undefined if another process has taken the set.
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

/** Sends the set while it is reserved for this process. After an error it is unknown what the seller has done. */
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
 * Stores the result of the first reading before anything is sent. The account's id must be known before the seller
 * sends its proof of control.
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
    // A lost subscription is only reported at the end of the change.
    return { set: { ...is, subscriptions: unlessLost(set, is) }, again };
  });
  missed.push(...(noted?.again ?? []));
  return noted;
}

/** Returns the subscriptions, with those that are lost in their former state, until the end of the change. */
const unlessLost = (was: SubscriptionSet, is: SubscriptionSet): SubscriptionSet['subscriptions'] =>
  is.subscriptions.map((one) =>
    one.state === 'lost' ? (was.subscriptions.find(({ ref }) => ref === one.ref) ?? one) : one,
  );

/** Stores the result, and releases the set. */
async function conclude(work: Work, end: End): Promise<Changed | undefined> {
  const { context, held, routes, missed } = work;
  const { sent: how = 'nothing', vanished = [], error, isNow: _isNow, ...seen } = end;
  const look: Look = { ...seen, routes, sent: how };
  const askedMs = askedPause(error);
  return whileHeld(context, held, (set, now) => {
    // If the account was never found, nothing was sent, so the seller has no entry of ours.
    const isNowhere = set.accountId === undefined && isUnknown(error);
    const { set: is, lost, refused } = looked(set, isNowhere ? { ...look, entries: [] } : look, now);
    // If the seller refused what was to be sent, that is a result. After any other error the change is tried again.
    const isFailed = error !== undefined && !(how === 'refused' && isToSend(set));
    const { failures, waitMs: forMs } = waitOf(is, isFailed ? { askedMs } : undefined);
    const { sent: call, ...rest } = is;
    // A request key belongs to one call. It is kept only if that call was not answered.
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

/** Returns the effect of an error that occurred before the set was sent, or as the answer to it. */
function failed({ signal }: Pick<Given, 'signal'>, error: unknown): End {
  // An owner may abort with any error as the reason, even with one of another seller, so an abort is never a refusal.
  const isForGood = !signal.aborted && isRefusal(error);
  return isForGood ? { sent: 'refused', error, reason: textOf(error) } : unanswered(error);
}

const unanswered = (error: unknown): End => ({ sent: 'unanswered', error, reason: textOf(error) });

/** Errors about the request key, which a new key solves. */
const OF_KEY: ReadonlySet<string> = new Set(['IDEMPOTENCY_CONFLICT', 'IDEMPOTENCY_EXPIRED', 'CONFLICT']);

const isOfKey = (error: unknown): boolean => isOfKind(error, SellerError) && OF_KEY.has(error.code);

function isRefusal(error: unknown): boolean {
  if (isOfKind(error, SellerError)) return error.recovery !== 'transient' && !isOfKey(error);
  return isOfKind(error, RegistrationError) && UNSENDABLE.has(error.code);
}

/**
 * Errors of ours because of which the set cannot be sent. Other errors of ours are about this process, or about an
 * answer.
 */
const UNSENDABLE: ReadonlySet<RegistrationErrorCode> = new Set<RegistrationErrorCode>([
  'account_unknown',
  'foreign_credentials',
  'request_invalid',
  'request_too_large',
  'set_full',
]);

const textOf = (error: unknown): string => printableText(messageOf(error), MAX_TEXT);

/** Returns the pause that the seller asks for; undefined if it asks for none. Ms. */
function askedPause(error: unknown): number | undefined {
  if (!isOfKind(error, SellerError) && !isOfKind(error, SellerBusyError)) return undefined;
  return waitMs(error.retryAfterMs);
}
