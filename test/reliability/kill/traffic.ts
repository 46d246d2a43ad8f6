import { samplePayloads } from '../../../src/testing/index.ts';
import type { FinalState, Owed, Place } from '../processes/judge.ts';
import type { Random } from '../processes/random.ts';
import type { Orders } from '../processes/wire.ts';

/** An event that the seller has to tell. */
export interface Planned {
  readonly key: string;
  /** Of a status: its task, and when it was reached, Unix ms. */
  readonly task?: { readonly id: string; readonly at: number };
  /** What it tells its handler to do. */
  readonly orders: Orders;
  /** Its body, as its n-th copy: `message` names the copy, and from 2 on the payload has changed. */
  readonly payload: (copy: number) => object;
}

/** Once or more; all of them at about the same time. */
export interface PlannedDelivery {
  readonly event: Planned;
  readonly copy: number;
}

export interface TrafficOptions {
  readonly events: number;
  /** Whether half of the handlers write in `ctx.transaction`, among them half of those that are stopped, die or fail. */
  readonly hasTransactions: boolean;
  /** Whether a handler can be stopped inside of `ctx.transaction`, and others still write. */
  readonly canStopWithin?: boolean;
  /** Duplicates and changed payloads beside each event. */
  readonly hasDuplicates: boolean;
  /** Events whose handler stops its process, kills its process, throws. */
  readonly pauses: number;
  readonly deaths: number;
  readonly failures: number;
}

export interface Traffic {
  readonly events: readonly Planned[];
  readonly deliveries: readonly PlannedDelivery[];
}

/** Events of one task, and as many reports. */
const GROUP = 8;
const STATUSES = ['working', 'input-required', 'working', 'completed'] as const;
/** All longer ago than any clock is wrong. */
const FIRST_AT = Date.parse('2026-01-02T03:04:05Z');
const LONGEST_HANDLER_MS = 5;

/** Half of it statuses, four a task and not in their order, half delivery reports. */
export function trafficOf(options: TrafficOptions, random: Random): Traffic {
  const events = Array.from({ length: options.events }, (_, index) => {
    const orders = ordersOf(index, options, random);
    return index % GROUP < STATUSES.length ? status(index, orders) : report(index, orders);
  });
  const placed: { readonly at: number; readonly delivery: PlannedDelivery }[] = [];
  for (const [index, event] of events.entries()) {
    const place = (copy: number, spread: number): void => {
      placed.push({ at: index + random.next() * spread, delivery: { event, copy } });
    };
    place(1, 10);
    if (!options.hasDuplicates) continue;
    if (random.below(5) === 0) place(1, 40);
    if (random.below(10) === 0) place(2, 40);
  }
  return { events, deliveries: placed.toSorted((a, b) => a.at - b.at).map(({ delivery }) => delivery) };
}

/** What befalls handlers in turn: every second one is of an event in a transaction. */
const DEATHS: readonly NonNullable<Orders['dies']>[] = ['before', 'within', 'after', 'after'];
const PAUSES: readonly NonNullable<Orders['pauses']>[] = ['before', 'within', 'before', 'before'];
const FAILURES: readonly NonNullable<Orders['fails']>[] = ['after', 'within', 'after', 'after'];

const inTurn = <T>(all: readonly T[], ordinal: number): T => all[ordinal % all.length] as T;

/**
 * Returns which of `times` this event is, from 0; undefined: none of them. They are spread over the whole.
 * @param from its place among its eight: those from 4 on are reports, which cannot end stale before their handler ran.
 */
function ordinalOf(times: number, events: number, index: number, from: number): number | undefined {
  const stride = GROUP * Math.max(1, Math.floor(events / GROUP / Math.max(1, times)));
  const ordinal = Math.floor(index / stride);
  return index % stride === from && ordinal < times ? ordinal : undefined;
}

function ordersOf(index: number, options: TrafficOptions, random: Random): Orders {
  const { events, pauses, deaths, failures, hasTransactions, canStopWithin = false } = options;
  const pause = ordinalOf(pauses, events, index, 6);
  const death = ordinalOf(deaths, events, index, 5);
  // Those in transactions are reports, which always run; the others are statuses.
  const failure = [2, 7]
    .map((from) => ordinalOf(failures, events, index, from))
    .find((ordinal, inTransaction) => ordinal !== undefined && ordinal % 2 === inTransaction);
  const stopped = inTurn(PAUSES, pause ?? 0);
  // By its own count, and not by its group's: each stride of groups may be even.
  const ordinal = pause ?? death ?? failure ?? Math.floor(index / GROUP);
  return {
    inTransaction: hasTransactions && ordinal % 2 === 1,
    takesMs: pause === undefined ? random.below(LONGEST_HANDLER_MS) : 0,
    ...(pause !== undefined && { pauses: canStopWithin ? stopped : 'before' }),
    ...(death !== undefined && { dies: inTurn(DEATHS, death) }),
    ...(failure !== undefined && { fails: inTurn(FAILURES, failure) }),
  };
}

const keyOf = (index: number): string => `event-${String(index).padStart(6, '0')}-of-the-seller`;

function status(index: number, orders: Orders): Planned {
  const step = index % GROUP;
  const key = keyOf(index);
  const id = `task-${Math.floor(index / GROUP)}`;
  const at = FIRST_AT + step * 1000;
  const common = {
    idempotency_key: key,
    task_id: id,
    timestamp: new Date(at).toISOString(),
    context: orders,
  };
  const made = samplePayloads().tool(STATUSES[step] ?? 'working', common);
  return {
    key,
    task: { id, at },
    orders,
    payload: (copy) => ({ ...made, message: `copy ${copy}` }),
  };
}

function report(index: number, orders: Orders): Planned {
  const key = keyOf(index);
  const made = samplePayloads().report('scheduled', {}, { idempotency_key: key, context: orders });
  return {
    key,
    orders,
    payload: (copy) => ({ ...made, message: `copy ${copy}` }),
  };
}

/** Events of which a seller was told that they are safe are owed; the others may be as they are. */
export const owedOf = (
  events: readonly Planned[],
  acknowledged: ReadonlySet<string>,
  states: ReadonlyMap<string, FinalState>,
): readonly Owed[] =>
  events.map(({ key }) => ({
    name: key,
    keys: [key],
    isExcused: !acknowledged.has(key),
    state: states.get(key) ?? 'absent',
  }));

export const placesOf = (events: readonly Planned[]): ReadonlyMap<string, Place> =>
  new Map(events.flatMap(({ key, task }) => (task ? [[key, { task: task.id, at: task.at }] as const] : [])));
