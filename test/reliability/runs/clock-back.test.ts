import { afterAll, beforeAll, expect, it } from 'vitest';
import type { LeaseDueRequest } from '../../../src/stores/index.ts';
import { LONGEST_LEASE_MS } from '../../../src/stores/for-tests.ts';
import { memoryStore } from '../../../src/stores/memory.ts';
import { sqliteStore } from '../../../src/stores/sqlite.ts';
import { tempFile } from '../../stores/sqlite-files.ts';
import { acceptRequest, key, RETENTION_MS } from '../../stores/requests.ts';
import type { RedisServer } from '../../support/redis.ts';
import { ON_DISK, startServer } from '../../support/redis.ts';
import type { Inboxed } from '../faults/backends.ts';
import { LONG_MS, postgresBackend, redisBackend } from '../faults/backends.ts';
import { inThisForm, LONG } from '../form.ts';
import { print } from './figures.ts';

/** Of each kind. */
const EVENTS = LONG ? 200 : 10;
const HOUR_MS = 3_600_000;
const LEASE_MS = 8000;
const RETRY = { attempts: 12, crashes: 5 };
/** More than anything waits, so that all is due but leases. */
const BACK_MS = 3 * HOUR_MS;

interface Ground {
  readonly store: Inboxed;
  readonly advance: (ms: number) => void;
  readonly end: () => unknown;
}

let redis: RedisServer;
beforeAll(async () => {
  redis = await startServer(ON_DISK);
});
afterAll(() => redis.remove());

/** A store of the process's own clock. */
function local(make: (clockOffsetMs: () => number) => Inboxed, end: () => unknown = () => {}): Ground {
  let offsetMs = 0;
  const advance = (ms: number): void => {
    offsetMs += ms;
  };
  return { store: make(() => offsetMs), advance, end };
}

const GROUNDS: Readonly<Record<string, () => Promise<Ground>>> = {
  memory: async () => local((clockOffsetMs) => memoryStore({ clockOffsetMs }) as Inboxed),
  sqlite: async () => {
    const { file, remove } = tempFile();
    return local((clockOffsetMs) => sqliteStore(file, { clockOffsetMs }), remove);
  },
  postgres: () => postgresBackend(LONG_MS),
  redis: () => redisBackend(redis.port, LONG_MS),
};

const { sender } = acceptRequest();
const leaseOf = (owner: string, max: number): LeaseDueRequest => ({
  owner,
  max,
  leaseMs: LEASE_MS,
  retry: RETRY,
  retentionMs: RETENTION_MS,
  senders: [sender],
});

const NOTHING = { events: [] };

/** Events of each kind, as a process leaves them: in back-off, leased by one that lives and by one that died, waiting. */
async function fill({ inbox, ...store }: Inboxed): Promise<readonly string[]> {
  let last = 0;
  const all: string[] = [];
  const queue = async (task?: string): Promise<string> => {
    const name = key((last += 1));
    all.push(name);
    await store.accept({ ...acceptRequest({ key: name, ...(task && { task }) }), mode: 'inbox' });
    return name;
  };
  const runs = async (owner: string, task?: string): Promise<readonly string[]> => {
    for (let n = 0; n < EVENTS; n += 1) await queue(task && `${task}-${n}`);
    const keys: string[] = [];
    while (keys.length < EVENTS) {
      const { events } = await inbox.lease(leaseOf(owner, EVENTS));
      keys.push(...events.map((event) => event.key));
    }
    return keys;
  };
  for (const name of await runs('failing')) {
    const end = { permanent: false, retry: RETRY, backoffMs: 300_000, retentionMs: RETENTION_MS };
    await store.fail({ sender, key: name, owner: 'failing', ...end });
  }
  await runs('living');
  await runs('dead', 'task');
  // Those that wait for the tasks that the dead one holds are looked at, and parked.
  for (let n = 0; n < EVENTS; n += 1) await queue(`task-${n}`);
  expect((await inbox.lease(leaseOf('idle', EVENTS))).events).toEqual([]);
  for (let n = 0; n < EVENTS; n += 1) await queue();
  return all;
}

it.each(inThisForm(Object.keys(GROUNDS), (name) => name === 'memory' || name === 'sqlite'))(
  'clock set back: on %s all events are completed within the longest lease, and none twice',
  async (name) => {
    const ground = await GROUNDS[name]?.();
    if (!ground) return;
    const { store, advance, end } = ground;
    const { inbox } = store;
    await store.open();
    const all = await fill(store);
    const living = all.slice(EVENTS, 2 * EVENTS);
    advance(-BACK_MS);

    const completed: string[] = [];
    let steppedMs = 0;
    const complete = async (owner: string, of: string): Promise<void> => {
      const done = await store.complete({ sender, key: of, owner, retentionMs: RETENTION_MS });
      if (done === 'done') completed.push(of);
    };
    /** A worker's looks, until three find nothing. */
    const work = async (): Promise<void> => {
      for (let idle = 0; idle < 3;) {
        const owner = `worker-${completed.length}-${idle}`;
        const result = await inbox.lease(leaseOf(owner, 10));
        steppedMs = Math.max(steppedMs, result.clockSteppedMs ?? 0);
        const alone = result.suspectDue ? await inbox.lease({ ...leaseOf(owner, 1), alone: true }) : NOTHING;
        const events = [...result.events, ...alone.events];
        idle = events.length === 0 ? idle + 1 : 0;
        for (const event of events) await complete(owner, event.key);
      }
    };
    const QUARTER_MS = LEASE_MS / 4;
    for (let passed = 0; passed <= LEASE_MS + QUARTER_MS; passed += QUARTER_MS) {
      await work();
      for (const of of living) {
        const renewed = await store.renew({ sender, key: of, owner: 'living', leaseMs: LEASE_MS });
        expect(renewed).toBe('renewed');
      }
      advance(QUARTER_MS);
    }
    for (const of of living) await complete('living', of);
    advance(LONGEST_LEASE_MS + 1);
    await work();
    // A lease on: those that a rule of crashes has put aside.
    advance(LEASE_MS + 1);
    await work();

    const twice = completed.length - new Set(completed).size;
    const lost = all.filter((of) => !completed.includes(of)).length;
    // The store has noticed it.
    const faults = steppedMs > BACK_MS / 2 ? 1 : 0;
    print({ run: `clock back, ${name}`, events: all.length, faults, lost, twice });
    expect({ lost, twice }).toEqual({ lost: 0, twice: 0 });
    expect(steppedMs).toBeGreaterThan(BACK_MS / 2);
    await store.close();
    await end();
  },
  LONG ? 600_000 : 120_000,
);
