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

/* The row of a set (subscriptions.md §1). */

/**
 * The state of a subscription. `pending`: it is not yet known to be set. `active`: the seller has it. `refused`: the
 * seller refused it, or it cannot be sent. `lost`: the seller has paused or dropped it. `removing`: it is not yet known
 * to be gone.
 */
export type SubscriptionState = 'pending' | 'active' | 'refused' | 'lost' | 'removing';

/** A form of a subscription, as a seller is told it: base and route are those of its URL. */
export interface Form extends OurUrl {
  readonly eventTypes: readonly string[];
  readonly scheme: RouteScheme;
}

/** Where a subscription is to go (told.md §3.6). `under_way`: the form that is wanted is there. */
export interface SetMove {
  readonly to: MoveTarget;
  readonly state: 'waiting' | 'under_way' | 'refused';
  /** Why it was refused. */
  readonly reason?: string;
}

/** One entry of ours. Times are Unix ms on the store's clock. */
export interface Subscription extends Form {
  readonly ref: string;
  readonly subscriberId: string;
  readonly state: SubscriptionState;
  readonly reason?: string;
  /** It has been in this state since then. */
  readonly since: number;
  /** As it was active last. */
  readonly last?: Form;
  readonly move?: SetMove;
  /** Answers without an error after which it was not there as it was sent. */
  readonly tries?: number;
}

/** One process changes the set, until then. */
export interface Hold {
  readonly by: string;
  readonly until: number;
  /** A clock that was ahead must not put it off for longer. */
  readonly ms: number;
}

/** The set of an account, or of an agent. */
export interface SubscriptionSet {
  readonly seller: Seller;
  /** The owner's object, as JSON text; absent: of the agent. */
  readonly account?: string;
  readonly accountId?: string;
  readonly subscriptions: readonly Subscription[];
  readonly hold?: Hold;
  /** Changes and looks in a row that came to nothing. */
  readonly failures?: number;
  /** Of an agent: the call that was sent last, and until when the seller knows its key. */
  readonly sent?: { readonly key: string; readonly until: number; readonly hash: string };
}

/** Names a set within its seller: 43 characters (subscriptions.md §1.3). */
export function setName(
  account: JsonObject | undefined,
  hashes: Pick<Hashes, 'sha256Hex' | 'sha256'>,
): string {
  return encodeBase64Url(hashes.sha256(utf8(canonicalJson(account ?? null))));
}

const RANDOM_BYTES = 12;
const ID = /^([\w-]{43})\.[\w-]{16}$/;

/** A new subscriber id of the set. */
export const newSubscriberId = (name: string, randomBytes: RandomBytes): string =>
  `${name}.${encodeBase64Url(randomBytes(RANDOM_BYTES))}`;

/** The name of the set that a subscriber id is of; undefined where it is not one that `newSubscriberId` makes. */
export const setNameIn = (subscriberId: string): string | undefined => ID.exec(subscriberId)?.[1];

/** @throws Fault `misconfigured` for a damaged row. */
export const setIn = ({ value }: Pick<RegistrationRow, 'value'>): SubscriptionSet =>
  storedObject(value) as unknown as SubscriptionSet;

/** The set of that name; undefined where there is none. @throws Fault `misconfigured` for a damaged row. */
export function setAt(rows: RegistrationRows, name: string): SubscriptionSet | undefined {
  const row = rows.get('subscription', name);
  return row && setIn(row);
}

/** @param dueAt when the set is looked at again; null: not. One without a subscription is deleted. */
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

/** The URLs that a subscription is on (told.md §1.2). What was refused, and never set, is on none. */
export function urlsOf({ base, route, state, last }: Subscription): readonly OurUrl[] {
  const urls = [...(state === 'refused' ? [] : [{ base, route }]), ...(last ? [last] : [])];
  return urls.filter((one, at) => at === urls.findIndex((other) => isSameUrl(one, other)));
}

/** Whether it is to be sent elsewhere, or was and is not there yet. */
export const isMoving = ({ move }: Subscription): boolean => move !== undefined && move.state !== 'refused';

/** Without where it is to go. */
export const unmoved = ({ move: _over, ...one }: Subscription): Subscription => one;

/** True if two lists have the same members. */
export function isSameSet(a: readonly string[], b: readonly string[]): boolean {
  const [one, other] = [new Set(a), new Set(b)];
  return one.size === other.size && [...one].every((name) => other.has(name));
}
