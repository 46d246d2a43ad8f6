import { Pool } from 'pg';
import { createReceiver } from 'proto-webhooks';
import { postgresStore } from 'proto-webhooks/postgres';

function create() {
  const { DATABASE_URL, PUBLIC_URL = '', AGENT_URL = '', BRAND_JSON_URL } = process.env;
  return createReceiver({
    publicUrl: PUBLIC_URL, // exactly what you gave to sellers
    senders: [{ agentUrl: AGENT_URL, ...(BRAND_JSON_URL && { brandJsonUrl: BRAND_JSON_URL }) }],
    store: postgresStore({
      pool: new Pool({ connectionString: DATABASE_URL, connectionTimeoutMillis: 3000 }),
    }),
    // Only for a seller on this machine, e.g. createFakeSeller from proto-webhooks/testing.
    allowLoopback: process.env.ALLOW_LOOPBACK === '1',
    handlers: {
      // ctx.transaction(async (client) => { … }) commits what you write together with the event's completion.
      other: async (event) => {
        console.log(event.kind, event.status, event.idempotencyKey);
      },
    },
  });
}

let made: ReturnType<typeof create> | undefined;

/** Made at the first request: `next build` imports this file too, where nothing is configured. */
export const receiver = () => (made ??= create());
