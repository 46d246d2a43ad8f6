import { randomBytes, randomUUID } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, expect, inject, it } from 'vitest';
import { inThisForm } from '../reliability/form.ts';
import { type Ground, onGround, TIMES } from '../reliability/processes/ground.ts';
import { judge, KEPT } from '../reliability/processes/judge.ts';
import type { Mode } from '../reliability/processes/wire.ts';
import { report } from '../reliability/suspects/events.ts';
import type { Planned } from '../reliability/kill/traffic.ts';
import { type RedisUrl, startRedis } from '../support/redis.ts';
import { sharedPostgres } from '../support/shared-postgres.ts';
import { dropSchemas, KINDS, type KindName, type OpenQueue, type QueueLocation } from './kinds.ts';

let redis: Promise<RedisUrl> | undefined;
const schema = `queues_${randomBytes(6).toString('hex')}`;

afterAll(async () => {
  await (await redis)?.stop();
  await dropSchemas(await sharedPostgres(inject('shared')), schema);
});

async function placeOf(kind: KindName): Promise<QueueLocation> {
  const isRedis = KINDS[kind].server === 'redis';
  const url = isRedis ? (await (redis ??= startRedis())).url : await sharedPostgres(inject('shared'));
  return { url, name: `events-${randomUUID()}`, schema };
}

/** What becomes of the job while its event's handler has not come to an end. */
type Meanwhile = 'the job waits' | 'the job is done, and forgotten';

interface Row {
  readonly kind: KindName;
  readonly mode: Mode;
  readonly meanwhile: Meanwhile;
}

const MODES: readonly Mode[] = ['inline', 'inbox'];

/** `npm test` has the hardest case for each queue: its newest major, and a job whose id is free again. */
const ROWS = inThisForm(
  (Object.keys(KINDS) as KindName[]).flatMap((kind) =>
    MODES.flatMap((mode) =>
      (['the job waits', 'the job is done, and forgotten'] as const).map((meanwhile): Row => ({
        kind,
        mode,
        meanwhile,
      })),
    ),
  ),
  ({ kind, mode, meanwhile }) =>
    (kind === 'BullMQ 6' || kind === 'pg-boss 12') && mode === 'inbox' && meanwhile !== 'the job waits',
);

/** The process that has enqueued the event is killed before it can complete it; another one has its turn. */
async function killAfterEnqueue(
  { fleet, folder, ledger, seller, drained }: Ground,
  payload: object,
  meanwhile: () => Promise<unknown>,
): Promise<void> {
  const enqueued = () => ledger.read().filter(({ what }) => what === 'effect');
  const told = seller.deliver(payload, 'fresh');
  await expect.poll(() => enqueued().length).toBe(1);
  await meanwhile();
  expect(fleet.killThis(enqueued()[0]?.pid ?? 0)).toBe(true);
  await expect.poll(() => enqueued().length).toBe(2);
  writeFileSync(join(folder, 'released'), '');
  expect(await told).toBe(true);
  await drained();
}

/** One job comes of it, which is run once. @param next an event after it. */
const PLAY: Readonly<
  Record<Meanwhile, (queue: OpenQueue, ground: Ground, event: Planned, next: Planned) => Promise<void>>
> = {
  'the job waits': async (queue, ground, event) => {
    let ids: readonly string[] = [];
    await killAfterEnqueue(ground, event.payload(1), async () => {
      ids = await queue.waiting();
    });
    expect(ids).toHaveLength(1);
    expect(await queue.waiting()).toEqual(ids);
  },
  'the job is done, and forgotten': async (queue, ground, event, next) => {
    let runs: Awaited<ReturnType<OpenQueue['work']>> = [];
    await killAfterEnqueue(ground, event.payload(1), async () => {
      runs = await queue.work(1);
      await expect.poll(() => queue.waiting()).toEqual([]);
      await queue.forget();
    });
    // A queue that took it once more would have it waiting, running or run.
    expect(await ground.seller.deliver(next.payload(1), 'fresh')).toBe(true);
    await expect
      .poll(() => runs.map(({ data }) => (data as { idempotencyKey: string }).idempotencyKey))
      .toEqual([event.key, next.key]);
  },
};

it.each(ROWS)(
  '$kind, $mode: kill -9 between enqueue and completion, $meanwhile: one job, completed once',
  async ({ kind, mode, meanwhile }) => {
    const at = await placeOf(kind);
    const roles = [mode === 'inline' ? 'door' : 'both'] as const;
    const options = { kind: 'SQLite', mode, roles, seed: 1, deadlineMs: 120_000 } as const;
    const queue = await KINDS[kind].open(at);
    try {
      await onGround(
        { ...options, ...TIMES, queue: { kind, at }, shared: inject('shared') },
        async (ground) => {
          const [event, next] = [report('first', { until: 'released' }), report('second', {})];
          await PLAY[meanwhile](queue, ground, event, next);
          const noted = await ground.finish();
          expect(judge({ ...noted, owed: [{ name: event.key, keys: [event.key] }] })).toEqual(KEPT);
        },
      );
    } finally {
      await queue.close();
    }
  },
  180_000,
);
