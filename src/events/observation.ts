// Types of observations (a task's status that came by another channel than a webhook), and their keys (admission.md
// §5.9, §5.10).
// Called by `receiver.observe`, and where a stored observation is read.

import type { Refusal } from '../shared/outcome.ts';
import type { Event, EventChannel, TaskStatus } from './event.ts';

/**
 * The status of a task that you learned from something other than a webhook, e.g. the answer of a call or a poll.
 * Pass it to `receiver.observe`, which makes an event of it.
 */
export interface Observation {
  /** The agent URL of the seller. */
  readonly sender: string;
  /** The task's id. Required unless `operationId` is given: a first answer that ends the operation names no task. */
  readonly taskId?: string | undefined;
  readonly operationId?: string | undefined;
  /** The task type, e.g. `create_media_buy`. */
  readonly taskType?: string | undefined;
  readonly status: TaskStatus;
  /** The task's result, or the data of its status, as a webhook has them in `result`. JSON. */
  readonly data?: unknown;
  /** The context as the seller returned it. JSON. */
  readonly context?: unknown;
  /**
   * The time at which the status changed, as the seller says, RFC 3339 with a zone. Absent: the status is ordered
   * by `askedAt`.
   */
  readonly timestamp?: string | undefined;
  /** The time at which you sent your request to the seller, Unix ms on the receiver's clock. */
  readonly askedAt: number;
  readonly source: Exclude<EventChannel, 'webhook'>;
  /**
   * Identifies the change of the task: the `updated_at` of the answer. If the seller gives none, count the changes
   * that you saw, e.g. `change 1`, then `change 2`. The same text with the same status and source is the same
   * event, whatever its data.
   */
  readonly observation: string;
}

/**
 * The result of `receiver.observe`. `accepted`: the event is durable, and a worker runs its handler. `duplicate`: the
 * same observation was made before, or another channel reported the task's end. `stale`: a newer status was applied.
 * `refused`: the sender's limit of stored events is reached.
 */
export type Observed =
  | { readonly kind: 'accepted' | 'duplicate' | 'stale'; readonly event: Event }
  | (Refusal & { readonly code: 'sender_over_limit' });

/**
 * The type of `receiver.observe`, which makes an event of a task's status that you learned from something other than
 * a webhook.
 */
export type Observe = (observation: Observation) => Promise<Observed>;

const KEY = 'observation';

/**
 * Returns the idempotency key of an observation (admission.md §5.10).
 * @param hash identifies the change of the task.
 */
export const observationKey = (source: Observation['source'], hash: string): string =>
  `${KEY}/${source}/${hash}`;

/** Returns the channel of an observation, from its key. Undefined for the key of a webhook, which contains no `/`. */
export function observedBy(key: string): Observation['source'] | undefined {
  const [kind, source] = key.split('/');
  return kind === KEY && source !== undefined ? (source as Observation['source']) : undefined;
}
