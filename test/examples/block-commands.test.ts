import { Buffer } from 'node:buffer';
import { afterAll, beforeAll, expect, inject, it } from 'vitest';
import { createFakeSeller } from '../../src/testing/index.ts';
import { freePort } from '../support/free-port.ts';
import { elsewhere, namedSeller } from '../support/named-seller.ts';
import { INSTALL_MS } from '../support/packed.ts';
import { asWritten } from '../support/samples.ts';
import { type Ended, openPrograms, type Programs } from './programs.ts';

let programs: Programs;
beforeAll(async () => {
  programs = await openPrograms(inject('shared'), 'block-commands');
}, INSTALL_MS);
afterAll(() => programs[Symbol.asyncDispose]());

/** Commands of a transcript, and a pattern of what they print: `…` is any lines; times, sizes and key ids are any. */
function transcript(block: string): { readonly commands: string; readonly printed: RegExp } {
  const lines = block.trimEnd().split('\n');
  const isCommand = (line: string): boolean => line.startsWith('$ ');
  const pattern = lines
    .filter((line) => !isCommand(line))
    .map((line) =>
      line === '…'
        ? '(?:.*\n)*?'
        : `${line
            .replaceAll(/[$()*+.?[\\\]^{|}]/g, '\\$&')
            .replaceAll(/\d{4}-\d\d-\d\dT[\d:]+(?:\\\.\d+)?Z/g, '\\S+Z')
            .replaceAll(/\d+ bytes/g, '\\d+ bytes')
            .replaceAll(/[\w-]{43}/g, '[\\w-]{43}')
            .replaceAll(/[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}/g, '[\\da-f-]{36}')
            .replaceAll(/ {2,}/g, ' ')}\n`,
    );
  const commands = lines.filter(isCommand).map((line) => line.slice(2));
  return { commands: commands.join('\n'), printed: new RegExp(`^${pattern.join('')}$`) };
}

async function plays(block: string, env: Readonly<Record<string, string>> = {}): Promise<Ended> {
  const { commands, printed } = transcript(block);
  const ended = await programs.shell(`exec 2>&1\n${commands}`, env);
  expect(ended.stdout.replaceAll(/ {2,}/g, ' ')).toMatch(printed);
  return ended;
}

/** A delivery as a proxy's log has it. */
const captured = (path: string, headers: Readonly<Record<string, string>>, body: Uint8Array): string =>
  [
    `POST ${path} HTTP/1.1`,
    `Content-Length: ${body.length}`,
    'Host: buyer.example',
    ...Object.entries(headers).map(([name, value]) => `${name}: ${value}`),
    '',
    Buffer.from(body).toString(),
  ].join('\r\n');

const SIGNED = 'https://buyer.example/webhooks/proto';

it('cli.md: explain finds the path that a router has cut', async () => {
  // It was captured ten minutes ago, as the page's was.
  await using seller = await createFakeSeller({ url: SIGNED, now: () => Date.now() - 600_000 });
  const { headers, body } = await seller.sign(seller.payloads.tool('completed'));
  await programs.write('delivery.http', captured('/proto', headers, body));
  await programs.write('jwks.json', JSON.stringify(seller.documents.get('/.well-known/jwks.json')));
  expect((await plays(asWritten('docs/cli.md', '$ proto-webhooks explain'))).code).toBe(1);
});

it('cli.md: keys generate writes the private key and prints the JWKS', async () => {
  const block = asWritten('docs/cli.md', 'keys generate --alg');
  const { code, stdout } = await programs.shell(`${block}cat jwks.json; ls -l seller.private.json`);
  expect(code).toBe(0);
  expect(stdout).toContain('"kid": "2026-a"');
  expect(stdout).toMatch(/^-rw------- /m);
});

it('cli.md: keys check walks the documents of a seller', async () => {
  await using seller = await createFakeSeller();
  const port = Number(new URL(seller.agentUrl).port);
  await using around = await elsewhere(programs.folder, { ports: { 4555: port } });
  const agents = [{ type: 'sales', url: 'http://127.0.0.1:4555/mcp' }];
  seller.documents.set('/.well-known/brand.json', { name: 'Fake seller', agents });
  expect((await plays(asWritten('docs/cli.md', '$ proto-webhooks keys check'), around.env)).code).toBe(0);
});

it('conformance.md: every vector passes', async () => {
  const { code, stdout } = await programs.shell(
    asWritten('docs/conformance.md', 'npx proto-webhooks vectors run'),
  );
  expect([code, stdout]).toEqual([0, expect.stringMatching(/^576 passed, 0 failed$/m)]);
});

/** Gives `judge` the environment of commands beside a receiver at 3000 that has not asked for any key yet. */
async function beside(judge: (env: Readonly<Record<string, string>>) => Promise<void>): Promise<void> {
  const [receiver, seller] = [await freePort(), await freePort()];
  await using around = await elsewhere(programs.folder, { ports: { 3000: receiver, 4555: seller } });
  await programs.write('probed.mjs', PROBED);
  await using _ = await programs.serve('probed.mjs', around.env, receiver);
  await programs.shell('rm -f probe-keys.json');
  await judge(around.env);
}

it('cli.md: a receiver is probed, and sent to', () =>
  beside(async (env) => {
    expect((await plays(asWritten('docs/cli.md', '$ proto-webhooks keys generate'), env)).code).toBe(0);
    expect((await plays(asWritten('docs/cli.md', '$ proto-webhooks send'), env)).code).toBe(0);
  }));

it('cli.md: registry shows the steps that failed', async () => {
  const row = {
    storyboard_id: 'webhooks',
    phase_id: 'deliver',
    step_id: 'sign',
    step_passed: false,
    task: 'create_media_buy',
    captured_at: '2026-11-21T20:23:54Z',
    duration_ms: 12,
    request_url: 'https://seller.example/mcp',
    response_status: 500,
    error_text: 'webhook_signature_invalid',
    failed_validations_jsonb: [{ path: '/a' }],
  };
  const run = { agent_url: 'https://seller.example/mcp', run_id: '7c1d0c1e-8a90-4f5e-9b0e-2d6f0a1c3e57' };
  const badge = { ...run, role: 'sales', verified: true, proto_version: '3.0', html: '', markdown: '' };
  const links = {
    badge_svg_url: 'https://registry.example/a.svg',
    registry_url: 'https://registry.example/a',
  };
  const answers = (url: string): object => {
    if (url.endsWith('/embed')) return { ...badge, ...links };
    if (url.includes('/diagnostics')) return { ...run, count: 1, diagnostics: [row] };
    return Object.fromEntries(new URL(url, 'https://registry.example').searchParams);
  };
  await using around = await elsewhere(programs.folder, {
    hosts: {
      'registry.example': ({ url = '/' }, res) =>
        void res.setHeader('content-type', 'application/json').end(JSON.stringify(answers(url))),
    },
  });
  const env = { ...around.env, REGISTRY_URL: 'https://registry.example', REGISTRY_TOKEN: 'sk_1' };
  expect((await plays(asWritten('docs/cli.md', '$ proto-webhooks registry'), env)).code).toBe(1);
  const verbs = asWritten('docs/cli.md', 'npx proto-webhooks registry badge');
  const { stdout, stderr } = await programs.shell(verbs, env);
  expect(stderr).toBe('');
  expect(stdout).toMatch(/^verified\n[^]*^Agent [^]*"limit": "20"/m);
});

it.each([
  ['list and redrive', 1, asWritten('docs/cli.md', '$ proto-webhooks inbox list')],
  ['redrive-many counts', 3, asWritten('docs/cli.md', '$ proto-webhooks inbox redrive-many')],
])('cli.md: inbox %s', async (_, count, block) => {
  await leaveDead(count);
  expect((await plays(block)).code).toBe(0);
});

it('operations.md: counts what waits, and lists what is DEAD', async () => {
  await leaveDead(2);
  const block = asWritten('docs/operations.md', 'npx proto-webhooks inbox stats');
  const { code, stdout, stderr } = await programs.shell(block);
  expect([code, stderr]).toEqual([0, '']);
  expect(stdout).toMatch(/^0 queued, 0 leased, 2 dead/);
  expect(stdout.match(/the ad server has no such media buy/g)).toHaveLength(2);
});

it('call-alarms.md: nothing is unresolved, and nothing owed, in a store of events alone', async () => {
  await leaveDead(1);
  const block = asWritten('docs/call-alarms.md', 'proto-webhooks tasks --state unresolved');
  const { code, stdout, stderr } = await programs.shell(block);
  expect([code, stderr]).toEqual([0, '']);
  expect(stdout).toContain('No media buy is registered.');
});

/** As many DEAD events in the SQLite file of the page, and no other. */
async function leaveDead(count: number): Promise<void> {
  await using named = await namedSeller(programs.folder);
  const { seller } = named;
  const key = '2633fd27-8881-4772-a202-3d2265b84e96';
  const deliveries = Array.from({ length: count }, async (_each, index) => {
    const event = { ...seller.payloads.tool('completed'), task_id: `task_${index + 7}` };
    const { headers, body } = await seller.sign(index === 0 ? { ...event, idempotency_key: key } : event, {
      url: SIGNED,
    });
    return { headers, body: Buffer.from(body).toString('base64') };
  });
  await programs.write('dead.mjs', DEAD);
  const env = { ...named.env, DELIVERIES: JSON.stringify(await Promise.all(deliveries)) };
  await programs.shell('rm -f webhooks.db*');
  await programs.run('dead.mjs', env, programs.folder);
}

/** A receiver whose handler can do none of what it is sent. */
const DEAD = `
import { createReceiver, PermanentError } from 'proto-webhooks';
import { sqliteStore } from 'proto-webhooks/sqlite';
const receiver = createReceiver({
  publicUrl: 'https://buyer.example/webhooks/proto',
  senders: [{ agentUrl: 'https://seller.example/mcp' }],
  store: sqliteStore('webhooks.db'),
  handlers: {
    other: async () => {
      throw new PermanentError('the ad server has no such media buy');
    },
  },
});
for (const { headers, body } of JSON.parse(process.env.DELIVERIES))
  await receiver.verifyAndDispatch(Buffer.from(body, 'base64'), headers, { url: '/webhooks/proto' });
await receiver.stop();
`;

/** The receiver that is probed, with the configuration that the page gives. */
const PROBED = `
import { createServer } from 'node:http';
import { createReceiver } from 'proto-webhooks';
import { webhookHandler } from 'proto-webhooks/node';
import { sqliteStore } from 'proto-webhooks/sqlite';
const receiver = createReceiver({
  publicUrl: 'http://127.0.0.1:3000/webhooks/proto',
  senders: [{ agentUrl: 'http://127.0.0.1:4555/mcp' }],
  allowLoopback: true,
  store: sqliteStore('webhooks.db'),
  handlers: { other: async () => {} },
});
createServer(webhookHandler(receiver)).listen(3000, '127.0.0.1');
`;
