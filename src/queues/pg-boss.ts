// Creates handlers that add each event to a pg-boss queue once: the entry `proto-webhooks/pg-boss`
// (docs/queues.md).
// Called by buyers. pg-boss is not imported: the parts of it that are used are declared here.

import { flag } from '../config/validate.ts';
import { onlyKnown } from '../config/validate.ts';
import { ConfigError } from '../shared/errors.ts';
import type { Event } from '../events/event.ts';
import type { HandlerContext } from '../config/receiver-options.ts';
import { unlessAborted } from '../shared/time-limits.ts';
import {
  DAY_MS,
  type JobSettings,
  optionsFor,
  requireOptions,
  storableJson,
  webhookJob,
} from './queue-job.ts';

export type { JobOptions, JobSettings, WebhookJob } from './queue-job.ts';

/**
 * The database connection on which pg-boss runs a statement. With `transaction: true`, `enqueue` passes the connection
 * of the event's transaction.
 */
export interface BossDatabase {
  executeSql(text: string, values?: unknown[]): Promise<{ rows: unknown[] }>;
}

/**
 * A pg-boss instance, reduced to the parts that `enqueue` uses. A started `PgBoss` of version 10 or 12 fits. The
 * caller stops it.
 */
export interface Boss<Options> {
  send(name: string, data: object, options?: Options): Promise<string | null>;
  getQueue(name: string): Promise<BossQueue | null>;
  /**
   * Finds a job by its id, since version 12. In earlier versions, finished jobs move to an archive that `getJobById`
   * reads.
   */
  findJobs?(name: string, options: { id: string; db?: BossDatabase }): Promise<readonly unknown[]>;
  getJobById(
    name: string,
    id: string,
    options: { includeArchive: boolean; db?: BossDatabase },
  ): Promise<unknown>;
}

/**
 * The settings of a pg-boss queue, as `getQueue` returns them. `enqueue` checks them, because some would lose or
 * duplicate events.
 */
export interface BossQueue {
  readonly policy?: string | null | undefined;
  readonly deleteAfterSeconds?: number | string | null | undefined;
}

/**
 * Options of `enqueue`, which creates a handler that adds each event to a pg-boss queue: the job's data and options.
 * With `transaction` the job and the event's completion are one commit.
 */
export interface EnqueueOptions<Options, E extends Event = Event> extends JobSettings<
  object,
  Options,
  OwnOption,
  E
> {
  /**
   * If true, job and completion are one commit (`ctx.transaction`), so that each event is enqueued exactly once. It
   * needs `postgresStore` in pg-boss's own database. Default: false.
   */
  readonly transaction?: boolean;
}

type OwnOption = keyof typeof REFUSED;

const REFUSED = {
  id: 'is ctx.deliveryId, so that an event is one job.',
  db: 'is the transaction’s if transaction is true.',
  singletonSeconds: 'would drop events that are not the same.',
  singletonMinutes: 'would drop events that are not the same.',
  singletonHours: 'would drop events that are not the same.',
  singletonNextSlot: 'would drop events that are not the same.',
} as const;

const OPTION_NAMES: Readonly<Record<keyof EnqueueOptions<object>, true>> = {
  data: true,
  jobOptions: true,
  transaction: true,
};

/**
 * Checks the pg-boss instance and the name of its queue.
 *
 * @throws ConfigError if one of them is missing or of another type.
 */
function requireBoss(boss: Partial<Boss<object>> | undefined, name: unknown): void {
  const named = typeof name === 'function' || (typeof name === 'string' && name !== '');
  if (boss?.send && boss.getQueue && named) return;
  throw new ConfigError(
    "pg-boss enqueue: give a PgBoss (10 or 12) and the name of a queue: enqueue(boss, 'webhooks').",
  );
}

/** Queue policies under which a job is not inserted while another one is queued. */
const DROPPING: readonly string[] = ['short', 'stately', 'exclusive'];

/**
 * Checks that the queue exists and drops no jobs.
 *
 * @throws ConfigError otherwise.
 */
function requireQueue(name: string, queue: BossQueue | null): asserts queue is BossQueue {
  if (!queue) {
    throw new ConfigError(
      `pg-boss enqueue: there is no queue ${name}. Create it at start: await boss.createQueue('${name}').`,
    );
  }
  if (DROPPING.includes(queue.policy ?? '')) {
    throw new ConfigError(
      `pg-boss enqueue: queue ${name} has the policy ${queue.policy}, which drops jobs while another one is queued. Create it with the policy standard or singleton.`,
    );
  }
}

function requireKept(name: string, { deleteAfterSeconds }: BossQueue): void {
  // For pg-boss, 0 means that jobs are never deleted. Version 10 has one setting for all queues and does not return it.
  const seconds = Number(deleteAfterSeconds ?? 0);
  if (seconds === 0 || seconds * 1000 >= DAY_MS) return;
  throw new ConfigError(
    `pg-boss enqueue: jobs of queue ${name} are deleted ${seconds} s after they are done, and sellers retry for 24 h: an event could run twice. Set deleteAfterSeconds to ${DAY_MS / 1000} or more, or use transaction: true.`,
  );
}

async function isKnown(
  boss: Boss<object>,
  name: string,
  id: string,
  db: { db?: BossDatabase },
): Promise<boolean> {
  if (boss.findJobs) return (await boss.findJobs(name, { id, ...db })).length > 0;
  return Boolean(await boss.getJobById(name, id, { includeArchive: true, ...db }));
}

interface BossJob {
  readonly name: string;
  readonly id: string;
  readonly data: object;
  readonly options: object;
}

/**
 * Adds the job. `send` returns null if a job with the id exists, which is right for a retry. But it also returns null
 * if the job was dropped, which is an error.
 */
async function put(
  boss: Boss<object>,
  { name, id, data, options }: BossJob,
  database?: BossDatabase,
): Promise<void> {
  const db = database ? { db: database } : {};
  // Before version 12, the id of an archived job can be used again, so existing jobs are looked for first. Jobs only
  // move into the archive, so one query of queue and archive finds every job.
  if (!boss.findJobs && (await isKnown(boss, name, id, db))) return;
  const sent = await boss.send(name, data, { ...options, id, ...db });
  if (sent === null && !(await isKnown(boss, name, id, db))) {
    throw new Error(
      `pg-boss dropped the job ${id}: no queue ${name}, or its policy or a job option allows no other`,
    );
  }
}

/**
 * Returns the transaction's connection in the form that pg-boss expects. After `signal` has aborted it runs no
 * statement, because the connection may belong to other code.
 */
function databaseOf(tx: unknown, signal: AbortSignal): BossDatabase {
  const client = tx as {
    readonly query?: (text: string, values?: unknown[]) => Promise<{ rows: unknown[] }>;
  };
  if (typeof client.query !== 'function') {
    throw new ConfigError(
      'pg-boss enqueue: transaction: true needs postgresStore, in the database of pg-boss.',
    );
  }
  return {
    executeSql: async (text, values) => {
      signal.throwIfAborted();
      return (client.query as NonNullable<typeof client.query>)(text, values);
    },
  };
}

/**
 * Creates a handler that adds each event to a pg-boss queue as one job. The job's id is `ctx.deliveryId`. The
 * handler returns when the job is committed.
 *
 * If the queue drops the job, the handler fails and the answer is 503, never 2xx.
 * @param name the name of an existing queue, or a function of the event.
 * @throws ConfigError if an option would lose or duplicate events; the handler throws it if the queue's settings
 *   would.
 * @example
 * ```ts
 * import { PgBoss } from 'pg-boss';
 * import { enqueue } from 'proto-webhooks/pg-boss';
 *
 * const boss = new PgBoss('postgres://localhost/buyer');
 * await boss.start();
 * await boss.createQueue('webhooks');
 * export const handlers = { task: enqueue(boss, 'webhooks', { transaction: true }) };
 * ```
 */
export function enqueue<Options extends object, E extends Event = Event>(
  boss: Boss<Options>,
  name: string | ((event: E) => string),
  options?: EnqueueOptions<Options, E>,
): (event: E, ctx: HandlerContext) => Promise<void>;
export function enqueue(
  boss: Boss<object>,
  name: string | ((event: Event) => string),
  options: EnqueueOptions<object> = {},
): (event: Event, ctx: HandlerContext) => Promise<void> {
  requireBoss(boss, name);
  onlyKnown('pg-boss enqueue: options', options, OPTION_NAMES);
  const { data = webhookJob, jobOptions } = options;
  const transaction = flag('pg-boss enqueue: transaction', options.transaction);
  if (typeof jobOptions === 'object') requireOptions('pg-boss enqueue', jobOptions, REFUSED);
  const known = new Set<string>();

  async function jobOf(event: Event, ctx: HandlerContext): Promise<BossJob> {
    const own = optionsFor(jobOptions, event);
    requireOptions('pg-boss enqueue', own, REFUSED);
    const queueName = typeof name === 'string' ? name : name(event);
    // In a transaction a dropped job fails and no job is added twice, so the queue is checked once. Without a
    // transaction, each event depends on the time that the queue keeps jobs, which its owner may change
    // (`updateQueue`).
    if (!transaction || !known.has(queueName)) {
      const queue = await boss.getQueue(queueName);
      requireQueue(queueName, queue);
      if (!transaction) requireKept(queueName, { ...queue, ...own });
      known.add(queueName);
    }
    return { name: queueName, id: ctx.deliveryId, data: storableJson(data(event, ctx)), options: own };
  }

  return async (event, ctx) => {
    // A job that is added after the handler's deadline does no harm, because its id is the same.
    const job = await unlessAborted(ctx.signal, () => jobOf(event, ctx));
    if (!transaction) return unlessAborted(ctx.signal, () => put(boss, job));
    await ctx.transaction((tx) => {
      const database = databaseOf(tx, ctx.signal);
      // The function must end when `ctx.signal` aborts. Otherwise the transaction would keep its connection and the
      // event.
      return unlessAborted(ctx.signal, () => put(boss, job, database));
    });
  };
}
