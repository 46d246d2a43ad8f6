// PUBLIC_URL=https://buyer.example/webhooks/proto AGENT_URL=https://seller.example/mcp node server.js
import { PrometheusExporter } from '@opentelemetry/exporter-prometheus';
import { MeterProvider } from '@opentelemetry/sdk-metrics';
import express from 'express';
import { createReceiver } from 'proto-webhooks';
import { webhookHandler } from 'proto-webhooks/express';
import { instrument } from 'proto-webhooks/otel';
import { sqliteStore } from 'proto-webhooks/sqlite';

const { PORT = '3000', PUBLIC_URL, AGENT_URL, BRAND_JSON_URL, DATABASE = 'webhooks.db' } = process.env;

const receiver = createReceiver({
  publicUrl: PUBLIC_URL,
  senders: [{ agentUrl: AGENT_URL, ...(BRAND_JSON_URL && { brandJsonUrl: BRAND_JSON_URL }) }],
  store: sqliteStore(DATABASE),
  mode: 'inbox', // answered once it is durable; the worker of this process runs the handlers
  // Only for a seller on this machine, e.g. createFakeSeller from proto-webhooks/testing.
  allowLoopback: process.env.ALLOW_LOOPBACK === '1',
  handlers: {
    other: async (event) => {
      console.log(event.kind, event.status, event.idempotencyKey);
    },
  },
});

// The exporter is a reader: what it is asked for is measured then.
const exporter = new PrometheusExporter({ preventServerStart: true });
const meterProvider = new MeterProvider({ readers: [exporter] });
instrument(receiver, { meterProvider }); // and tracerProvider, or the global ones

await receiver.ready();
await receiver.start();
const app = express();
app.all('/webhooks/proto', webhookHandler(receiver)); // before express.json(), which would parse the body
// Where your network alone gets to: what is counted, and who is dead, is nobody else's business.
app.get('/metrics', (req, res) => exporter.getMetricsRequestHandler(req, res));
app.get('/livez', async (_, res) => void res.sendStatus((await receiver.health()).live ? 200 : 503));
app.get('/readyz', async (_, res) => void res.sendStatus((await receiver.health()).ready ? 200 : 503));
const server = app.listen(Number(PORT), '127.0.0.1', () => console.log('listening'));

async function stop() {
  await receiver.stop(); // deliveries and handlers under way are finished, new deliveries get 503
  server.close();
  setTimeout(() => server.closeAllConnections(), 1000).unref(); // those that have sent no whole request
  await meterProvider.shutdown();
}
process.once('SIGTERM', () => void stop());
