// The buyer's door: job and completion are one commit in Postgres. Started by run.ts.
import { existsSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { Pool } from 'pg';
import { PgBoss } from 'pg-boss';
import { createReceiver } from 'proto-webhooks';
import { webhookHandler } from 'proto-webhooks/node';
import { enqueue } from 'proto-webhooks/pg-boss';
import { migrate, postgresStore } from 'proto-webhooks/postgres';

const {
  PORT = '3000',
  DATABASE_URL = '',
  QUEUE = '',
  CRASHED = '',
  AGENT_URL = '',
  BRAND_JSON_URL = '',
} = process.env;

// One database for both: that is what makes one commit of them.
const pool = new Pool({ connectionString: DATABASE_URL });
await migrate(pool);
const boss = new PgBoss({ connectionString: DATABASE_URL });
boss.on('error', (error) => console.error(error));
await boss.start();
await boss.createQueue(QUEUE, { retryLimit: 5, retryBackoff: true });

const toQueue = enqueue(boss, QUEUE, { transaction: true });

const receiver = createReceiver({
  publicUrl: `http://127.0.0.1:${PORT}/webhooks/proto`,
  senders: [{ agentUrl: AGENT_URL, brandJsonUrl: BRAND_JSON_URL }],
  store: postgresStore({ pool }),
  allowLoopback: true, // http and 127.0.0.1: for this example only
  leaseMs: 1_000, // a dead process's event is free so soon; 8 s by default
  handlers: {
    deliveryReport: toQueue,
    other: async (event, ctx) => {
      await toQueue(event, ctx);
      // Here run.ts kills the process: the job and the event's completion are committed, the answer is not sent.
      if (event.operationId === 'crash' && !existsSync(CRASHED)) {
        writeFileSync(CRASHED, '');
        process.send?.({ enqueued: ctx.deliveryId });
        await new Promise(() => {});
      }
    },
  },
});

await receiver.ready();
createServer(webhookHandler(receiver)).listen(Number(PORT), '127.0.0.1', () =>
  process.send?.({ ready: true }),
);
