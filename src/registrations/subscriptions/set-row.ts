// Defines the stored row of a subscription set: all subscriptions that this application has for one account, or for the
// whole agent (subscriptions.md §1). Used by all code that reads or changes subscriptions.
import { canonicalJson } from '../../codec/canonical-json.ts';
import { encodeBase64Url, utf8 } from '../../codec/encoding.ts';
import type { Hashes } from '../../crypto/engine.ts';
import type { RegistrationRow, RegistrationRows } from '../../stores/store.ts';
import type { JsonObject } from '../answer-json.ts';
import { storedObject } from '../operation-rows.ts';
import type { RandomBytes } from '../secrets.ts';
import type { RouteScheme, Seller } from '../seller.ts';
import type { MoveTarget } from '../told/move-row.ts';
import { isSameUrl, type OurUrl } from '../../windows/told.ts';

/**
 * The state of a subscription. `pending`: not yet confirmed by the seller. `active`: the seller has it. `refused`: the
 * seller refused it, or it cannot be sent. `lost`: the seller has paused or dropped it. `removing`: its removal is not
 * yet confirmed.
 */
export type SubscriptionState = 'pending' | 'active' | 'refused' | 'lost' | 'removing';

/**
 * The properties of a subscription that a seller is asked for: event types, authentication scheme, and URL (base URL
 * and route).
 */
export interface Form extends OurUrl {
  readonly eventTypes: readonly string[];
  readonly scheme: RouteScheme;
}

/**
 * The move of a subscription to another URL (told.md §3.6). `waiting`: not begun. `under_way`: the seller is asked to
 * use the new URL.
 */
export interface SetMove {
  readonly to: MoveTarget;
  readonly state: 'waiting' | 'under_way' | 'refused';
  /** The seller's reason, if the move was refused. */
  readonly reason?: string;
}

/** One subscription of this application. Times are Unix ms on the store's clock. */
export interface Subscription extends Form {
  readonly ref: string;
  readonly subscriberId: string;
  readonly state: SubscriptionState;
  readonly reason?: string;
  /** The time at which the subscription got its present `state`. */
  readonly since: number;
  /** The latest form in which the seller had the subscription active. */
  readonly last?: Form;
  readonly move?: SetMove;
  /**
   * The number of calls that the seller answered without an error, but after which the subscription was still missing
   * or different.
   */
  readonly tries?: number;
}

/** The reservation of a set by one process, identified by `by`. Until `until`, no other process may change the set. */
export interface Hold {
  readonly by: string;
  readonly until: number;
  /**
   * The length of the reservation. A reservation with more time left than this is ignored, because a clock was ahead.
   * Ms.
   */
  readonly ms: number;
}

/** The subscriptions that this application has for one account, or for the whole agent of a seller. */
export interface SubscriptionSet {
  readonly seller: Seller;
  /** The account object that the application gave, as JSON text. Absent: the set is for the whole agent. */
  readonly account?: string;
  readonly accountId?: string;
  readonly subscriptions: readonly Subscription[];
  readonly hold?: Hold;
  /** The number of failed changes and checks in a row. */
  readonly failures?: number;
  /**
   * The latest unanswered call for an agent's set: its `idempotency_key`, the time until which the seller recognises
   * the key, and the hash of its arguments.
   */
  readonly sent?: { readonly key: string; readonly until: number; readonly hash: string };
}

/**
 * Returns the id under which a set is stored, unique per seller: a hash of the account, 43 characters (subscriptions.md
 * §1.3).
 */
export function setName(
  account: JsonObject | undefined,
  hashes: Pick<Hashes, 'sha256Hex' | 'sha256'>,
): string {
  return encodeBase64Url(hashes.sha256(utf8(canonicalJson(account ?? null))));
}

const RANDOM_BYTES = 12;
const ID = /^([\w-]{43})\.[\w-]{16}$/;

/** Returns a new random subscriber id that contains the set's name. */
export const newSubscriberId = (name: string, randomBytes: RandomBytes): string =>
  `${name}.${encodeBase64Url(randomBytes(RANDOM_BYTES))}`;

/** Returns the set's name from a subscriber id; undefined if `newSubscriberId` did not make the id. */
export const setNameIn = (subscriberId: string): string | undefined => ID.exec(subscriberId)?.[1];

/** Returns the subscription set stored in a row. @throws Fault `misconfigured` for a damaged row. */
export const setIn = ({ value }: Pick<RegistrationRow, 'value'>): SubscriptionSet =>
  storedObject(value) as unknown as SubscriptionSet;

/**
 * Returns the subscription set of that name; undefined if there is none. @throws Fault `misconfigured` for a damaged
 * row.
 */
export function setAt(rows: RegistrationRows, name: string): SubscriptionSet | undefined {
  const row = rows.get('subscription', name);
  return row && setIn(row);
}

/**
 * Returns the row that stores a set. If the set has no subscription and no reservation, saving this row deletes the
 * set.
 * @param dueAt the time of the set's next check; null: no check.
 */
export function setRow(name: string, set: SubscriptionSet, dueAt: number | null): RegistrationRow {
  const isGone = set.subscriptions.length === 0 && !set.hold;
  return {
    kind: 'subscription',
    sender: set.seller.agentUrl,
    id: name,
    value: JSON.stringify(set),
    dueAt: isGone || dueAt === null ? null : Math.ceil(dueAt),
    list: null,
    expiresAt: isGone ? 1 : null,
  };
}

/**
 * Returns the URLs at which events of a subscription may arrive (told.md §1.2): the wanted URL, unless it was refused,
 * and the latest active URL.
 */
export function urlsOf({ base, route, state, last }: Subscription): readonly OurUrl[] {
  const urls = [...(state === 'refused' ? [] : [{ base, route }]), ...(last ? [last] : [])];
  return urls.filter((one, at) => at === urls.findIndex((other) => isSameUrl(one, other)));
}

/** True if a move of the subscription to another URL waits, or is not confirmed by the seller yet. */
export const isMoving = ({ move }: Subscription): boolean => move !== undefined && move.state !== 'refused';

export const unmoved = ({ move: _over, ...one }: Subscription): Subscription => one;

/** True if two lists have the same members, in any order. */
export function isSameSet(a: readonly string[], b: readonly string[]): boolean {
  const [one, other] = [new Set(a), new Set(b)];
  return one.size === other.size && [...one].every((name) => other.has(name));
}
