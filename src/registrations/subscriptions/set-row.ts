// Keeps the row of a subscription set: all our subscriptions of one account, or of the whole agent (subscriptions.md
// §1). All code that reads or changes subscriptions uses it.
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

/** A form of a subscription, as it is requested from a seller. Base URL and route are those of its URL. */
export interface Form extends OurUrl {
  readonly eventTypes: readonly string[];
  readonly scheme: RouteScheme;
}

/** The move of a subscription to another URL (told.md §3.6). `under_way`: the wanted form has the target's URL. */
export interface SetMove {
  readonly to: MoveTarget;
  readonly state: 'waiting' | 'under_way' | 'refused';
  /** The reason for a refusal. */
  readonly reason?: string;
}

/** One subscription of ours. Times are Unix ms on the store's clock. */
export interface Subscription extends Form {
  readonly ref: string;
  readonly subscriberId: string;
  readonly state: SubscriptionState;
  readonly reason?: string;
  /** The time since which it has been in this state. */
  readonly since: number;
  /** Its latest active form. */
  readonly last?: Form;
  readonly move?: SetMove;
  /** The number of successful answers after which it was still missing, or different. */
  readonly tries?: number;
}

/** The reservation of a set: until then only this process may change it. */
export interface Hold {
  readonly by: string;
  readonly until: number;
  /** The length of the reservation. It limits the effect of a clock that was ahead. */
  readonly ms: number;
}

/** The subscription set of an account, or of an agent. */
export interface SubscriptionSet {
  readonly seller: Seller;
  /** The owner's account object as JSON text; absent: the set is the agent's. */
  readonly account?: string;
  readonly accountId?: string;
  readonly subscriptions: readonly Subscription[];
  readonly hold?: Hold;
  /** The number of failed changes and checks in a row. */
  readonly failures?: number;
  /**
   * The latest call for an agent's set: its request key, the time until which the seller recognises the key, and the
   * hash of its arguments.
   */
  readonly sent?: { readonly key: string; readonly until: number; readonly hash: string };
}

/** Returns the name of a set, unique for its seller: 43 characters (subscriptions.md §1.3). */
export function setName(
  account: JsonObject | undefined,
  hashes: Pick<Hashes, 'sha256Hex' | 'sha256'>,
): string {
  return encodeBase64Url(hashes.sha256(utf8(canonicalJson(account ?? null))));
}

const RANDOM_BYTES = 12;
const ID = /^([\w-]{43})\.[\w-]{16}$/;

/** Makes a new subscriber id for the set of that name. */
export const newSubscriberId = (name: string, randomBytes: RandomBytes): string =>
  `${name}.${encodeBase64Url(randomBytes(RANDOM_BYTES))}`;

/** Returns the name of the set in a subscriber id; undefined if `newSubscriberId` did not make the id. */
export const setNameIn = (subscriberId: string): string | undefined => ID.exec(subscriberId)?.[1];

/** Returns the set in a row. @throws Fault `misconfigured` for a damaged row. */
export const setIn = ({ value }: Pick<RegistrationRow, 'value'>): SubscriptionSet =>
  storedObject(value) as unknown as SubscriptionSet;

/** Returns the set of that name; undefined if there is none. @throws Fault `misconfigured` for a damaged row. */
export function setAt(rows: RegistrationRows, name: string): SubscriptionSet | undefined {
  const row = rows.get('subscription', name);
  return row && setIn(row);
}

/**
 * Makes the row of a set. If the set has no subscription, the row is deleted.
 * @param dueAt the time of its next check; null: there is none.
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

/** Returns the URLs that a subscription uses (told.md §1.2). If it was refused and never active, it uses none. */
export function urlsOf({ base, route, state, last }: Subscription): readonly OurUrl[] {
  const urls = [...(state === 'refused' ? [] : [{ base, route }]), ...(last ? [last] : [])];
  return urls.filter((one, at) => at === urls.findIndex((other) => isSameUrl(one, other)));
}

/** True if the subscription is to be moved, or was sent with its new URL and is not confirmed there yet. */
export const isMoving = ({ move }: Subscription): boolean => move !== undefined && move.state !== 'refused';

/** The subscription without its move. */
export const unmoved = ({ move: _over, ...one }: Subscription): Subscription => one;

/** True if two lists have the same members. */
export function isSameSet(a: readonly string[], b: readonly string[]): boolean {
  const [one, other] = [new Set(a), new Set(b)];
  return one.size === other.size && [...one].every((name) => other.has(name));
}
