import type { Store } from '../../src/index.ts';
import { AGENT, setup } from './setup.ts';
import { type Check, type Checks, envelope, type Library, same, until } from './kit.ts';

/** Queued, worked off, DEAD, redriven: the inbox of a store. */
async function works(lib: Library, store: Store, durable: 'process' | 'disk'): Promise<void> {
  let broken = true;
  const { deliver, handled, outcomes, receiver } = await setup(lib, {
    mode: 'inbox',
    store,
    requireDurability: durable,
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

const inSqlite: Check = async (lib, { sqlite }) => {
  if (!lib.sqlite || !sqlite) throw new Error('the runner gave no database');
  await works(lib, lib.sqlite.sqliteStore(sqlite()), 'disk');
};

const inline: Check = async (lib, { sqlite }) => {
  if (!lib.sqlite || !sqlite) throw new Error('the runner gave no database');
  const { sign, post, deliver, handled, receiver } = await setup(lib, {
    store: lib.sqlite.sqliteStore(sqlite()),
    requireDurability: 'disk',
  });
  const event = envelope();
  const first = await sign(event);
  same([await post(first), await deliver(event)], ['200', '200']);
  same(await post(first), '401 webhook_signature_replayed');
  same((await Promise.all(Array.from({ length: 30 }, () => deliver()))).join(' '), `${'200 '.repeat(29)}200`);
  same(handled.length, 31);
  await receiver.stop();
};

export const INBOX_CHECKS: Checks = { 'the inbox: queued, worked off, dead, redriven': inMemory };

export const SQLITE_CHECKS: Checks = {
  'SQLite, inline: accepted, duplicate, replayed, thirty at once': inline,
  'SQLite, the inbox': inSqlite,
};
