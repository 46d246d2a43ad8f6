import { mkdtempSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { createReceiver, type Store } from '../../dist/index.js';
import { memoryStore } from '../../dist/memory.js';
import { createPoller } from '../../dist/poller.js';
import { createRegistrations } from '../../dist/registrations.js';
import { sqliteStore } from '../../dist/sqlite.js';
import { concurrently, figure, type Figures, plan } from '../lib/measure.ts';

const TASKS = plan(4_000).count;
/** As many before those that count: what the first ones compile and load is no task’s. */
const FIRST = TASKS;
const AT_ONCE = 64;
/** A poll's interval and more, on the store's clock. */
const LATER_MS = 120_000;

setFlagsFromString('--expose-gc');
const collect = runInNewContext('gc') as () => void;

/** Bytes that are live after a collection. */
function heapBytes(): number {
  collect();
  collect();
  return process.memoryUsage().heapUsed + process.memoryUsage().arrayBuffers;
}

interface Opened {
  readonly store: Store;
  /** Of the file, with its log written into it; undefined where the store has none. */
  readonly bytes: () => number | undefined;
  readonly remove: () => void;
}

let offsetMs = 0;
const clockOffsetMs = (): number => offsetMs;

const OPEN: Readonly<Record<string, () => Opened>> = {
  memory: () => ({ store: memoryStore({ clockOffsetMs }), bytes: () => undefined, remove: () => undefined }),
  sqlite: () => {
    const folder = mkdtempSync(join(tmpdir(), 'proto-webhooks-bench-'));
    const file = join(folder, 'watched.db');
    return {
      store: sqliteStore(file, { clockOffsetMs }),
      bytes: () => {
        const db = new DatabaseSync(file);
        db.exec('PRAGMA wal_checkpoint(TRUNCATE)');
        db.close();
        return statSync(file).size;
      },
      remove: () => rmSync(folder, { recursive: true }),
    };
  },
};

/** Rejects where it has not come so far in ten minutes. */
async function until(isDone: () => boolean): Promise<void> {
  for (const deadline = performance.now() + 600_000; !isDone();) {
    if (performance.now() > deadline) throw new Error('the tasks were not polled in time');
    await new Promise((resolve) => {
      setTimeout(resolve, 50);
    });
  }
}

/** What one more task that is watched takes: where its row is, and in a process that polls it. */
export async function measure(part: string): Promise<Figures> {
  const opened = OPEN[part]?.();
  if (!opened) throw new Error(`no store ${part}`);
  const { store, bytes } = opened;
  let polled = 0;
  const registrations = createRegistrations({
    store,
    call: async (_agentUrl, _operation, { task_id: taskId }) => {
      polled += 1;
      return { task_id: taskId, status: 'submitted' };
    },
    baseUrl: 'https://buyer.example/webhooks',
    secrets: [Buffer.alloc(32, 7).toString('base64')],
    maxOpen: 2 * TASKS,
  });
  const receiver = createReceiver({
    store,
    registrations,
    handlers: { other: async () => undefined },
    ...(part === 'memory' && { durability: { require: 'process' as const } }),
  });
  await receiver.ready();
  await registrations.ready();

  let answered = 0;
  const watch = (count: number): Promise<void> =>
    concurrently(count, AT_ONCE, async () => {
      answered += 1;
      // As long as a seller's own ids are.
      const taskId = `task_${String(answered).padStart(32, '0')}`;
      const registration = await registrations.create({
        agentUrl: 'https://seller.example/mcp',
        taskType: 'create_media_buy',
        arguments: { buyer_ref: `order-${answered}`, packages: [] },
        ref: `order-${answered}`,
      });
      await registration.settle({ task_id: taskId, status: 'submitted' });
    });
  const poller = createPoller({
    receiver,
    registrations,
    perSeller: AT_ONCE,
  });
  await poller.start();
  const pollAll = async (): Promise<void> => {
    const from = polled;
    offsetMs += LATER_MS;
    await until(() => polled - from >= answered);
  };

  await watch(FIRST);
  await pollAll();
  const before = { heap: heapBytes(), bytes: bytes() };
  await watch(TASKS);
  await pollAll();
  const after = { heap: heapBytes(), bytes: bytes() };

  await poller.stop();
  await receiver.stop();
  await registrations.stop();
  await store.close();
  opened.remove();
  const of = (value: number): Figures[string] => figure([value / TASKS]);
  return {
    [`${part}: a watched task in the process that polls it, bytes`]: of(after.heap - before.heap),
    ...(after.bytes !== undefined &&
      before.bytes !== undefined && {
        [`${part}: a watched task in the store, bytes`]: of(after.bytes - before.bytes),
      }),
  };
}
