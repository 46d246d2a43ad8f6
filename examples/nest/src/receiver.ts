import { createReceiver } from 'proto-webhooks';
import { sqliteStore } from 'proto-webhooks/sqlite';

const { PUBLIC_URL = '', AGENT_URL = '', BRAND_JSON_URL, DATABASE = 'webhooks.db' } = process.env;

export const receiver = createReceiver({
  publicUrl: PUBLIC_URL, // exactly what you gave to sellers
  senders: [{ agentUrl: AGENT_URL, ...(BRAND_JSON_URL && { brandJsonUrl: BRAND_JSON_URL }) }],
  store: sqliteStore(DATABASE),
  // Only for a seller on this machine, e.g. createFakeSeller from proto-webhooks/testing.
  allowLoopback: process.env.ALLOW_LOOPBACK === '1',
  handlers: {
    other: async (event) => {
      console.log(event.kind, event.status, event.idempotencyKey);
    },
  },
});
