import { memoryStore } from '../../src/stores/memory.ts';
import { createMemoryState } from '../../src/stores/for-tests.ts';
import { sqliteStore } from '../../src/stores/sqlite.ts';
import type { Store } from '../../src/index.ts';
import type { InboxRecord, StoreInbox } from '../../src/stores/index.ts';
import {
  testReceiver,
  payloads,
  AGENT,
  type TestReceiver,
  type TestReceiverOptions,
} from '../receiver/setup.ts';
import { tempFile } from '../stores/sqlite-files.ts';

/** One store, with as many handles as a test wants, under a clock that it moves. */
export interface Backend {
  readonly open: () => Store;
  readonly advance: (ms: number) => void;
  readonly remove: () => void;
}

export const BACKENDS: Readonly<Record<string, () => Backend>> = {
  memory: () => {
    const state = createMemoryState();
    let offsetMs = 0;
    return {
      open: () => memoryStore({ state, clockOffsetMs: () => offsetMs }),
      advance: (ms) => {
        offsetMs += ms;
      },
      remove: () => {},
    };
  },
  SQLite: () => {
    const { file, remove } = tempFile();
    let offsetMs = 0;
    return {
      open: () => sqliteStore(file, { clockOffsetMs: () => offsetMs }),
      advance: (ms) => {
        offsetMs += ms;
      },
      remove,
    };
  },
};

/** What comes, one by one, to those that wait for it. */
export interface Channel<T> {
  readonly push: (value: T) => void;
  readonly next: () => Promise<T>;
}

export function channel<T>(): Channel<T> {
  const come: T[] = [];
  const waiting: ((value: T) => void)[] = [];
  return {
    push: (value) => {
      const first = waiting.shift();
      if (first) first(value);
      else come.push(value);
    },
    next: () =>
      new Promise((resolve) => {
        if (come.length > 0) resolve(come.shift() as T);
        else waiting.push(resolve);
      }),
  };
}

/** A run that fails is due again at once, and nothing but the test's own doing wakes the worker. */
const OPTIONS = {
  mode: 'inbox',
  retry: { baseMs: 1, maxMs: 1 },
  worker: { pollMs: 2_147_483_647 },
} as const;

/** A receiver in inbox mode, not started. */
export function inboxSetup(backend: Backend, options: TestReceiverOptions = {}): Promise<TestReceiver> {
  return testReceiver({ store: backend.open(), ...OPTIONS, ...options });
}

export function inboxOf(store: Store): StoreInbox {
  if (!store.inbox) throw new TypeError('the store has no inbox');
  return store.inbox;
}

/** The event as the receiver's owner sees it. */
export async function seenRecord({ receiver }: TestReceiver, key: string): Promise<InboxRecord> {
  const record = await receiver.inbox.inspect(AGENT, key);
  if (!record) throw new TypeError(`${key} is not known`);
  return record;
}

/** A task's status as the seller sends it. */
export function status(key: string, taskId: string, more: object = {}): object {
  return payloads.tool('working', { idempotency_key: key, task_id: taskId, ...more });
}

export const eventKey = (n: number): string => `event-${String(n).padStart(4, '0')}-of-the-seller`;
