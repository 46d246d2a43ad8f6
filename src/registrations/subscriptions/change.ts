// Changes a set that this process holds: reads it, sends it once if it differs, reads it again, and concludes from that
// (subscriptions.md §2). `subscribe`, `unsubscribe` and the daily look call it. After each step the row has all that
// another process needs to go on.
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

/** The owner's part in a change that it asks for. */
export interface Given {
  /** The `ref` of the subscription that is asked for; absent for a look. */
  readonly asked?: string;
  readonly credentials: Readonly<Record<string, string>>;
  readonly signal: AbortSignal;
}

/** The result of a change. */
export interface Changed extends News {
  /** The set as it is now. */
  readonly set: SubscriptionSet;
  /** The subscriber ids of entries of others that the seller no longer has. */
  readonly vanished: readonly string[];
  /** The reason why a part of the result is unknown or refused. */
  readonly error?: unknown;
}

/** A running change. */
interface Work extends Calling {
  readonly context: ChangeContext;
  readonly held: Held;
  readonly given: Given;
  readonly routes: SetRoutes;
  /** The subscriptions that the seller paused or dropped, and that this change sets again. */
  readonly missed: Subscription[];
}

/** The facts from which a change is concluded. */
interface End extends Omit<Look, 'routes' | 'sent' | 'asked'> {
  readonly sent?: Look['sent'];
  readonly vanished?: readonly string[];
  readonly error?: unknown;
  /** True if the answer tells the present state of the set. */
  readonly isNow?: boolean;
}

/** The time for which the seller knows a request by its key. Ms. */
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
    // The fault is this process's or its store's, and no answer of the seller.
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
  // A task is running: its outcome is read, and it is not begun again.
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

/** The arguments that the seller is sent. @throws RegistrationError */
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

/** The present entries after a refusal: nothing was changed, so they are those that were read. */
const isUnsent = (error: unknown, { entries }: Reading): Pick<End, 'entries'> =>
  isRefusal(error) ? { entries } : {};

async function changeAgent(work: Work): Promise<Changed | undefined> {
  const { context, held, given, routes } = work;
  const is = await heldOn(context, held);
  if (!is) return undefined;
  const args = { notification_configs: agentEntries(is.set, routes) };
  const preview = async (): Promise<SetAnswer> =>
    agentAnswer(await ask(work, SYNC_AGENT, { ...args, dry_run: true, idempotency_key: context.newId() }));
  /** Asks if the seller has the set by now, unless its answer already tells. */
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

/** True if the seller has the set unchanged, but a subscription is to move: then it is sent once more. */
async function isMovedOn(work: Work, set: SubscriptionSet, { isUnchanged }: Taken): Promise<boolean> {
  if (!isUnchanged || !set.subscriptions.some(isMoving)) return false;
  const moved = await note(work, { isSet: true });
  return moved !== undefined && isToSend(moved.set);
}

/**
 * The key of the same call before, if that was not answered and its seller still knows it; otherwise a new one. It is
 * durable.
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

/** Sends the set while it is held. An error leaves it unknown what was done. */
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
 * Writes the result of the first look before anything is sent: the account's id must be known before its proof of
 * control arrives.
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
    // A loss is reported at the conclusion.
    return { set: { ...is, subscriptions: unlessLost(set, is) }, again };
  });
  missed.push(...(noted?.again ?? []));
  return noted;
}

/** The subscriptions, with the lost ones as they were, until the conclusion. */
const unlessLost = (was: SubscriptionSet, is: SubscriptionSet): SubscriptionSet['subscriptions'] =>
  is.subscriptions.map((one) =>
    one.state === 'lost' ? (was.subscriptions.find(({ ref }) => ref === one.ref) ?? one) : one,
  );

/** Writes the result, and releases the set. */
async function conclude(work: Work, end: End): Promise<Changed | undefined> {
  const { context, held, routes, missed } = work;
  const { sent: how = 'nothing', vanished = [], error, isNow: _isNow, ...seen } = end;
  const look: Look = { ...seen, routes, sent: how };
  const askedMs = askedPause(error);
  return whileHeld(context, held, (set, now) => {
    // The account was never found, so nothing was sent: the seller has no entry of ours.
    const isNowhere = set.accountId === undefined && isUnknown(error);
    const { set: is, lost, refused } = looked(set, isNowhere ? { ...look, entries: [] } : look, now);
    // A refusal of what was to be sent is a result. Any other error means another try.
    const isFailed = error !== undefined && !(how === 'refused' && isToSend(set));
    const { failures, waitMs: forMs } = waitOf(is, isFailed ? { askedMs } : undefined);
    const { sent: call, ...rest } = is;
    // A key belongs to one call, and that call is over.
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

/** The effect of an error that came before the set was sent, or as the answer. */
function failed({ signal }: Pick<Given, 'signal'>, error: unknown): End {
  // An owner may abort with any error as the reason, even one of another seller.
  const isForGood = !signal.aborted && isRefusal(error);
  return isForGood ? { sent: 'refused', error, reason: textOf(error) } : unanswered(error);
}

const unanswered = (error: unknown): End => ({ sent: 'unanswered', error, reason: textOf(error) });

/** Errors of a key: a new key solves them. */
const OF_KEY: ReadonlySet<string> = new Set(['IDEMPOTENCY_CONFLICT', 'IDEMPOTENCY_EXPIRED', 'CONFLICT']);

const isOfKey = (error: unknown): boolean => isOfKind(error, SellerError) && OF_KEY.has(error.code);

function isRefusal(error: unknown): boolean {
  if (isOfKind(error, SellerError)) return error.recovery !== 'transient' && !isOfKey(error);
  return isOfKind(error, RegistrationError) && UNSENDABLE.has(error.code);
}

/**
 * Errors because of which the set cannot be sent. Any other error of ours is about this process, or about an answer.
 */
const UNSENDABLE: ReadonlySet<RegistrationErrorCode> = new Set<RegistrationErrorCode>([
  'account_unknown',
  'foreign_credentials',
  'request_invalid',
  'request_too_large',
  'set_full',
]);

const textOf = (error: unknown): string => printableText(messageOf(error), MAX_TEXT);

/** The pause that the seller asks for; undefined if it asks for none. Ms. */
function askedPause(error: unknown): number | undefined {
  if (!isOfKind(error, SellerError) && !isOfKind(error, SellerBusyError)) return undefined;
  return waitMs(error.retryAfterMs);
}
