// One receiver for the function, which only stores and answers, and for the inbox process, which runs the handlers.
import { Pool } from 'pg';
import { createReceiver } from 'proto-webhooks';
import { postgresStore } from 'proto-webhooks/postgres';

const { DATABASE_URL, PUBLIC_URL = '', AGENT_URL = '', BRAND_JSON_URL } = process.env;

export const pool = new Pool({
  connectionString: DATABASE_URL,
  max: 4, // each running copy of the function has its own pool: mind max_connections, or put a pooler in between
  connectionTimeoutMillis: 3000,
});

export const receiver = createReceiver({
  mode: 'inbox',
  publicUrl: PUBLIC_URL, // exactly what you gave to sellers
  senders: [{ agentUrl: AGENT_URL, ...(BRAND_JSON_URL && { brandJsonUrl: BRAND_JSON_URL }) }],
  store: postgresStore({ pool }),
  // Only for a seller on this machine, e.g. createFakeSeller from proto-webhooks/testing.
  allowLoopback: process.env.ALLOW_LOOPBACK === '1',
  handlers: {
    // ctx.transaction(async (client) => { … }) commits what you write together with the event's completion.
    other: async (event) => {
      console.log(event.kind, event.status, event.idempotencyKey);
    },
  },
});
