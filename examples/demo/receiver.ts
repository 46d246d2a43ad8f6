// The buyer's side: an Express app that receives webhooks. Started by run.ts, which tells it the URL and the seller.
import { writeFileSync } from 'node:fs';
import express from 'express';
import { createReceiver } from 'proto-webhooks';
import { webhookHandler } from 'proto-webhooks/express';
import { sqliteStore } from 'proto-webhooks/sqlite';

const { PORT = '0', DATABASE = 'webhooks.db', AGENT_URL = '', BRAND_JSON_URL = '' } = process.env;
const publicUrl = `http://127.0.0.1:${PORT}/webhooks/proto`;

/** What the demo shows: which handler ran, on what. */
const tell = (message: object): void => {
  process.send?.(message);
};
process.on('message', () => tell({ pong: true }));
const failedOnce = new Set<string>();

/** A file is made once, whichever process runs, and by whichever event of its kind. */
function isFirst(what: string): boolean {
  try {
    writeFileSync(`${DATABASE}.${what}`, '', { flag: 'wx' });
    return true;
  } catch {
    return false;
  }
}

const receiver = createReceiver({
  publicUrl,
  senders: [{ agentUrl: AGENT_URL, brandJsonUrl: BRAND_JSON_URL }],
  store: sqliteStore(DATABASE),
  allowLoopback: true,
  // A dead process's event is taken over after so long; 8 s by default, shorter here so that the demo is quick.
  leaseMs: 1_000,
  logger: { debug() {}, info() {}, warn() {}, error() {} },
  handlers: {
    completed: async (event, ctx) => {
      // The first run never ends: the process is killed in the middle of it, as soon as it has told of the event.
      const neverEnds = event.operationId === 'crash' && isFirst('crash');
      tell({ saw: `completed ${event.transport}`, id: ctx.deliveryId });
      if (event.operationId === 'fail-once' && !failedOnce.has(ctx.deliveryId)) {
        failedOnce.add(ctx.deliveryId);
        throw new Error('the database of the buyer is down');
      }
      if (neverEnds) await new Promise(() => {});
    },
    working: async (event) => tell({ saw: `working ${event.transport}, ${event.progress?.percentage} %` }),
    'input-required': async (event) =>
      tell({ saw: `input-required ${event.transport}, ${event.inputRequest?.reason}` }),
    failed: async (event) => tell({ saw: `failed ${event.transport}` }),
    canceled: async (event) => tell({ saw: `canceled ${event.transport}` }),
    deliveryReport: async (event) => tell({ saw: `report ${event.report.notification_type}` }),
    other: async (event) => tell({ saw: `other ${event.kind}` }),
  },
});

await receiver.ready();
const app = express();
app.all('/webhooks/proto', webhookHandler(receiver));
app.listen(Number(PORT), '127.0.0.1', () => tell({ ready: true }));
