// Reads the state of one object, e.g. of an impairment, from the payload of a notification. Also makes a payload that
// reports the end of a state, if no notification reported that end (owed.md §6.1, §6.5).
// Called by `assemble.ts` for webhooks, and by the reconciler for snapshots (answers in which a seller lists objects).

import { defined, isJsonObject, type JsonObject, present, textMember } from '../codec/members.ts';
import { MAX_STATE_ID } from '../states/states.ts';
import type { NotificationFamily } from './event.ts';
import { parseInstant } from './instant.ts';
import { notificationFamily } from './notification-family.ts';

/**
 * The state of one object, e.g. of an impairment, as the payload of a notification reports it. A store keeps the newest
 * state of each object.
 */
export interface StateReading {
  /** The id of the object, at most 255 characters. */
  readonly id: string;
  /** The time of the change, Unix ms. Absent if the body has no valid time. */
  readonly at?: number;
  /** The new state, as the seller names it. */
  readonly to?: string;
  /**
   * The state before the change, as the seller names it. Present for impairments only: a return to the state before its
   * first change ends an impairment.
   */
  readonly from?: string;
  /** Present if the body itself says that the state is over, e.g. that a creative was purged. */
  readonly ended?: true;
}

/** The names of nested members, from the outermost to the innermost. */
type Path = readonly string[];

/** The paths of three members of a payload: the object's id, its new state, and the time of the change. */
interface StateMembers {
  readonly id: Path;
  readonly at: Path;
  readonly to?: Path;
  /**
   * The path of the state before the change. Present for a family in which a return to an earlier state ends the
   * problem.
   */
  readonly from?: Path;
  /** True if the family's name itself says that the object no longer exists, e.g. `creative.purged`. */
  readonly isEnd?: (family: string) => boolean;
}

/**
 * For each family whose payloads are about one object, the paths of the members to read. Payloads of other families are
 * about a log, a pair of objects, or the seller.
 */
const STATES: { readonly [F in NotificationFamily]?: StateMembers } = {
  impairment: {
    id: ['impairment_id'],
    at: ['observed_at'],
    to: ['transition', 'to'],
    from: ['transition', 'from'],
  },
  'creative.status_changed': {
    id: ['creative_id'],
    at: ['transition', 'observed_at'],
    to: ['transition', 'to'],
  },
  'creative.purged': { id: ['creative_id'], at: ['purged_at'], isEnd: () => true },
  'account.status_changed': { id: ['account_id'], at: ['observed_at'], to: ['status'] },
  'reporting.status_changed': { id: ['delivery_config_id'], at: ['observed_at'], to: ['health'] },
  collection_list_changed: { id: ['list_id'], at: ['resolved_at'] },
  property_list_changed: { id: ['list_id'], at: ['resolved_at'] },
  wholesale_feed: {
    id: ['event', 'entity_id'],
    at: ['event', 'created_at'],
    isEnd: (family) => family.endsWith('.removed'),
  },
};

/** Returns the string at the end of a path of members; undefined if there is none. */
function textAt(payload: JsonObject, path: Path): string | undefined {
  const [name = '', ...rest] = path;
  if (rest.length === 0) return textMember(payload, name);
  const inner = present(payload, name);
  return isJsonObject(inner) ? textAt(inner, rest) : undefined;
}

const textIn = (payload: JsonObject, path: Path | undefined): string | undefined =>
  path && textAt(payload, path);

const msOf = (text: string | undefined): number | undefined =>
  text === undefined ? undefined : parseInstant(text)?.ms;

const membersOf = (family: string): StateMembers | undefined => {
  const name = notificationFamily(family);
  return Object.hasOwn(STATES, name) ? STATES[name as NotificationFamily] : undefined;
};

/** The parts of an event from which the state of an object is read. */
interface Told {
  readonly family: string;
  /** The typed payload of the notification. */
  readonly payload: unknown;
  readonly envelope: JsonObject;
  readonly data: unknown;
  /** The time of the event itself, Unix ms. It is used if the payload has no time of the change. */
  readonly eventAt: number | undefined;
}

/**
 * Reads the state from an event.
 * @returns undefined for a family without a state, and for an id that cannot be stored.
 */
export function stateReading(told: Told): StateReading | undefined {
  const { family, payload, eventAt } = told;
  const members = membersOf(family);
  if (!members || !isJsonObject(payload)) return undefined;
  const id = textAt(payload, members.id);
  if (id === undefined || id.length > MAX_STATE_ID) return undefined;
  const at = msOf(textAt(payload, members.at)) ?? eventAt ?? msOf(textMember(payload, 'fired_at'));
  const isOver = members.isEnd?.(family) === true || isHealthy(told);
  const [to, from] = [textIn(payload, members.to), textIn(payload, members.from)];
  return { id, ...defined({ at, to, from }), ...(isOver && { ended: true }) };
}

/** True if the `health` beside an impairment is `ok`, which means that the media buy has no impairment any more. */
const isHealthy = ({ family, data, envelope }: Told): boolean =>
  family === 'impairment' &&
  [data, envelope].some((one) => isJsonObject(one) && textMember(one, 'health') === 'ok');

/**
 * Returns the state before the change, from an object that a seller's answer lists. Undefined for families in which a
 * return to an earlier state ends nothing.
 */
export const originIn = (payload: JsonObject, family: string): string | undefined =>
  textIn(payload, membersOf(family)?.from);

/** True if each payload of the family is about one object, so that a store can keep the object's state. */
export const hasState = (family: string): boolean => membersOf(family) !== undefined;

/** Returns the new state in a payload; undefined if the payload names none. */
export const stateIn = (family: string, payload: JsonObject): string | undefined =>
  textIn(payload, membersOf(family)?.to);

/**
 * Makes the payload that reports the end of a state, for an end that no webhook reported (owed.md §6.5).
 * @param from the state that has ended.
 */
export function endPayload(
  family: string,
  { id, from, at }: { readonly id: string; readonly from?: string | undefined; readonly at: number },
): JsonObject {
  const [name = 'id', ...inner] = (membersOf(family)?.id ?? []).toReversed();
  const thing = inner.reduce<JsonObject>((within, outer) => ({ [outer]: within }), { [name]: id });
  const ended = from === undefined ? {} : { transition: { from } };
  return { ...thing, ...ended, observed_at: new Date(at).toISOString() };
}
