// The buyer's worker: what a queue is for. Started by run.ts.
import { Worker } from 'bullmq';
import type { WebhookJob } from 'proto-webhooks/bullmq';

const { REDIS_URL = '', QUEUE = '' } = process.env;
const { hostname, port } = new URL(REDIS_URL);

const worker = new Worker<WebhookJob>(
  QUEUE,
  async (job) => {
    const { kind, status, idempotencyKey } = job.data;
    process.send?.({ ran: idempotencyKey, says: `job ${job.id}: ${kind} ${status}` });
  },
  { connection: { host: hostname, port: Number(port), maxRetriesPerRequest: null } },
);
await worker.waitUntilReady();
process.send?.({ ready: true });
