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

/*
 * The change of a set that this process holds: it is read, sent once where it differs, read again, and concluded from what is
 * read (subscriptions.md §2). The row says all that another process needs to go on after each step.
 */

export interface ChangeContext extends RoutesContext, CallContext {
  readonly newId: () => string;
}

/** The owner's part of a change that it asks for. */
export interface Given {
  /** The `ref` that is asked for; absent: a look. */
  readonly asked?: string;
  readonly credentials: Readonly<Record<string, string>>;
  readonly signal: AbortSignal;
}

/** The result of a change. */
export interface Changed extends News {
  /** As it is by now. */
  readonly set: SubscriptionSet;
  /** Subscriber ids of others that the seller has no more. */
  readonly vanished: readonly string[];
  /** Why something of it is not known, or was refused. */
  readonly error?: unknown;
}

/** A change that is under way. */
interface Work extends Calling {
  readonly context: ChangeContext;
  readonly held: Held;
  readonly given: Given;
  readonly routes: SetRoutes;
  /** What the seller has paused or dropped, and its owner sets again by this very change. */
  readonly missed: Subscription[];
}

/** The facts from which a change is concluded. */
interface End extends Omit<Look, 'routes' | 'sent' | 'asked'> {
  readonly sent?: Look['sent'];
  readonly vanished?: readonly string[];
  readonly error?: unknown;
  /** The answer says how the set is now. */
  readonly isNow?: boolean;
}

/** The time for which the seller knows a request by its key. Ms. */
const KEY_MS = 86_400_000;

/** @returns what it came to; undefined where somebody else has taken the set meanwhile, or it was deleted. */
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
    // A mistake of this process, or its store: no word of the seller's.
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
  // A task is under way: it is looked at what came of it, and not begun again.
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

/** Where nothing was changed, what was read is how the set is. */
const isUnsent = (error: unknown, { entries }: Reading): Pick<End, 'entries'> =>
  isRefusal(error) ? { entries } : {};

async function changeAgent(work: Work): Promise<Changed | undefined> {
  const { context, held, given, routes } = work;
  const is = await heldOn(context, held);
  if (!is) return undefined;
  const args = { notification_configs: agentEntries(is.set, routes) };
  const preview = async (): Promise<SetAnswer> =>
    agentAnswer(await ask(work, SYNC_AGENT, { ...args, dry_run: true, idempotency_key: context.newId() }));
  /** Whether the seller has the set by now, where its answer does not say it. */
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

/** The seller has the set as it was: whether it is to be sent once more, with what is to go elsewhere. */
async function isMovedOn(work: Work, set: SubscriptionSet, { isUnchanged }: Taken): Promise<boolean> {
  if (!isUnchanged || !set.subscriptions.some(isMoving)) return false;
  const moved = await note(work, { isSet: true });
  return moved !== undefined && isToSend(moved.set);
}

/** The key of the same call before, where that was not answered and the seller knows it still; else a new one. Durable. */
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

/** Sends the set while it is held; an error says nothing of what was done. */
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

/** What the first look says, before anything is sent: the account's id is known before its proof of control comes. */
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
    // What is lost is told where it is concluded.
    return { set: { ...is, subscriptions: unlessLost(set, is) }, again };
  });
  missed.push(...(noted?.again ?? []));
  return noted;
}

/** With those that were active still, until the conclusion. */
const unlessLost = (was: SubscriptionSet, is: SubscriptionSet): SubscriptionSet['subscriptions'] =>
  is.subscriptions.map((one) =>
    one.state === 'lost' ? (was.subscriptions.find(({ ref }) => ref === one.ref) ?? one) : one,
  );

/** Writes what is known, and gives the set back. */
async function conclude(work: Work, end: End): Promise<Changed | undefined> {
  const { context, held, routes, missed } = work;
  const { sent: how = 'nothing', vanished = [], error, isNow: _isNow, ...seen } = end;
  const look: Look = { ...seen, routes, sent: how };
  const askedMs = askedPause(error);
  return whileHeld(context, held, (set, now) => {
    // Of an account that was never found nothing was sent: the seller has no entry of ours.
    const isNowhere = set.accountId === undefined && isUnknown(error);
    const { set: is, lost, refused } = looked(set, isNowhere ? { ...look, entries: [] } : look, now);
    // A refusal of what was to be sent is known; any other error is waited for.
    const isFailed = error !== undefined && !(how === 'refused' && isToSend(set));
    const { failures, waitMs: forMs } = waitOf(is, isFailed ? { askedMs } : undefined);
    const { sent: call, ...rest } = is;
    // A key is of one call, and that is over.
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

/** What an error that came before the set was sent, or for an answer, does to what is wanted. */
function failed({ signal }: Pick<Given, 'signal'>, error: unknown): End {
  // The reason that an owner aborts with may be any error, also one of another seller.
  const isForGood = !signal.aborted && isRefusal(error);
  return isForGood ? { sent: 'refused', error, reason: textOf(error) } : unanswered(error);
}

const unanswered = (error: unknown): End => ({ sent: 'unanswered', error, reason: textOf(error) });

/** Errors of a key, which a new one mends. */
const OF_KEY: ReadonlySet<string> = new Set(['IDEMPOTENCY_CONFLICT', 'IDEMPOTENCY_EXPIRED', 'CONFLICT']);

const isOfKey = (error: unknown): boolean => isOfKind(error, SellerError) && OF_KEY.has(error.code);

function isRefusal(error: unknown): boolean {
  if (isOfKind(error, SellerError)) return error.recovery !== 'transient' && !isOfKey(error);
  return isOfKind(error, RegistrationError) && UNSENDABLE.has(error.code);
}

/** The set cannot be sent. Any other error of ours is this process's, or of an answer. */
const UNSENDABLE: ReadonlySet<RegistrationErrorCode> = new Set<RegistrationErrorCode>([
  'account_unknown',
  'foreign_credentials',
  'request_invalid',
  'request_too_large',
  'set_full',
]);

const textOf = (error: unknown): string => printableText(messageOf(error), MAX_TEXT);

/** The pause that the seller asks for. Ms. */
function askedPause(error: unknown): number | undefined {
  if (!isOfKind(error, SellerError) && !isOfKind(error, SellerBusyError)) return undefined;
  return waitMs(error.retryAfterMs);
}
