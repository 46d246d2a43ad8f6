import { samplePayloads } from '../../../src/testing/index.ts';
import type { FinalState, Owed, Place } from '../processes/judge.ts';
import type { Random } from '../processes/random.ts';
import type { Orders } from '../processes/wire.ts';

/** An event that the seller has to tell. */
export interface Planned {
  readonly key: string;
  /** Of a status: its task, and when it was reached, Unix ms. */
  readonly task?: { readonly id: string; readonly at: number };
  readonly inTransaction: boolean;
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
  /** Whether half of the handlers write in `ctx.transaction`. */
  readonly hasTransactions: boolean;
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

/**
 * Whether this event is one of `times`, spread over the whole.
 * @param from its place among its eight: those from 4 on are reports, which cannot end stale before their handler ran.
 */
function isOneOf(times: number, events: number, index: number, from: number): boolean {
  if (times === 0) return false;
  const group = Math.max(1, Math.floor(events / GROUP / times));
  return index % (group * GROUP) === from;
}

function ordersOf(index: number, options: TrafficOptions, random: Random): Orders {
  const { events, pauses, deaths, failures } = options;
  const group = Math.floor(index / GROUP);
  const pausing = isOneOf(pauses, events, index, 6);
  return {
    inTransaction: options.hasTransactions && group % 2 === 1,
    takesMs: pausing ? 0 : random.below(LONGEST_HANDLER_MS),
    ...(pausing && { pauses: true }),
    ...(isOneOf(deaths, events, index, 5) && { dies: group % 4 < 2 ? 'before' : 'after' }),
    ...(isOneOf(failures, events, index, 2) && { fails: true }),
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
    inTransaction: orders.inTransaction,
    payload: (copy) => ({ ...made, message: `copy ${copy}` }),
  };
}

function report(index: number, orders: Orders): Planned {
  const key = keyOf(index);
  const made = samplePayloads().report('scheduled', {}, { idempotency_key: key, context: orders });
  return {
    key,
    inTransaction: orders.inTransaction,
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
