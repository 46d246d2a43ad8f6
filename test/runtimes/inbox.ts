import type { DatabaseSync } from 'node:sqlite';
import type { Store } from '../../src/index.ts';
import { AGENT, setup } from './setup.ts';
import { type Check, type Checks, envelope, type Library, same, until } from './kit.ts';

/** Queued, worked off, DEAD, redriven: the inbox of a store. */
async function works(lib: Library, store: Store, durable: 'process' | 'disk'): Promise<void> {
  let broken = true;
  const { deliver, handled, outcomes, receiver } = await setup(lib, {
    mode: 'inbox',
    store,
    durability: { require: durable },
    retry: { attempts: 2, baseMs: 1, maxMs: 1 },
    worker: { pollMs: 20 },
    handler: ({ idempotencyKey }) => {
      if (idempotencyKey === dead.idempotency_key && broken) throw new Error('it cannot be done');
    },
  });
  const dead = envelope();
  same(await deliver(dead), '200');
  same((outcomes[0] as { state?: string }).state, 'queued');
  same([await deliver(dead), handled.length], ['200', 0]);
  await receiver.start();
  same(await deliver(), '200');
  const deads = async () => (await receiver.inbox.list({ state: 'dead' })).records.map(({ key }) => key);
  await until(async () => (await deads()).length === 1);
  same(await deads(), [dead.idempotency_key]);
  broken = false;
  same(await receiver.inbox.redrive(AGENT, dead.idempotency_key), 'queued');
  const runs = () => handled.filter(({ idempotencyKey }) => idempotencyKey === dead.idempotency_key).length;
  await until(() => runs() === 3);
  await until(async () => (await receiver.inbox.list({ state: 'leased' })).records.length === 0);
  same(await deads(), []);
  await receiver.stop();
}

const inMemory: Check = async (lib) => works(lib, lib.memory.memoryStore(), 'process');

type SqliteModule = NonNullable<Library['sqlite']>;

/** A check that needs a new database. */
function onFile(check: (lib: Library, sqlite: SqliteModule, file: string) => Promise<void>): Check {
  return async (lib, { database }) => {
    if (!lib.sqlite || !database) throw new Error('the runner gave no database');
    await check(lib, lib.sqlite, database());
  };
}

const inSqlite = onFile(async (lib, { sqliteStore }, file) => works(lib, sqliteStore(file), 'disk'));

const inline = onFile(async (lib, { sqliteStore }, file) => {
  const { sign, post, deliver, handled, receiver } = await setup(lib, {
    store: sqliteStore(file),
    durability: { require: 'disk' },
  });
  const event = envelope();
  const first = await sign(event);
  same([await post(first), await deliver(event)], ['200', '200']);
  same(await post(first), '401 webhook_signature_replayed');
  same((await Promise.all(Array.from({ length: 30 }, () => deliver()))).join(' '), `${'200 '.repeat(29)}200`);
  same(handled.length, 31);
  await receiver.stop();
});

/** Another process's connection, as far as SQLite is concerned. */
function otherConnection(file: string): DatabaseSync {
  return new (globalThis.process.getBuiltinModule('node:sqlite').DatabaseSync)(file);
}

const locked = onFile(async (lib, { sqliteStore }, file) => {
  let waits = 0;
  const other = otherConnection(file);
  const store = sqliteStore(file, {
    delay: async () => {
      waits += 1;
      if (waits === 3) other.exec('COMMIT');
    },
  });
  const { deliver, receiver } = await setup(lib, { store, durability: { require: 'disk' } });
  await receiver.ready();
  other.exec('BEGIN IMMEDIATE');
  same(await deliver(), '200');
  same(waits, 3);
  await receiver.stop();
  other.close();
});

const deferred = onFile(async (lib, { sqliteStore }, file) => {
  const other = otherConnection(file);
  other.exec('CREATE TABLE seller (id INTEGER PRIMARY KEY)');
  other.exec('CREATE TABLE buy (seller INTEGER REFERENCES seller (id) DEFERRABLE INITIALLY DEFERRED)');
  const { deliver, outcomes, receiver } = await setup(lib, {
    store: sqliteStore(file),
    durability: { require: 'disk' },
    handlers: {
      other: async (_, ctx) =>
        ctx.transaction((db) => (db as DatabaseSync).exec('INSERT INTO buy VALUES (7)')),
    },
  });
  same(await deliver(), '503');
  same(
    outcomes.map(({ code }) => code),
    ['handler_failed'],
  );
  same(other.prepare('SELECT count(*) AS n FROM buy').get(), { n: 0 });
  await receiver.stop();
  other.close();
});

export const INBOX_CHECKS: Checks = { 'the inbox: queued, worked off, dead, redriven': inMemory };

export const SQLITE_CHECKS: Checks = {
  'SQLite, inline: accepted, duplicate, replayed, thirty at once': inline,
  'SQLite, the inbox': inSqlite,
  'SQLite, the lock of another connection is waited for': locked,
  'SQLite, a deferred constraint of the owner’s is the handler’s failure': deferred,
};
