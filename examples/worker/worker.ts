// The Worker: verifies, stores, answers. It never calls receiver.start(): nothing of it goes on after the answer.
import { AsyncLocalStorage } from 'node:async_hooks';
import { Pool } from 'pg';
import type { Store } from 'proto-webhooks';
import { webhookHandler } from 'proto-webhooks/fetch';
import { postgresStore, type PostgresStore } from 'proto-webhooks/postgres';
import { receiverOn, type Settings } from './receiver.ts';

interface Env extends Settings {
  /** On Cloudflare. */
  readonly HYPERDRIVE?: { readonly connectionString: string };
  /** On this machine. */
  readonly DATABASE_URL?: string;
}

// On workerd a connection belongs to the request that opened it. So each request has a pool and a store of its own,
// and the receiver, which lives as long as the isolate and keeps the sellers' keys, finds the one of its request.
const requests = new AsyncLocalStorage<PostgresStore>();

function current(): PostgresStore {
  const store = requests.getStore();
  if (!store) throw new Error('no request');
  return store;
}

const store: Store = {
  name: 'postgres',
  open: () => current().open(),
  durability: () => current().durability(),
  accept: async (request) => {
    await current().open();
    return current().accept(request);
  },
  complete: (request) => current().complete(request),
  fail: (request) => current().fail(request),
  renew: (request) => current().renew(request),
  peek: (sender, key) => current().peek(sender, key),
  get inbox() {
    return current().inbox;
  },
  close: async () => {},
};

interface Context {
  waitUntil(work: Promise<unknown>): void;
}

let handle: ((request: Request) => Promise<Response>) | undefined;

export default {
  async fetch(request: Request, env: Env, ctx: Context): Promise<Response> {
    if (new URL(request.url).pathname !== '/webhooks/proto') return new Response(null, { status: 404 });
    const connectionString = env.HYPERDRIVE?.connectionString ?? env.DATABASE_URL;
    const pool = new Pool({ connectionString, max: 2, connectionTimeoutMillis: 3000 });
    return requests.run(postgresStore({ pool }), async () => {
      handle ??= webhookHandler(receiverOn(store, env));
      try {
        return await handle(request);
      } finally {
        ctx.waitUntil(pool.end());
      }
    });
  },
};
