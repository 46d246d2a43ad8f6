import * as bullmq6 from 'bullmq';
import * as bullmq5 from 'bullmq5';
import { Pool } from 'pg';
import { PgBoss } from 'pg-boss';
import PgBoss10 from 'pg-boss10';
import type { HandlerContext } from '../../src/index.ts';
import type { Event } from '../../src/events/index.ts';
import { enqueue as enqueueToBull } from '../../src/queues/bullmq.ts';
import { enqueue as enqueueToBoss } from '../../src/queues/pg-boss.ts';
import { until } from '../support/redis.ts';

/** A real queue, of the kind and major that is under test. */
export interface OpenQueue {
  readonly handler: (event: Event, ctx: HandlerContext) => Promise<void>;
  /** Ids of the jobs that have not been run yet. */
  readonly waiting: () => Promise<string[]>;
  /** Starts the queue's own worker, which takes note of each run; resolves when it has run so many. */
  readonly work: (runs: number) => Promise<{ readonly id: string; readonly data: unknown }[]>;
  /** What the queue does with a job that is done, when its time is over. */
  readonly forget: () => Promise<void>;
  readonly close: () => Promise<void>;
}

/** Where a queue is. */
export interface QueueLocation {
  readonly url: string;
  readonly name: string;
  /** Postgres: what its schemas begin with. */
  readonly schema: string;
}

export interface Kind {
  readonly server: 'redis' | 'postgres';
  readonly open: (place: QueueLocation) => Promise<OpenQueue>;
}

interface JobRun {
  readonly id: string;
  readonly data: unknown;
}

/** Resolves when as many runs were noted. */
function runsOf(): {
  note: (run: JobRun) => void;
  all: JobRun[];
  have: (count: number) => Promise<JobRun[]>;
} {
  const all: JobRun[] = [];
  let onRun = (): void => {};
  return {
    all,
    note: (run) => {
      all.push(run);
      onRun();
    },
    have: (count) =>
      new Promise((resolve) => {
        onRun = () => {
          if (all.length >= count) resolve(all);
        };
        onRun();
      }),
  };
}

/** ioredis, as BullMQ wants it for workers. */
export function connection(url: string): { host: string; port: number; maxRetriesPerRequest: null } {
  const { hostname, port } = new URL(url);
  return { host: hostname, port: Number(port), maxRetriesPerRequest: null };
}

const bull = ({ Queue, Worker }: typeof bullmq6): Kind => ({
  server: 'redis',
  open: async ({ url, name }) => {
    const queue = new Queue(name, { connection: connection(url) });
    const workers: bullmq6.Worker[] = [];
    return {
      // The hardest case: a job is gone as soon as it is done.
      handler: enqueueToBull(queue, { jobOptions: { removeOnComplete: true } }),
      waiting: async () =>
        (await queue.getJobs(['waiting', 'delayed', 'prioritized'])).map(({ id }) => String(id)),
      work: async (count) => {
        const runs = runsOf();
        const worker = new Worker(name, async () => {}, { connection: connection(url) });
        workers.push(worker);
        worker.on('completed', ({ id, data }) => runs.note({ id: String(id), data }));
        return runs.have(count);
      },
      forget: async () => {},
      close: async () => {
        for (const worker of workers) await worker.close();
        await queue.close();
      },
    };
  },
});

/** Two versions, one shape: what is called here they share. */
export type BossClass = new (options: object) => PgBoss & { archive?(): Promise<void> };

const boss = (Boss: BossClass, major: number): Kind => ({
  server: 'postgres',
  open: async ({ url, name, schema: prefix }) => {
    const schema = `${prefix}_${major}`;
    const its = new Boss({ connectionString: url, schema, supervise: false, schedule: false, max: 3 });
    its.on('error', () => undefined);
    await its.start();
    await its.createQueue(name);
    const states = async (): Promise<{ id: string; state: string }[]> =>
      (await its.getDb().executeSql(`SELECT id, state FROM ${schema}.job WHERE name = $1`, [name])).rows;
    return {
      handler: enqueueToBoss(its, name),
      waiting: async () => (await states()).filter(({ state }) => state === 'created').map(({ id }) => id),
      work: async (count) => {
        const runs = runsOf();
        await its.work(name, { pollingIntervalSeconds: 0.5 }, async ([job]) => {
          if (job) runs.note({ id: job.id, data: job.data });
        });
        return runs.have(count);
      },
      // Twelve hours later version 10 moves what is done to its archive, and the id is free again.
      forget: async () => {
        await until('every job is done', async () =>
          (await states()).every(({ state }) => state === 'completed'),
        );
        await its
          .getDb()
          .executeSql(`UPDATE ${schema}.job SET completed_on = now() - interval '13 hours' WHERE name = $1`, [
            name,
          ]);
        await its.archive?.();
      },
      close: () => its.stop({ graceful: false }),
    };
  },
});

/** Every kind and major that is promised to work. */
export const KINDS = {
  'BullMQ 6': bull(bullmq6),
  'BullMQ 5': bull(bullmq5 as unknown as typeof bullmq6),
  'pg-boss 12': boss(PgBoss, 12),
  'pg-boss 10': boss(PgBoss10 as unknown as BossClass, 10),
} as const satisfies Record<string, Kind>;

export type KindName = keyof typeof KINDS;

/** @param schema of a `QueueLocation`. */
export async function dropSchemas(url: string, schema: string): Promise<void> {
  const pool = new Pool({ connectionString: url, max: 1 });
  for (const major of [10, 12]) await pool.query(`DROP SCHEMA IF EXISTS ${schema}_${major} CASCADE`);
  await pool.end();
}
