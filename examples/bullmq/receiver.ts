// The buyer's door: hands every event to a BullMQ queue before it answers. Started by run.ts.
import { existsSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { Queue } from 'bullmq';
import { createReceiver } from 'proto-webhooks';
import { enqueue } from 'proto-webhooks/bullmq';
import { webhookHandler } from 'proto-webhooks/node';
import { sqliteStore } from 'proto-webhooks/sqlite';

const {
  PORT = '3000',
  REDIS_URL = '',
  DATABASE = '',
  QUEUE = '',
  CRASHED = '',
  AGENT_URL = '',
  BRAND_JSON_URL = '',
} = process.env;
const { hostname, port } = new URL(REDIS_URL);

// Fails at once while Redis is away: the seller is told 503, and comes again.
const queue = new Queue(QUEUE, {
  connection: { host: hostname, port: Number(port), enableOfflineQueue: false },
});
queue.on('error', (error) => console.error(error));
await queue.waitUntilReady();

const toQueue = enqueue(queue, {
  jobOptions: { attempts: 5, backoff: { type: 'exponential', delay: 1000 }, removeOnComplete: true },
});

const receiver = createReceiver({
  publicUrl: `http://127.0.0.1:${PORT}/webhooks/proto`,
  senders: [{ agentUrl: AGENT_URL, brandJsonUrl: BRAND_JSON_URL }],
  store: sqliteStore(DATABASE),
  allowLoopback: true, // http and 127.0.0.1: for this example only
  leaseMs: 1_000, // a dead process's event is free so soon; 8 s by default
  handlers: {
    deliveryReport: toQueue,
    other: async (event, ctx) => {
      await toQueue(event, ctx);
      // Here run.ts kills the process: the job is in the queue, and the event is not yet completed.
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
