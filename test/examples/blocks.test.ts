import { mkdtemp } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import { freePort } from '../support/free-port.ts';
import { elsewhere, namedSeller } from '../support/named-seller.ts';
import { INSTALL_MS } from '../support/packed.ts';
import { asWritten } from '../support/samples.ts';
import { itListens, openPrograms, type Programs, URL_GIVEN } from './programs.ts';

let programs: Programs;
beforeAll(async () => {
  programs = await openPrograms(inject('shared'), 'blocks');
}, INSTALL_MS);
afterAll(() => programs[Symbol.asyncDispose]());

const linesOf = (text: string): readonly string[] => text.trim().split('\n');

describe('programs of docs run as written, with a fake seller, on the packed package', () => {
  it('challenge.md: yes to what was asked for, no to another subscription', async () => {
    await programs.write('challenge.mjs', asWritten('docs/challenge.md', 'createFakeSeller'));
    const [yes, no] = linesOf(await programs.run('challenge.mjs', { PORT: String(await freePort()) }));
    expect(yes).toMatch(/^sub_1 true 200 \{"challenge":"[^"]+"\}$/);
    expect(no).toMatch(/^sub_2 false 403 \{"error":\{"code":"challenge_refused"/);
  });

  it('verify-only.md: events in a table of its own, a replay and a forged one', async () => {
    await programs.write('verify.mjs', asWritten('docs/verify-only.md', 'createVerifier'));
    expect(linesOf(await programs.run('verify.mjs', { PORT: String(await freePort()) }))).toEqual([
      'stored: task completed',
      '200',
      'known: task completed',
      '200',
      'stored: delivery-report completed',
      'known: delivery-report completed',
      '200 401',
      'webhook_signature_digest_mismatch',
    ]);
  });

  it('reconcile.md: a report that the seller loses is pulled, and comes after all', async () => {
    await programs.write('reconcile.mjs', asWritten('docs/reconcile.md', 'createFakeSeller'));
    const printed = linesOf(await programs.run('reconcile.mjs'));
    expect(printed).toEqual([
      'webhook first day',
      'webhook third day',
      expect.stringMatching(/^get_media_buy_delivery \d{4}-\d\d-\d\d \d{4}-\d\d-\d\d$/),
      'pull second day',
      'webhook second day',
      'true 3 { due: 3, byWebhook: 2, byPull: 1, repeated: 1 }',
    ]);
  });

  it('impairments-and-totals.md: an impairment without a webhook is told, and totals differ', async () => {
    await programs.write('impairments.mjs', asWritten('docs/impairments-and-totals.md', 'createReconciler'));
    const [told, ...compared] = linesOf(await programs.run('impairments.mjs'));
    expect(told).toBe('pull mb_1 rejected POLICY');
    expect(compared.join(' ')).toMatch(/ours: \{ impressions: 950, .* differs: true,/);
  });

  it('subscribe.md: an account is subscribed, and its event has the name that it was given', async () => {
    await programs.write('subscribe.mjs', asWritten('docs/subscribe.md', 'createFakeSeller'));
    expect(linesOf(await programs.run('subscribe.mjs', { PORT: String(await freePort()) }))).toEqual([
      'sync_accounts as a dry run',
      'sync_accounts for good',
      'active',
      'creatives cr_1 approved',
    ]);
  });

  it('keys.md: a rehearsal of a rotation, an outage and a revocation', async () => {
    await programs.write('rehearse.mjs', asWritten('docs/keys.md', 'createFakeSeller'));
    expect(linesOf(await programs.run('rehearse.mjs'))).toEqual([
      'at first: 200 ',
      'after a rotation: 200 ',
      '20 min without documents: 200 ',
      '40 min without documents: 503 keys_unavailable',
      'a minute with them: 200 ',
      'after a revocation: 401 webhook_signature_key_revoked',
    ]);
  });

  it('poll.md: a task whose webhook is lost ends by a poll, and the late webhook is a duplicate', async () => {
    await programs.write('lost.mjs', asWritten('docs/poll.md', 'createFakeSeller'));
    expect(linesOf(await programs.run('lost.mjs', { PORT: String(await freePort()) }))).toEqual([
      'submitted',
      "poll order-1 { media_buy_id: 'mb-1' }",
      'duplicate',
    ]);
  });

  it('alarms.md: the first start with a new store pages, the second does not', async () => {
    await programs.write('alarms.mjs', asWritten('docs/alarms.md', 'URGENT'));
    const start = (): Promise<string> => programs.run('alarms.mjs', {}, programs.folder);
    expect(linesOf(await start())).toEqual([expect.stringMatching(/^PAGE store_created /)]);
    expect(await start()).toBe('');
  });

  it('thrown-errors.md: a mistake in the configuration is told apart, with its fix', async () => {
    await programs.write('thrown.mjs', asWritten('docs/thrown-errors.md', 'instanceof ConfigError'));
    const { code, stderr } = await programs.shell('node thrown.mjs');
    expect([code, stderr]).toEqual([
      0,
      expect.stringMatching(/^config_error publicUrl: .* set allowLoopback/),
    ]);
  });

  it('registry.md: a badge, and the steps that failed', async () => {
    const asked: string[] = [];
    await using registry = await elsewhere(programs.folder, {
      hosts: {
        'registry.example': (req, res) => {
          asked.push(`${req.url} ${req.headers.authorization ?? 'no token'}`);
          res.setHeader('content-type', 'application/json');
          res.end(JSON.stringify(req.url?.endsWith('/embed') ? BADGE : DIAGNOSTICS));
        },
      },
    });
    await programs.write('registry.mjs', asWritten('docs/registry.md', 'createRegistry'));
    const printed = await programs.run('registry.mjs', { ...registry.env, REGISTRY_TOKEN: 'sk_1' });
    expect(linesOf(printed)).toEqual([
      'true https://registry.example/badge.svg',
      'run-1 sign webhook_signature_invalid',
    ]);
    expect(asked).toEqual([
      `${AGENT_PATH}/badge/sales/3.0/embed no token`,
      `${AGENT_PATH}/compliance/diagnostics?limit=100 Bearer sk_1`,
    ]);
  });

  it('events.md: each event reaches the handler of its status, its family or its name', async () => {
    await using named = await namedSeller(programs.folder);
    const { seller } = named;
    await programs.write('handlers.ts', asWritten('docs/events.md', 'wholesale_feed: async'));
    await programs.write('handled.mjs', HANDLED);
    const task = { ...seller.payloads.tool('completed'), task_id: 'task-1' };
    const impairment = { ...seller.payloads.family('impairment'), impairment_id: 'impairment-1' };
    const change = { event_id: 'change-1', event_type: 'product.updated', entity_id: 'product-1' };
    const feed = { ...seller.payloads.family('product.updated'), event: change };
    const vendor = { idempotency_key: 'vendor-something-1', notification_type: 'vendor.something' };
    const events = [
      task,
      impairment,
      feed,
      vendor,
      { ...vendor, idempotency_key: 'vendor-else-0001', notification_type: 'vendor.else' },
    ];
    const deliveries = events.map(async (event) => {
      const { headers, body } = await seller.sign(event, { url: URL_GIVEN });
      return { headers, body: Buffer.from(body).toString('base64') };
    });
    const env = { ...named.env, DELIVERIES: JSON.stringify(await Promise.all(deliveries)) };
    const [first, ...lines] = linesOf(await programs.run('handled.mjs', env));
    expect(first).toMatch(/^task-1 \{/);
    const printed = lines.join('\n');
    for (const text of ['impaired impairment-1', 'feed product-1', 'vendor.something {', 'other {'])
      expect(printed).toContain(text);
    expect(printed.match(/^200$/gm)).toHaveLength(events.length);
  });

  it('options.md: a receiver whose store is the one that it names', async () => {
    await using named = await namedSeller(programs.folder);
    await programs.write('options.mjs', asWritten('docs/options.md', 'createReceiver'));
    await programs.write('optioned.mjs', OPTIONED);
    const { headers, body } = await named.seller.sign(named.seller.payloads.tool('completed'), {
      url: URL_GIVEN,
    });
    const delivery = JSON.stringify({ headers, body: Buffer.from(body).toString('base64') });
    const env = { ...named.env, DELIVERY: delivery };
    const folder = await mkdtemp(join(programs.folder, 'options-'));
    const [event, status, id = ''] = linesOf(await programs.run('optioned.mjs', env, folder));
    expect([event, status]).toEqual(['task completed', '200']);
    // The replay is refused, and the store is the same.
    const again = await programs.run('optioned.mjs', { ...env, STORE_ID: id }, folder);
    expect(linesOf(again)).toEqual(['401', id]);
    const inAnother = programs.run('optioned.mjs', { ...env, STORE_ID: id });
    await expect(inAnother).rejects.toThrow(`and ${id} is expected`);
  });

  it('observability.md: what happens at a receiver is counted', async () => {
    await programs.link('@opentelemetry/api', '@opentelemetry/sdk-metrics');
    await using named = await namedSeller(programs.folder);
    await programs.write('receiver.mjs', asWritten('docs/frameworks.md', 'export const receiver ='));
    await programs.write('metrics.mjs', asWritten('docs/observability.md', 'instrument(receiver)'));
    await programs.write('counted.mjs', COUNTED);
    const { headers, body } = await named.seller.sign(named.seller.payloads.tool('completed'), {
      url: URL_GIVEN,
    });
    const delivery = JSON.stringify({ headers, body: Buffer.from(body).toString('base64') });
    const printed = await programs.run('counted.mjs', { ...named.env, DELIVERY: delivery });
    expect(linesOf(printed)).toEqual(['task completed', '200', 'webhook.deliveries 1 accepted']);
  });
});

const AGENT_PATH = `/api/registry/agents/${encodeURIComponent('https://seller.example/mcp')}`;
const BADGE = {
  agent_url: 'https://seller.example/mcp',
  role: 'sales',
  verified: true,
  proto_version: '3.0',
  badge_svg_url: 'https://registry.example/badge.svg',
  registry_url: 'https://registry.example/',
  html: '',
  markdown: '',
};
const DIAGNOSTICS = {
  agent_url: 'https://seller.example/mcp',
  run_id: 'run-1',
  count: 1,
  diagnostics: [{ step_id: 'sign', error_text: 'webhook_signature_invalid' }],
};

/** Hands deliveries to the page's receiver, and shows the answer of each. */
const HANDLED = `
const { receiver } = await import('./handlers.ts');
await receiver.ready();
for (const { headers, body } of JSON.parse(process.env.DELIVERIES)) {
  const { response } = await receiver.verifyAndDispatch(Buffer.from(body, 'base64'), headers);
  console.log(response.status);
}
await receiver.stop();
`;

/** Starts the page's receiver, hands a delivery over, and shows the answer and the store's id. */
const OPTIONED = `
const { receiver } = await import('./options.mjs');
const { storeId } = await receiver.ready();
const { headers, body } = JSON.parse(process.env.DELIVERY);
const { response } = await receiver.verifyAndDispatch(Buffer.from(body, 'base64'), headers);
console.log(response.status);
console.log(storeId);
await receiver.stop();
`;

/** Starts an SDK of OpenTelemetry, then the page's program, and shows what is counted of one delivery. */
const COUNTED = `
import { metrics } from '@opentelemetry/api';
import { AggregationTemporality, InMemoryMetricExporter, MeterProvider, PeriodicExportingMetricReader } from '@opentelemetry/sdk-metrics';
const exporter = new InMemoryMetricExporter(AggregationTemporality.CUMULATIVE);
const reader = new PeriodicExportingMetricReader({ exporter });
metrics.setGlobalMeterProvider(new MeterProvider({ readers: [reader] }));
await import('./metrics.mjs');
const { receiver } = await import('./receiver.mjs');
const { headers, body } = JSON.parse(process.env.DELIVERY);
const { response } = await receiver.verifyAndDispatch(Buffer.from(body, 'base64'), headers, { url: '/webhooks/seller' });
console.log(response.status);
await reader.forceFlush();
const all = exporter.getMetrics().flatMap(({ scopeMetrics }) => scopeMetrics.flatMap(({ metrics }) => metrics));
const { descriptor, dataPoints } = all.find(({ descriptor }) => descriptor.name === 'webhook.deliveries');
for (const { value, attributes } of dataPoints) console.log(descriptor.name, value, attributes['webhook.outcome']);
await reader.shutdown();
await receiver.stop();
`;

describe('frameworks.md: each door takes what a seller signs, with the receiver of the page', () => {
  /** Blocks by file, in the order of the page. */
  const DOORS = {
    'hono.js': asWritten('docs/frameworks.md', "from 'hono'"),
    'next.ts': asWritten('docs/frameworks.md', "export const runtime = 'nodejs'"),
    'others.ts': asWritten('docs/frameworks.md', 'app/routes/webhooks.$seller.ts'),
    'lambda.js': asWritten('docs/frameworks.md', 'proto-webhooks/lambda'),
  };
  /** What a framework takes of them. */
  const CALLS = Object.keys(DOORS).flatMap((file) =>
    file === 'others.ts' ? ['action', 'POST', 'default'].map((name) => `${file} ${name}`) : [file],
  );
  beforeAll(async () => {
    await programs.write('receiver.mjs', asWritten('docs/frameworks.md', 'export const receiver ='));
    await programs.link('hono');
  });

  it('node listens', async () => {
    await programs.write(
      'node.mjs',
      asWritten('docs/frameworks.md', 'createServer(webhookHandler(receiver))'),
    );
    await itListens(programs, 'node.mjs');
  });

  it('those that a framework calls', async () => {
    await programs.write('next.mjs', NEXT);
    await programs.write('called.mjs', CALLED);
    for (const [file, code] of Object.entries(DOORS)) await programs.write(file, code);
    const modules = {
      './receiver': join(programs.folder, 'receiver.mjs'),
      '@/receiver': join(programs.folder, 'next.mjs'),
    };
    await using named = await namedSeller(programs.folder, undefined, { modules });
    const { seller } = named;
    const deliveries = CALLS.map(async (called) => {
      const { headers, body } = await seller.sign(seller.payloads.tool('completed'), { url: URL_GIVEN });
      return [called, { url: URL_GIVEN, headers, body: Buffer.from(body).toString('base64') }];
    });
    const env = { DELIVERIES: JSON.stringify(Object.fromEntries(await Promise.all(deliveries))) };
    const lines = linesOf(await programs.run('called.mjs', { ...named.env, ...env }));
    expect(lines).toEqual(CALLS.flatMap((called) => ['task completed', `${called} 200`]));
  });
});

/** As the page says of Next.js: a function that gives the receiver. */
const NEXT = `
import { receiver as only } from './receiver.mjs';
export const receiver = () => only;
`;

/** Calls each as its framework does. */
const CALLED = `
const request = ({ url, headers, body }) => new Request(url, { method: 'POST', headers, body: Buffer.from(body, 'base64') });
const ofApiGateway = ({ url, headers, body }) => {
  const { pathname: path, host } = new URL(url);
  const requestContext = { http: { method: 'POST', path } };
  return { version: '2.0', rawPath: path, rawQueryString: '', headers: { ...headers, host }, requestContext, body, isBase64Encoded: true };
};
const HOW = {
  'hono.js': (module, delivery) => module.default.fetch(request(delivery)),
  'next.ts': (module, delivery) => module.POST(request(delivery)),
  'others.ts action': (module, delivery) => module.action({ request: request(delivery) }),
  'others.ts POST': (module, delivery) => module.POST({ request: request(delivery) }),
  'others.ts default': (module, delivery) => module.default.fetch(request(delivery)),
  'lambda.js': async (module, delivery) => ({ status: (await module.handler(ofApiGateway(delivery))).statusCode }),
};
for (const [called, delivery] of Object.entries(JSON.parse(process.env.DELIVERIES))) {
  const { status } = await HOW[called](await import('./' + called.split(' ')[0]), delivery);
  console.log(called, status);
}
process.exit();
`;
