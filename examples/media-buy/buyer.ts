// npm start. The buyer: registers its calls, makes them over both transports, and handles what comes of them.
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { setTimeout as sleep } from 'node:timers/promises';
import { createReceiver } from 'proto-webhooks';
import { a2aCaller } from 'proto-webhooks/a2a';
import { mcpCaller } from 'proto-webhooks/mcp';
import { webhookHandler } from 'proto-webhooks/node';
import { createPoller } from 'proto-webhooks/poller';
import { type CallSeller, createRegistrations } from 'proto-webhooks/registrations';
import { sqliteStore } from 'proto-webhooks/sqlite';
import { startSeller } from './start-seller.ts';

const token = randomBytes(16).toString('hex');
const seller = await startSeller(token);

// The webhooks' records and the app's own table in one file, so that one transaction covers both.
const folder = mkdtempSync(join(tmpdir(), 'proto-webhooks-media-buy-'));
const database = new DatabaseSync(join(folder, 'buyer.db'));
database.exec('CREATE TABLE happened (what TEXT)');
const store = sqliteStore(database);

const server = createServer().listen(0, '127.0.0.1');
await once(server, 'listening');
const { port } = server.address() as AddressInfo;

const allowLoopback = true; // for a seller on this machine: leave it out
const auth = { type: 'bearer', token } as const;
const overTool = mcpCaller({ auth, allowLoopback });
const overAgent = a2aCaller({ auth, allowLoopback });
const isAgent = (agentUrl: string) => agentUrl === seller.a2a;
const call: CallSeller = Object.assign<CallSeller, Pick<CallSeller, 'transport'>>(
  (agentUrl, ...rest) => (isAgent(agentUrl) ? overAgent : overTool)(agentUrl, ...rest),
  { transport: (agentUrl) => (isAgent(agentUrl) ? 'agent' : 'tool') }, // the poller asks accordingly
);
const registrations = createRegistrations({
  store,
  call,
  baseUrl: `http://127.0.0.1:${port}/webhooks`,
  secrets: [randomBytes(32).toString('base64')], // yours: process.env.WEBHOOK_SECRET
  allowLoopback,
});
const receiver = createReceiver({
  store,
  registrations,
  allowLoopback,
  handlers: {
    completed: async (event, ctx) => {
      const what = `${event.registration?.ref}: ${event.status}, told by ${event.source}`;
      // The row is written and the event completed, or neither.
      await ctx.transaction((db) => db.prepare('INSERT INTO happened VALUES (?)').run(what));
      console.log(`buyer   ${what}: ${JSON.stringify(event.data)}`);
    },
    deliveryReport: async (event, ctx) => {
      const what = `report: ${event.report.notification_type}, number ${event.sequenceNumber}`;
      await ctx.transaction((db) => db.prepare('INSERT INTO happened VALUES (?)').run(what));
      console.log(`buyer   ${what}`);
    },
    other: async (event) => console.log(`buyer   ${event.kind} ${event.status}`),
  },
});
await receiver.ready();
server.on('request', webhookHandler(receiver));
await receiver.start(); // its worker runs what an answer or a poll has told
await registrations.start(); // makes the calls of a process that died before they were answered

async function buy(
  ref: string,
  agentUrl: string,
  args: { readonly budget: number; readonly reports?: boolean },
) {
  const reporting =
    args.reports && (await registrations.reportingWebhook({ agentUrl }, { frequency: 'daily' }));
  const registration = await registrations.create({
    agentUrl,
    taskType: 'create_media_buy',
    arguments: { buyer_ref: ref, budget: args.budget, ...(reporting && { reporting_webhook: reporting }) },
    ref,
  });
  await registration.call();
  const seen = await registrations.get(registration);
  console.log(`buyer   ${ref}: called at ${agentUrl}, now ${seen?.state}`);
}

// More than the seller sells at once: the end of the task comes by webhook. Autumn is answered with its end.
await buy('spring', seller.mcp, { budget: 50_000, reports: true });
await buy('summer', seller.a2a, { budget: 50_000 });
await buy('autumn', seller.mcp, { budget: 500 });

await buy('winter', seller.mcp, { budget: 50_000 }); // its webhook is lost

const PROMISED = [
  'autumn: completed, told by response',
  'report: scheduled, number 1',
  'spring: completed, told by webhook',
  'summer: completed, told by webhook',
  'winter: completed, told by poll',
];
const happened = () =>
  database
    .prepare('SELECT what FROM happened ORDER BY what')
    .all()
    .map(({ what }) => String(what));

async function until(isOver: () => boolean): Promise<void> {
  const deadline = Date.now() + 30_000;
  while (!isOver() && Date.now() < deadline) await sleep(50);
}

// Three webhooks, each of which the seller sends twice.
await until(() => seller.answers.length === 6 && happened().length === PROMISED.length - 1);

// Started so late that what webhooks tell is told by them: yours runs all the time, every 30 s.
const poller = createPoller({ receiver, registrations, fastMs: 100, slowMs: 100 });
await poller.start();
await until(() => happened().length >= PROMISED.length);
await poller.stop();

const ended = (await registrations.list({ state: 'ended', limit: 10 })).operations.length;
const isRight =
  String(happened()) === String(PROMISED) && seller.answers.every((status) => status === 200) && ended === 4;
console.log(
  isRight
    ? 'Four media buys and a report, each handled once.'
    : `Expected ${PROMISED.join('; ')}. Happened: ${happened().join('; ')}; answered ${seller.answers.join(', ')}; ended ${ended}.`,
);
process.exitCode = isRight ? 0 : 1;

await registrations.stop();
server.close();
await receiver.stop(); // deliveries under way are finished, new ones get 503
await seller.stop();
database.close();
rmSync(folder, { recursive: true, force: true });
