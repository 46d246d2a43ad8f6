// Creates handlers that add each event to a BullMQ queue once: the entry `proto-webhooks/bullmq`
// (docs/queues.md).
// Called by buyers. BullMQ is not imported: the parts of it that are used are declared here.

import { notANumber, onlyKnown } from '../config/validate.ts';
import { ConfigError } from '../shared/errors.ts';
import type { Event } from '../events/event.ts';
import type { HandlerContext } from '../config/receiver-options.ts';
import { unlessAborted } from '../shared/time-limits.ts';
import {
  DAY_MS,
  type JobSettings,
  optionsFor,
  requireOptions,
  webhookJob,
  type WebhookJob,
} from './queue-job.ts';

export type { JobOptions, JobSettings, WebhookJob } from './queue-job.ts';

/**
 * A BullMQ queue, reduced to the parts that `enqueue` uses. `Queue` of `bullmq` 5.17.1 and later and of version 6
 * fits. The caller closes it.
 */
export interface BullQueue<Data, Options> {
  readonly name: string;
  /** Never called. Its presence shows that the queue supports deduplication, which BullMQ has since 5.17.1. */
  removeDeduplicationKey(id: string): Promise<unknown>;
  add(name: string, data: Data, options?: Options): Promise<BullJob>;
}

/** A BullMQ job, reduced to the parts that `enqueue` uses: its ids. */
export interface BullJob {
  readonly id?: string | undefined;
  readonly deduplicationId?: string | undefined;
}

/**
 * Options of `enqueue`, which creates a handler that adds each event to a BullMQ queue: the job's name, data and
 * options. `rememberMs` is the time within which a repeated event adds no second job.
 */
export interface EnqueueOptions<Data, Options, E extends Event = Event> extends JobSettings<
  Data,
  Options,
  OwnOption,
  E
> {
  /** The name of the job, or a function of the event. Default: the event's `kind`. */
  readonly jobName?: string | ((event: E) => string);
  /**
   * The time for which Redis remembers that an event was enqueued, even after its job was removed, ms. At least 24
   * h, because sellers retry that long. Default: 7 days.
   */
  readonly rememberMs?: number;
}

type OwnOption = keyof typeof REFUSED;

const REFUSED = {
  jobId: 'is ctx.deliveryId, so that an event is one job.',
  deduplication: 'would drop events that are not the same.',
  debounce: 'would drop events that are not the same.',
  repeat: 'would run one event many times.',
  parent: 'does not go with deduplication, which BullMQ refuses for a child.',
} as const;

const OPTION_NAMES: Readonly<Record<keyof EnqueueOptions<unknown, object>, true>> = {
  jobName: true,
  data: true,
  jobOptions: true,
  rememberMs: true,
};

const WEEK_MS = 7 * DAY_MS;

function rememberFor(ms: number = WEEK_MS): number {
  if (Number.isSafeInteger(ms) && ms >= DAY_MS) return ms;
  throw new ConfigError(
    `bullmq enqueue: rememberMs: ${notANumber(ms)} not a whole number of ms of at least ${DAY_MS}: sellers retry for 24 h. Leave it out for 7 days.`,
  );
}

const tooOld = (queue: string): ConfigError =>
  new ConfigError(
    `bullmq enqueue: the BullMQ of queue ${queue} knows no deduplication, so an event whose job was removed could run twice. Update bullmq to 5.17.1 or later.`,
  );

/**
 * Checks that the argument is a BullMQ queue.
 *
 * @throws ConfigError for anything else, e.g. a name, a connection or nothing.
 */
function requireQueue(queue: unknown): void {
  const { add } = (queue ?? {}) as Partial<BullQueue<unknown, object>>;
  if (typeof add === 'function') return;
  throw new ConfigError(
    "bullmq enqueue: the first argument is not a queue. Write enqueue(new Queue('webhooks', { connection })), with Queue of 'bullmq'.",
  );
}

/**
 * Refuses a BullMQ without deduplication before any job is added. Without it, an event could run once for each retry.
 */
function requireDeduplication(queue: BullQueue<unknown, object>): void {
  const { name } = queue;
  if (!('removeDeduplicationKey' in queue)) throw tooOld(name);
}

/** Checks that the job that `add` returned belongs to this event. */
function requireOwnJob(job: BullJob, id: string, queue: string): void {
  if (job.deduplicationId !== id) throw tooOld(queue);
  if (job.id !== id) throw new Error(`queue ${queue} has no job for ${id}: job ${job.id} took its place`);
}

/**
 * Creates a handler that adds each event to a BullMQ queue once. The job's id is `ctx.deliveryId`. BullMQ remembers
 * it for `rememberMs` (7 days by default), even if the job is removed when it is done (`removeOnComplete`).
 *
 * The handler returns when Redis has the job. If the queue is unreachable, the handler fails and the answer is 503.
 * @throws ConfigError if an option, or a BullMQ before 5.17.1, would lose or duplicate events.
 * @example
 * ```ts
 * import { Queue } from 'bullmq';
 * import { enqueue } from 'proto-webhooks/bullmq';
 *
 * const queue = new Queue('webhooks', { connection: { host: 'localhost' } });
 * export const handlers = { task: enqueue(queue), deliveryReport: enqueue(queue) };
 * ```
 */
export function enqueue<Options, E extends Event = Event>(
  queue: BullQueue<WebhookJob, Options>,
  options?: EnqueueOptions<WebhookJob, Options, E>,
): (event: E, ctx: HandlerContext) => Promise<void>;
/**
 * Creates such a handler with job data of your own, which the option `data` returns.
 *
 * @example
 * ```ts
 * import { Queue } from 'bullmq';
 * import { enqueue } from 'proto-webhooks/bullmq';
 * import type { TaskEvent } from 'proto-webhooks';
 *
 * const queue = new Queue<{ taskId: string }>('tasks', { connection: { host: 'localhost' } });
 * export const task = enqueue(queue, { data: (event: TaskEvent) => ({ taskId: event.taskId }) });
 * ```
 */
export function enqueue<Data, Options, E extends Event = Event>(
  queue: BullQueue<Data, Options>,
  options: EnqueueOptions<Data, Options, E> & { readonly data: (event: E, ctx: HandlerContext) => Data },
): (event: E, ctx: HandlerContext) => Promise<void>;
export function enqueue(
  queue: BullQueue<unknown, object>,
  options: EnqueueOptions<unknown, object> = {},
): (event: Event, ctx: HandlerContext) => Promise<void> {
  requireQueue(queue);
  onlyKnown('bullmq enqueue: options', options, OPTION_NAMES);
  const { jobName = ({ kind }) => kind, data = webhookJob, jobOptions } = options;
  const ttl = rememberFor(options.rememberMs);
  requireDeduplication(queue);
  if (typeof jobOptions === 'object') requireOptions('bullmq enqueue', jobOptions, REFUSED);

  return async (event, ctx) => {
    const own = optionsFor(jobOptions, event);
    requireOptions('bullmq enqueue', own, REFUSED);
    const id = ctx.deliveryId;
    const name = typeof jobName === 'string' ? jobName : jobName(event);
    // The job's id can be used again once the job is removed, so there is a deduplication key too, which lasts for
    // `ttl`.
    const settings = { ...own, jobId: id, deduplication: { id, ttl } };
    // BullMQ clients wait for an unreachable server, some without end. A job that is added after the handler's
    // deadline, or after its lease was lost, does no harm, because its id is the same.
    const job = await unlessAborted(ctx.signal, () => queue.add(name, data(event, ctx), settings));
    requireOwnJob(job, id, queue.name);
  };
}
