// node bench/account.ts [store …] [--streams 100000] [--sellers 100]: pages of an account over so many media buys and as many
// operations. Round trips of the store are the figure: they do not depend on the machine, as the times beside them do.
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { parseArgs } from 'node:util';
import { Redis } from 'ioredis';
import type { PoolConnection } from 'mysql2/promise';
import { Client } from 'pg';
import { createReceiver, type Store } from '../dist/index.js';
import { type Account, createReconciler, type Reconciler } from '../dist/reconcile.js';
import { createRegistrations } from '../dist/registrations.js';
import { BACKENDS, type Opened } from './lib/backends.ts';
import type { BackendName } from './lib/places.ts';

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    streams: { type: 'string', default: '100000' },
    sellers: { type: 'string', default: '100' },
    // This process measures the one store that is named.
    alone: { type: 'boolean', default: false },
  },
});
const [STREAMS, SELLERS] = [Number(values.streams), Number(values.sellers)];
const all = Object.keys(BACKENDS) as BackendName[];
const unknown = positionals.filter((name) => !all.includes(name as BackendName));
if (unknown.length > 0) throw new Error(`no store ${unknown.join(', ')}; there are ${all.join(', ')}`);

const DAY_MS = 86_400_000;
const TODAY = Math.floor(Date.now() / DAY_MS) * DAY_MS;
/** Of so many media buys one has an event that is not handled yet. */
const CLAIMED = 10;

const agentOf = (seller: number): string => `https://seller-${String(seller).padStart(5, '0')}.example/mcp`;
const idOf = (at: number): string => `mb_${String(at).padStart(32, '0')}`;

/** Media buys with daily reports of which two are due and missing, and an ended operation of each. */
async function filled(store: Store): Promise<Reconciler> {
  const registrations = createRegistrations({
    store,
    call: async () => ({}),
    baseUrl: 'https://buyer.example/webhooks',
    secrets: [Buffer.alloc(32, 7).toString('base64')],
  });
  const receiver = createReceiver({
    store,
    registrations,
    handlers: { other: async () => {} },
    onAlarm: () => {},
    logger: { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} },
  });
  await receiver.ready();
  const made = await registrations.create({
    agentUrl: agentOf(0),
    taskType: 'create_media_buy',
    arguments: {
      start_time: new Date(TODAY - 3 * DAY_MS).toISOString(),
      end_time: new Date(TODAY + 30 * DAY_MS).toISOString(),
      packages: [{ product_id: 'product', budget: 1 }],
      reporting_webhook: { url: 'https://buyer.example/r', reporting_frequency: 'daily' },
    },
  });
  await made.settle({ media_buy_id: idOf(0), status: 'completed' });
  const rows = store.registrations;
  const [stream] = (await rows?.page({ kind: 'stream', limit: 1 }))?.rows ?? [];
  const [operation] = (await rows?.page({ kind: 'operation', limit: 1 }))?.rows ?? [];
  if (!rows || !stream || !operation) throw new Error(`${store.name} has no account of a media buy`);
  const each = STREAMS / SELLERS;
  for (let seller = 0; seller < SELLERS; seller += 1) {
    const sender = agentOf(seller);
    for (let from = 0; from < each; from += 500) {
      await rows.run(sender, (step) => {
        for (let at = from; at < Math.min(from + 500, each); at += 1) {
          const id = idOf(seller * each + at);
          const value = stream.value.replaceAll(idOf(0), id);
          const claims = `"claims":[{"frequency":"daily","number":${TODAY / DAY_MS - 2},"key":"event-${id}"}]`;
          const claimed = at % CLAIMED === 0 ? value.replace('"claims":[]', claims) : value;
          step.save({ ...stream, sender, id, value: claimed, dueAt: null });
          step.save({ ...operation, sender, id, value: operation.value.replaceAll(idOf(0), id) });
        }
      });
    }
  }
  return createReconciler({ receiver, registrations });
}

/** The same store, whose calls about registrations are counted. */
function withCalls(store: Store): { readonly store: Store; readonly calls: { count: number } } {
  const calls = { count: 0 };
  const { registrations } = store;
  if (!registrations) throw new Error(`${store.name} keeps no registrations`);
  const counting: typeof registrations = {
    ...registrations,
    run: (sender, plan) => {
      calls.count += 1;
      return registrations.run(sender, plan);
    },
    page: (query) => {
      calls.count += 1;
      return registrations.page(query);
    },
  };
  return { store: Object.create(store, { registrations: { value: counting } }) as Store, calls };
}

/** Counts what the clients of servers send from now on. */
function counted(): { count: number } {
  const trips = { count: 0 };
  const around = (proto: object, name: string): void => {
    const own = Reflect.get(proto, name) as (...args: unknown[]) => unknown;
    Reflect.set(proto, name, function send(this: unknown, ...args: unknown[]) {
      trips.count += 1;
      return Reflect.apply(own, this, args);
    });
  };
  around(Client.prototype, 'query');
  around(Redis.prototype, 'sendCommand');
  return trips;
}

/** A connection of mysql2 has a prototype that the package does not export. */
async function countedMysql({ place }: Opened, trips: { count: number }): Promise<void> {
  if (place.backend !== 'mysql') return;
  const { createPool } = await import('mysql2/promise');
  const pool = createPool({ uri: `${place.server}/${place.name}` });
  const connection = await pool.getConnection();
  const proto = Object.getPrototypeOf(connection) as PoolConnection;
  connection.release();
  await pool.end();
  for (const name of ['execute', 'query'] as const) {
    const own = proto[name] as (...args: unknown[]) => unknown;
    Reflect.set(proto, name, function send(this: unknown, ...args: unknown[]) {
      trips.count += 1;
      return Reflect.apply(own, this, args);
    });
  }
}

async function measured(name: BackendName): Promise<void> {
  const trips = counted();
  const backend = await BACKENDS[name]();
  try {
    const opened = await backend.open();
    await countedMysql(opened, trips);
    const began = performance.now();
    const { store, calls } = withCalls(opened.store);
    const reconciler = await filled(store);
    console.log(`${name}: ${STREAMS} media buys of ${SELLERS} sellers (${seconds(began)} to write)`);
    const told = async (what: string, work: () => Promise<Account>): Promise<Account> => {
      await work();
      globalThis.gc?.();
      const [before, beforeCalls, since] = [trips.count, calls.count, performance.now()];
      let most = 0;
      const timer = setInterval(() => (most = Math.max(most, process.memoryUsage().heapUsed)), 20);
      const page = await work();
      clearInterval(timer);
      const heap = most === 0 ? '' : `, heap ${Math.round(most / 1e6)} MB`;
      console.log(
        `  ${what}: ${calls.count - beforeCalls} calls, ${trips.count - before} round trips, ${seconds(since)}${heap}`,
      );
      return page;
    };
    const first = await told('first page of 100', () => reconciler.account({ limit: 100 }));
    const { next } = first;
    if (next === undefined || first.complete) throw new Error('the account is not what was written');
    const page = await told('page of 100', () => reconciler.account({ limit: 100, after: next }));
    await told('page of 1000', () => reconciler.account({ limit: 1000, after: next }));
    const buy = { agentUrl: agentOf(1), mediaBuyId: page.streams[0]?.mediaBuyId ?? '' };
    await told('one media buy', () => reconciler.account({ ...buy, after: next }));
    await opened.close();
  } finally {
    await backend.stop();
  }
}

const seconds = (since: number): string => `${((performance.now() - since) / 1000).toFixed(2)} s`;

async function inProcess(name: BackendName): Promise<boolean> {
  const args = [name, '--alone', '--streams', String(STREAMS), '--sellers', String(SELLERS)];
  const child = fork(import.meta.filename, args, {
    execArgv: ['--disable-warning=ExperimentalWarning', '--expose-gc'],
  });
  const end = (): void => void child.kill('SIGTERM');
  process.once('exit', end);
  const [code] = (await once(child, 'exit')) as [number | null];
  process.off('exit', end);
  return code === 0;
}

// An orderly end for each signal: servers that were started end with the process that did.
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(1));
if (values.alone) {
  // Servers that stop keep nothing alive that waits for them.
  setInterval(() => undefined, 1000);
  await measured(positionals[0] as BackendName);
  process.exit();
}
let failed = 0;
const names = positionals.length > 0 ? (positionals as BackendName[]) : all;
for (const name of names) if (!(await inProcess(name))) failed += 1;
process.exit(failed === 0 ? 0 : 1);
