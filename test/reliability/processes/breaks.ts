import { DatabaseSync } from 'node:sqlite';
import type { Store } from '../../../src/index.ts';
import type { AcceptRequest, StoreInbox } from '../../../src/stores/index.ts';
import type { StoreLocation } from './stores.ts';

type WholeStore = Store & { readonly inbox: StoreInbox };

/** Mistakes that a store can have: what the checker is checked with. */
export type Break =
  'ack-before-store' | 'pop-then-run' | 'no-owner-check' | 'effect-apart' | 'knows-no-channel';

interface Ground {
  readonly place: StoreLocation;
}

/** A store that differs in some methods. Not spread: `durabilityAdvice` is a getter. */
export function storeWith<T extends Store>(store: T, changes: Partial<Store>): T {
  const own = Object.getOwnPropertyDescriptors(changes);
  return Object.create(store, own) as T;
}

/** Deliveries that `ack-before-store` holds back. */
const BEHIND = 4;

export const BREAKS: Readonly<Record<Break, (store: WholeStore, ground: Ground) => WholeStore>> = {
  /** Answers first, and stores what it answered some deliveries later. */
  'ack-before-store': (store) => {
    const behind: AcceptRequest[] = [];
    const storeAllBut = async (most: number): Promise<void> => {
      for (const request of behind.splice(0, Math.max(0, behind.length - most))) await store.accept(request);
    };
    return storeWith(store, {
      accept: async (request) => {
        behind.push(request);
        await storeAllBut(BEHIND);
        return { kind: 'queued', changed: false, reemission: false, ahead: false, pressure: [] };
      },
      close: async () => {
        await storeAllBut(0);
        await store.close();
      },
    });
  },

  /** Takes events off the queue before their handlers run. */
  'pop-then-run': (store) =>
    storeWith(store, {
      complete: async () => 'done',
      inbox: {
        ...store.inbox,
        lease: async (request) => {
          const result = await store.inbox.lease(request);
          for (const { sender, key, lease } of result.events) {
            await store.complete({ sender, key, owner: lease.owner, retentionMs: request.retentionMs });
          }
          return result;
        },
      },
    }),

  /**
   * Tells every process that comes back from a handler that it completed the event, also where its lease is another's by
   * now. The store beneath refuses that one, so what handlers were told shows it, and the database does not.
   */
  'no-owner-check': (store) =>
    storeWith(store, {
      complete: async (request) => {
        store.complete(request).catch(() => undefined);
        return 'done';
      },
    }),

  /** Keeps what each channel told apart, as if each were of a task of its own. */
  'knows-no-channel': (store) =>
    storeWith(store, {
      accept: ({ event, ...request }) => {
        if (!event?.task?.told) return store.accept({ ...request, ...(event && { event }) });
        const { operation: _forgotten, ...told } = event.task.told;
        const task = { ...event.task, id: `${event.task.id} ${told.source}`, told };
        return store.accept({ ...request, event: { ...event, task } });
      },
    }),

  /** Commits the handler's writes and the completion one after the other, and asks for the lease with the second alone. */
  'effect-apart': (store, { place }) =>
    storeWith(store, {
      transaction: async (request, fn) => {
        const db = new DatabaseSync(place.kind === 'SQLite' ? place.file : ':memory:');
        db.exec('PRAGMA busy_timeout = 5000');
        const value = await fn(db);
        db.close();
        if ((await store.complete(request)) === 'lost') throw new Error('the lease is over');
        return value;
      },
    }),
};
