import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import { build } from 'esbuild';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { generateKey, type KeyPair, signDelivery, type SignedDelivery } from '../../src/sender/sign.ts';
import { createFakeSeller, type FakeSeller } from '../../src/testing/index.ts';
import { type RegistryServer, startRegistry } from '../registry/server.ts';
import { inThisForm } from '../reliability/form.ts';
import { envelope } from './kit.ts';
import type { Order } from './main.ts';
import { fetchRuntimes, RUNTIMES, WORKERD } from './runtimes.ts';
import type { Result } from './suite.ts';
import { startWorker } from './workerd.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));
const FETCH_MS = 300_000;
const RUN_MS = 180_000;

/** In `npm test` the runtime of this repository, a second engine, and workerd; the others are rows. */
const runtimes = inThisForm(RUNTIMES, ({ name }) => /^(Node 24\.|Bun )/.test(name));

let binaryOf: Awaited<ReturnType<typeof fetchRuntimes>>;
let folder: string;
let seller: FakeSeller;
let registry: RegistryServer;
let pinned: KeyPair;

beforeAll(async () => {
  binaryOf = await fetchRuntimes([...runtimes, WORKERD]);
  folder = await mkdtemp(join(tmpdir(), 'proto-webhooks-runtimes-'));
  seller = await createFakeSeller();
  registry = await startRegistry();
  pinned = await generateKey('ed25519', 'webhook-signing', { kid: 'pinned-1' });
  await build({
    entryPoints: [join(root, 'test/runtimes/main.ts')],
    outfile: join(folder, 'main.mjs'),
    bundle: true,
    format: 'esm',
    platform: 'node',
    target: 'es2023',
    logLevel: 'error',
  });
}, FETCH_MS);

afterAll(async () => {
  await seller.close();
  await registry.stop();
  await rm(folder, { recursive: true, force: true });
});

const sellerOf = (): Order['seller'] => ({
  agentUrl: seller.sender.agentUrl,
  privateJwk: seller.keys.ed25519.privateJwk,
});

/** `200`, or status and challenge. */
async function post({ url, headers, body }: SignedDelivery): Promise<string> {
  const init = { method: 'POST', headers, body: new Uint8Array(body), signal: AbortSignal.timeout(30_000) };
  const response = await fetch(url, init);
  return `${response.status} ${response.headers.get('www-authenticate') ?? ''}`.trim();
}

/** Sends a delivery. @returns resets its connection: with less than that, workerd goes on with the request. */
async function sendAndReset({ url, headers, body }: SignedDelivery): Promise<() => void> {
  const { hostname, port, host, pathname } = new URL(url);
  const fields = Object.entries({ Host: host, 'Content-Length': body.byteLength, ...headers });
  const socket = connect(Number(port), hostname);
  await once(socket, 'connect');
  socket.write(
    [`POST ${pathname} HTTP/1.1`, ...fields.map(([name, value]) => `${name}: ${value}`), '', ''].join('\r\n'),
  );
  socket.write(body);
  return () => void socket.resetAndDestroy();
}

/** Two calls a suite: neither was made again at the other origin. */
async function expectNoneFollowed(): Promise<void> {
  const seen = await registry.seen('redirect');
  expect(seen.length).toBeGreaterThan(1);
  expect(seen.filter(({ origin }) => origin === 'other')).toEqual([]);
}

const failures = (results: readonly Result[]): string[] =>
  results.flatMap(({ name, error }) => (error === undefined ? [] : [`${name}: ${error}`]));

describe.each(runtimes)('$name', (runtime) => {
  it('does all that the suite asks', { timeout: RUN_MS }, async () => {
    const databases = join(folder, runtime.name.replaceAll(/\W/g, '-'));
    await mkdir(databases);
    const order: Order = {
      dist: pathToFileURL(join(root, 'dist/')).href,
      engines: runtime.engines,
      redirecting: registry.at('redirect'),
      seller: sellerOf(),
      databases,
      nodeDoor: runtime.nodeDoor,
    };
    const args = [...runtime.args, join(folder, 'main.mjs'), JSON.stringify(order)];
    const options = { cwd: root, maxBuffer: 64 * 1024 * 1024, timeout: RUN_MS - 10_000 };
    const { stdout } = await promisify(execFile)(binaryOf(runtime), args, options);
    const results = JSON.parse(stdout.slice(stdout.lastIndexOf('RESULTS ') + 8)) as Result[];
    expect(failures(results)).toEqual([]);
    expect(results.length).toBe(runtime.nodeDoor ? 26 : 24);
    await expectNoneFollowed();
  });
});

const FLAVOURS = [
  { name: 'workerd', flags: [], engines: ['webcrypto', 'noble'] },
  { name: 'workerd with nodejs_compat', flags: ['nodejs_compat'], engines: ['native', 'webcrypto', 'noble'] },
] as const;

describe.each(FLAVOURS)('$name', ({ name, flags, engines }) => {
  async function start(part: string) {
    const own = join(folder, `${name} ${part}`.replaceAll(/\W/g, '-'));
    await mkdir(own);
    const worker = await startWorker(binaryOf(WORKERD), own, flags, (origin) => ({
      engines,
      redirecting: registry.at('redirect'),
      seller: sellerOf(),
      publicUrl: `${origin}/hook`,
      pin: pinned.publicJwk,
    }));
    const get = async (path: string): Promise<unknown> => (await fetch(`${worker.origin}${path}`)).json();
    await expect.poll(() => get('/arrived').catch(() => undefined)).toBe(0);
    return { worker, get };
  }

  it('does all that the suite asks', { timeout: RUN_MS }, async () => {
    const { worker, get } = await start('suite');
    await using _ = worker;
    const results = (await get('/suite')) as Result[];
    expect(failures(results)).toEqual([]);
    expect(results.length).toBe(20);
    await expectNoneFollowed();
  });

  it('ten concurrent first requests, the very first cut off during the start: nine answers', async () => {
    const { worker, get } = await start('cold');
    await using _ = worker;
    const keys = [seller.keys.ed25519.privateJwk, pinned.privateJwk];
    const signed = Array.from({ length: 10 }, (_, index) =>
      signDelivery({
        url: `${worker.origin}/hook`,
        body: envelope(),
        key: keys[index % 2] ?? pinned.privateJwk,
      }),
    );
    const [first, ...others] = await Promise.all(signed);
    if (!first) throw new Error('no delivery');
    const cutOff = await sendAndReset(first);
    await expect.poll(() => get('/arrived')).toBe(1);
    const answers = others.map((delivery) => post(delivery));
    await expect.poll(() => get('/arrived')).toBe(10);
    cutOff();
    expect(await get('/open')).toBe(true);
    expect(await Promise.all(answers)).toEqual(Array.from({ length: 9 }, () => '200'));
    expect(await post(first), 'what was cut off is sent again').toBe('200');
  });
});
