// PUBLIC_URL=https://buyer.example/webhooks/proto AGENT_URL=https://seller.example/mcp node server.js
import { DatabaseSync } from 'node:sqlite';
import express from 'express';
import { createReceiver } from 'proto-webhooks';
import { webhookHandler } from 'proto-webhooks/express';
import { sqliteStore } from 'proto-webhooks/sqlite';

const { PORT = '3000', PUBLIC_URL, AGENT_URL, BRAND_JSON_URL, DATABASE = 'webhooks.db' } = process.env;

// The app's tables and the webhooks' records in one file, so that one transaction covers both.
const database = new DatabaseSync(DATABASE);
database.exec(
  'CREATE TABLE IF NOT EXISTS media_buys (delivery_id TEXT PRIMARY KEY, operation_id TEXT, result TEXT)',
);

const receiver = createReceiver({
  publicUrl: PUBLIC_URL,
  senders: [{ agentUrl: AGENT_URL, ...(BRAND_JSON_URL && { brandJsonUrl: BRAND_JSON_URL }) }],
  store: sqliteStore(database),
  // Only for a seller on this machine, e.g. createFakeSeller from proto-webhooks/testing.
  allowLoopback: process.env.ALLOW_LOOPBACK === '1',
  handlers: {
    completed: async (event, ctx) => {
      // The row is written and the event completed, or neither.
      await ctx.transaction((db) =>
        db
          .prepare('INSERT INTO media_buys VALUES (?, ?, ?)')
          .run(ctx.deliveryId, event.operationId ?? null, JSON.stringify(event.data)),
      );
    },
    deliveryReport: async (event) => {
      console.log('report', event.report.notification_type, event.sequenceNumber);
    },
    other: async (event) => {
      console.log(event.kind, event.status, event.idempotencyKey);
    },
  },
});

await receiver.ready();
const app = express();
app.all('/webhooks/proto', webhookHandler(receiver)); // before express.json(), which would parse the body
app.use(express.json());
app.get('/media-buys', (req, res) => {
  res.json(database.prepare('SELECT * FROM media_buys').all());
});
const server = app.listen(Number(PORT), '127.0.0.1', () => console.log('listening'));

async function stop() {
  await receiver.stop(); // deliveries under way are finished, new ones get 503
  server.close();
  setTimeout(() => server.closeAllConnections(), 1000).unref(); // those that have sent no whole request
  database.close();
}
process.once('SIGTERM', () => void stop());
