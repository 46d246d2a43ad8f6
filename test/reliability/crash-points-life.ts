import { DatabaseSync } from 'node:sqlite';
import { type SqliteHandle, type SqliteStore, sqliteStore } from '../../src/stores/sqlite.ts';
import type { Store } from '../../src/index.ts';
import type { StoreInbox } from '../../src/stores/index.ts';

/** One process's life, which ends at one of the points that it passes. */
export interface Life {
  /** Nothing behind the point runs once the process has died: it never resolves then, and never rejects. */
  readonly point: (name: string) => Promise<void>;
  /** The same inside synchronous code: throws, and what catches it can do no harm any more. */
  readonly instant: (name: string) => void;
  /** From now on points count. */
  readonly begin: () => void;
  /** The points that were passed, or died at, in order. */
  readonly passed: readonly string[];
  readonly died: Promise<void>;
  /** Resolves when a point whose name fits is passed alive. */
  readonly reached: (name: RegExp) => Promise<void>;
  readonly isOver: () => boolean;
  /** To be done at death: what an operating system does. */
  readonly atDeath: (clean: () => void) => void;
}

/** @param diesAt 0 for the first point that counts, a name for the first one of that name; Infinity: it lives. */
export function lifeUntil(diesAt: number | string): Life {
  const passed: string[] = [];
  const waiting: { readonly name: RegExp; readonly resolve: () => void }[] = [];
  const cleaning: (() => void)[] = [];
  let counts = false;
  let over = false;
  let tell = (): void => {};
  const died = new Promise<void>((resolve) => {
    tell = resolve;
  });
  const pass = (name: string): void => {
    if (!counts || over) return;
    passed.push(name);
    over = typeof diesAt === 'string' ? name === diesAt : passed.length > diesAt;
    if (!over) return waiting.filter((one) => one.name.test(name)).forEach(({ resolve }) => resolve());
    for (const clean of cleaning) clean();
    tell();
  };
  return {
    point: (name) => {
      pass(name);
      return over ? new Promise(() => {}) : Promise.resolve();
    },
    instant: (name) => {
      pass(name);
      if (over) throw new Error(`died: ${name}`);
    },
    begin: () => {
      counts = true;
    },
    passed,
    died,
    reached: (name) =>
      new Promise((resolve) => {
        waiting.push({ name, resolve });
      }),
    isOver: () => over,
    atDeath: (clean) => cleaning.push(clean),
  };
}

/** A call with a point before it and one behind; where its process died in it, it never comes back. */
async function between<T>(life: Life, name: string, call: () => Promise<T>): Promise<T> {
  await life.point(`before ${name}`);
  try {
    const result = await call();
    await life.point(`after ${name}`);
    return result;
  } catch (error) {
    if (life.isOver()) await life.died.then(() => new Promise(() => {}));
    throw error;
  }
}

/** A connection on which the process can die around all that begins or ends a transaction; it is closed then, and so rolled back. */
function mortalConnection(file: string, life: Life): SqliteHandle {
  const db = new DatabaseSync(file);
  life.atDeath(() => db.close());
  return {
    exec: (sql) => {
      const name = sql.replace(/[^A-Za-z ].*/s, '');
      life.instant(`before ${name}`);
      db.exec(sql);
      life.instant(`after ${name}`);
    },
    prepare: (sql) => db.prepare(sql),
    close: () => db.close(),
  };
}

/** The real SQLite store on a file, in a process that can die before and after each of its calls, and in them. */
export function mortalStore(file: string, life: Life, clockOffsetMs: () => number): SqliteStore {
  return mortal(sqliteStore(mortalConnection(file, life), { clockOffsetMs }), life);
}

/** A store that commits what a handler writes. */
type Transactional<Tx> = Store<Tx> &
  Required<Pick<Store<Tx>, 'transaction'>> & { readonly inbox: StoreInbox };

/** The store, in a process that can die before and after each of its calls. */
export function mortal<Tx, S extends Transactional<Tx>>(store: S & Transactional<Tx>, life: Life): S {
  const { inbox } = store;
  return {
    ...store,
    accept: (request) => between(life, 'accept', () => store.accept(request)),
    complete: (request) => between(life, 'complete', () => store.complete(request)),
    fail: (request) => between(life, 'fail', () => store.fail(request)),
    renew: (request) => between(life, 'renew', () => store.renew(request)),
    peek: (sender, key) => between(life, 'peek', () => store.peek(sender, key)),
    transaction: (request, fn) => between(life, 'transaction', () => store.transaction(request, fn)),
    inbox: { ...inbox, lease: (request) => between(life, 'lease', () => inbox.lease(request)) },
  };
}
