import type { Server } from 'node:http';
// PUBLIC_URL=https://buyer.example/webhooks/proto AGENT_URL=https://seller.example/mcp npm start
import { DatabaseSync } from 'node:sqlite';
import { serve } from '@hono/node-server';
import { Hono } from 'hono';
import { createReceiver } from 'proto-webhooks';
import { webhookHandler } from 'proto-webhooks/hono';
import { sqliteStore } from 'proto-webhooks/sqlite';

const {
  PORT = '3000',
  PUBLIC_URL = '',
  AGENT_URL = '',
  BRAND_JSON_URL,
  DATABASE = 'webhooks.db',
} = process.env;

// The app's tables and the webhooks' records in one file, so that one transaction covers both.
const database = new DatabaseSync(DATABASE);
database.exec('CREATE TABLE IF NOT EXISTS results (delivery_id TEXT PRIMARY KEY, task_id TEXT, data TEXT)');

const receiver = createReceiver({
  publicUrl: PUBLIC_URL, // exactly what you gave to sellers
  senders: [{ agentUrl: AGENT_URL, ...(BRAND_JSON_URL && { brandJsonUrl: BRAND_JSON_URL }) }],
  store: sqliteStore(database),
  // Only for a seller on this machine, e.g. createFakeSeller from proto-webhooks/testing.
  allowLoopback: process.env.ALLOW_LOOPBACK === '1',
  handlers: {
    completed: async (event, ctx) => {
      // The row is written and the event completed, or neither.
      await ctx.transaction((db) =>
        db
          .prepare('INSERT INTO results VALUES (?, ?, ?)')
          .run(ctx.deliveryId, event.taskId, JSON.stringify(event.data)),
      );
    },
    other: async (event) => {
      console.log(event.kind, event.status, event.idempotencyKey);
    },
  },
});

await receiver.ready();
const app = new Hono();
app.all('/webhooks/proto', webhookHandler(receiver)); // before middleware that reads bodies
app.get('/results', (c) => c.json(database.prepare('SELECT * FROM results').all()));
const server = serve({ fetch: app.fetch, hostname: '127.0.0.1', port: Number(PORT) }) as Server;

async function stop(): Promise<void> {
  await receiver.stop(); // deliveries under way are finished, new ones get 503
  server.close();
  setTimeout(() => server.closeAllConnections(), 1000).unref(); // those that have sent no whole request
  database.close();
}
process.once('SIGTERM', () => void stop());
