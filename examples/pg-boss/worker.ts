// The buyer's worker: what a queue is for. Started by run.ts.
import { PgBoss } from 'pg-boss';
import type { WebhookJob } from 'proto-webhooks/pg-boss';

const { DATABASE_URL = '', QUEUE = '' } = process.env;

const boss = new PgBoss({ connectionString: DATABASE_URL });
boss.on('error', (error) => console.error(error));
await boss.start();
await boss.work<WebhookJob>(QUEUE, { pollingIntervalSeconds: 0.5 }, async (jobs) => {
  for (const job of jobs) {
    const { kind, status, idempotencyKey } = job.data;
    process.send?.({ ran: idempotencyKey, says: `job ${job.id}: ${kind} ${status}` });
  }
});
process.send?.({ ready: true });
