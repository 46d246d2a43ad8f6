import type { Refusal } from '../shared/outcome.ts';
import type { Event, EventChannel, TaskStatus } from './event.ts';

/** What a buyer has learned of a task by another channel than a webhook. */
export interface Observation {
  /** Agent URL of the seller. */
  readonly sender: string;
  /** One of the two, or both: a first answer that ends the operation names no task. */
  readonly taskId?: string | undefined;
  readonly operationId?: string | undefined;
  /** e.g. `create_media_buy`. */
  readonly taskType?: string | undefined;
  readonly status: TaskStatus;
  /** The task's result, or what its status says: what a webhook has in `result`. JSON. */
  readonly data?: unknown;
  /** As the seller gave it back. JSON. */
  readonly context?: unknown;
  /** When the seller says that the status changed, RFC 3339 with a zone. Without it a status is ordered by `askedAt`. */
  readonly timestamp?: string | undefined;
  /** When the buyer asked. Unix ms, on the receiver's clock. */
  readonly askedAt: number;
  readonly source: Exclude<EventChannel, 'webhook'>;
  /**
   * Which change of the task it is: the `updated_at` of the answer; where the seller gives none, how many changes of the task were
   * seen, e.g. `change 1`, then `change 2`. The same text with the same status and source is the same event, whatever its data.
   */
  readonly observation: string;
}

/**
 * What came of it. `accepted`: durable, and its handler runs in a worker. `duplicate`: it was observed before, or the task's end
 * was told by another channel. `stale`: something newer was applied.
 */
export type Observed =
  | { readonly kind: 'accepted' | 'duplicate' | 'stale'; readonly event: Event }
  | (Refusal & { readonly code: 'sender_over_limit' });

/** `Receiver.observe`. */
export type Observe = (observation: Observation) => Promise<Observed>;

const KEY = 'observation';

/** The key of an observation (admission.md §5.10). @param hash of which change it is. */
export const observationKey = (source: Observation['source'], hash: string): string =>
  `${KEY}/${source}/${hash}`;

/** The channel of an observation, by its key; undefined for a webhook's, which has no `/`. */
export function observedBy(key: string): Observation['source'] | undefined {
  const [kind, source] = key.split('/');
  return kind === KEY && source !== undefined ? (source as Observation['source']) : undefined;
}
