import { setTimeout as wait } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { createPool } from 'mysql2/promise';
import { Pool } from 'pg';
import type { Event } from '../../../src/events/index.ts';
import { createReceiver, Fault } from '../../../src/index.ts';
import { reconcilerOf } from '../../../src/reconcile/for-tests.ts';
import { createRegistrations, SellerError } from '../../../src/registrations/index.ts';
import type { Store } from '../../../src/stores/index.ts';
import { mysqlStore } from '../../../src/stores/mysql.ts';
import { postgresStore } from '../../../src/stores/postgres.ts';
import { redisStore } from '../../../src/stores/redis.ts';
import { sqliteStore } from '../../../src/stores/sqlite.ts';
import type { StoreLocation } from '../../reliability/processes/stores.ts';
import { SILENT_LOGGER } from '../../support/silent-logger.ts';
import { codeOf, whileAway } from '../../support/while-away.ts';
import { type Answer, type Asked, type Buying, type Told, URL } from './wire.ts';

/*
 * A process of the buyer: a receiver, a worker and a reconciler on a shared store. Its clock stands where the market has set it, and
 * it can be killed at any time.
 */

const buying = JSON.parse(process.argv[2] ?? '{}') as Buying;
const RealDate = Date;
let now = buying.now;

globalThis.Date = class extends RealDate {
  constructor(...given: readonly unknown[]) {
    super(...((given.length === 0 ? [now] : given) as [number]));
  }
  static override now(): number {
    return now;
  }
} as DateConstructor;

const offset = { clockOffsetMs: () => now - RealDate.now() };

function storeAt(at: StoreLocation): Store {
  switch (at.kind) {
    case 'SQLite':
      return sqliteStore(at.file, { busyMs: 20_000 });
    case 'Postgres':
      return postgresStore({
        pool: new Pool({ connectionString: at.url, max: 6 }),
        schema: at.schema,
        ...offset,
      });
    case 'MySQL':
      return mysqlStore({ pool: createPool({ uri: at.url, connectionLimit: 6 }), ...offset });
    case 'Redis':
      return redisStore({ client: new Redis({ host: '127.0.0.1', port: at.port }), ...offset });
  }
}

let count = 0;
const waiting = new Map<number, (answer: Answer) => void>();

const tell = (told: Told): void => void process.send?.(told);

/** Asks the market, which may kill this process at that. */
function ask(question: Extract<Told, { kind: 'question' }>['question']): Promise<unknown> {
  count += 1;
  const id = count;
  return new Promise((resolve, reject) => {
    waiting.set(id, ({ value, error, code }) => {
      waiting.delete(id);
      if (error === undefined) resolve(value);
      else reject(code === undefined ? new Error(error) : new SellerError(code, error));
    });
    tell({ kind: 'question', id, question });
  });
}

const store = storeAt(buying.place);
const registrations = createRegistrations({
  store,
  baseUrl: 'https://buyer.example/webhooks',
  secrets: [buying.secret],
  call: (agentUrl, operation, args) => ask({ what: 'call', agentUrl, operation, args }),
});
const receiver = createReceiver({
  publicUrl: URL,
  senders: buying.senders.map(({ agentUrl, key }) => ({ agentUrl, pins: [key] })),
  store,
  registrations,
  mode: buying.mode,
  durability: { require: 'process' },
  logger: SILENT_LOGGER,
  retry: { baseMs: 1, maxMs: 1 },
  worker: { pollMs: 20 },
  handlers: {
    other: async (event: Event) => {
      await ask({ what: 'handle', event });
    },
  },
});
const buys = new Map(buying.buys.map((buy) => [buy.id, buy]));
const reconciler = reconcilerOf(
  {
    receiver,
    registrations,
    schedule: ({ mediaBuyId }) => buys.get(mediaBuyId)?.schedule,
    // What impairs media buys is another market's: ../market/live.ts.
    snapshotMs: 86_400_000,
    // Those that ended are judged until the market's end.
    keepMs: 500 * 86_400_000,
  },
  // Its clock is moved by others: it looks as often as it can.
  { sleep: (ms, signal) => wait(Math.min(ms, 25), undefined, { signal }).catch(() => undefined), lookMs: 25 },
);

const { endFrom = Infinity, endAtAccount, away = 0 } = buying.wrongly ?? {};
let timesAway = 0;

/** By mistake. */
function goWrong({ what }: Asked): void {
  if (endAtAccount && what === 'account') process.exit(3);
  if (what === 'deliver' || what === 'call' || timesAway === away) return;
  timesAway += 1;
  throw new Fault('store_unavailable', 'by mistake');
}

async function done(asked: Asked): Promise<unknown> {
  goWrong(asked);
  switch (asked.what) {
    case 'deliver': {
      const { kind, code, response } = await receiver.verifyAndDispatch(
        Buffer.from(asked.body, 'base64'),
        asked.headers,
      );
      return { kind, code, response: { status: response.status } };
    }
    case 'call': {
      // One of which nobody was told is an operation that never was settled.
      const made = await whileAway(() => registrations.create({ agentUrl: asked.agentUrl, ...asked.call }));
      await whileAway(() => made.settle(asked.answer));
      return made.operationId;
    }
    case 'account':
      return reconciler.account(asked.query);
    case 'due': {
      if (!store.registrations) throw new Error('a store without media buys');
      const { rows, next } = await store.registrations.page({ kind: 'stream', limit: 1000 });
      if (next !== undefined) throw new Error('more media buys than a page has');
      return rows.filter(({ dueAt }) => dueAt !== null && dueAt <= now).length;
    }
    case 'list':
      return receiver.inbox.list({ state: asked.state, limit: 1000 });
    case 'inspect':
      return (await receiver.inbox.inspect(asked.agentUrl, asked.key))?.state;
  }
}

process.on('message', (told: Told) => {
  if (told.kind === 'time') now = told.now;
  if (told.kind === 'answer') waiting.get(told.id)?.(told);
  if (told.kind !== 'asked') return;
  done(told.asked).then(
    (value) => tell({ kind: 'done', id: told.id, value }),
    (error: unknown) => {
      const code = codeOf(error);
      tell({ kind: 'done', id: told.id, error: String(error), ...(code !== undefined && { code }) });
    },
  );
});
process.on('disconnect', () => process.exit(0));

if (buying.index >= endFrom) process.exit(3);
await receiver.start();
await reconciler.start();
tell({ kind: 'ready' });
