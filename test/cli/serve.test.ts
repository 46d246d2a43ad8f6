import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, chownSync, cpSync, existsSync, mkdirSync, readdirSync, symlinkSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { describe, expect, it, onTestFinished } from 'vitest';
import { folder, ready, SECRET, world, type World } from '../serve/kit.ts';
import { CLI, cli } from './run-cli.ts';

const LONG = { timeout: 30_000 };
const ROOT = fileURLToPath(new URL('../../', import.meta.url));

interface Child {
  readonly child: ChildProcess;
  readonly stdout: () => string;
  readonly ended: Promise<{ readonly code: number | null; readonly stdout: string; readonly stderr: string }>;
}

interface ChildOptions {
  readonly cwd: string;
  readonly env?: Readonly<Record<string, string>>;
  readonly node?: readonly string[];
  readonly cli?: string;
  /** User and group. */
  readonly id?: number;
}

/** The built command line, as a process of its own. */
function start(
  args: readonly string[],
  { cwd, env = {}, node = [], cli: file = CLI, id }: ChildOptions,
): Child {
  const child = spawn(process.execPath, [...node, '--no-warnings', file, 'serve', ...args], {
    cwd,
    env: { PATH: process.env['PATH'], SINK_SECRET: SECRET, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
    ...(id !== undefined && { uid: id, gid: id }),
  });
  onTestFinished(() => void child.kill('SIGKILL'));
  let stdout = '';
  child.stdout.setEncoding('utf8').on('data', (chunk: string) => (stdout += chunk));
  const stderr = text(child.stderr);
  const ended = once(child, 'close').then(async ([code]) => ({
    code: code as number | null,
    stdout,
    stderr: await stderr,
  }));
  return { child, stdout: () => stdout, ended };
}

async function deliver(at: World): Promise<void> {
  const { status } = await at.seller.send(await at.seller.sign(at.seller.payloads.tool('completed')));
  expect(status).toBe(200);
}

describe('serve, as a process', () => {
  it('SIGHUP reads again, a mistake is an alarm, and SIGTERM ends it with 0', async () => {
    const at = await world();
    const served = start(['--config', at.folder.file('webhooks.yaml', at.yaml())], { cwd: at.folder.path });
    await ready(at);
    await deliver(at);
    await expect.poll(() => at.sink.posted.length, LONG).toBe(1);
    at.folder.file('webhooks.yaml', at.yaml('events: [deliveryReport]\n'));
    served.child.kill('SIGHUP');
    await expect.poll(served.stdout, LONG).toContain('the configuration was read again');
    await deliver(at);
    at.folder.file('webhooks.yaml', at.yaml('events: 5\n'));
    served.child.kill('SIGHUP');
    await expect.poll(served.stdout, LONG).toContain('"alarm":"config_rejected"');
    served.child.kill('SIGTERM');
    const { code, stdout, stderr } = await served.ended;
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    for (const line of stdout.trimEnd().split('\n')) expect(JSON.parse(line)).toHaveProperty('level');
    expect(at.sink.posted.length).toBe(1);
  });

  it('a fault that ends it is one line and 1', async () => {
    const at = await world();
    const other = createServer().listen(at.port, '127.0.0.1');
    await once(other, 'listening');
    onTestFinished(() => void other.close());
    const served = start(['--config', at.folder.file('webhooks.yaml', at.yaml())], { cwd: at.folder.path });
    const { code, stderr } = await served.ended;
    expect(code).toBe(1);
    expect(stderr).toMatch(
      /^proto-webhooks: listen: 127\.0\.0\.1:\d+: another process listens there\. [^\n]*\n$/,
    );
  });

  it('writes to the folder of its database alone, as a user who is not root', async () => {
    const at = await world();
    const data = join(at.folder.path, 'data');
    mkdirSync(data);
    const isRoot = process.getuid?.() === 0;
    if (isRoot) {
      chownSync(data, 65_534, 65_534);
      chmodSync(at.folder.path, 0o755);
    }
    const served = start(['--config', at.folder.file('webhooks.yaml', at.yaml())], {
      cwd: at.folder.path,
      // What Node holds: a write anywhere else is refused.
      node: [
        '--permission',
        '--allow-fs-read=*',
        `--allow-fs-write=${data}/*`,
        '--allow-worker',
        '--allow-addons',
      ],
      ...(isRoot && { id: 65_534 }),
    });
    await ready(at);
    await deliver(at);
    await expect.poll(() => at.sink.posted.length, LONG).toBe(1);
    served.child.kill('SIGTERM');
    expect(await served.ended).toMatchObject({ code: 0, stderr: '' });
    expect(readdirSync(data)).toContain('webhooks.db');
  });

  it('the variables of OpenTelemetry: traces and metrics reach the collector', async () => {
    const got = new Map<string, string>();
    const collector = createServer((req, res) => {
      const answer = (body: string): void => {
        got.set(req.url ?? '', (got.get(req.url ?? '') ?? '') + body);
        res.writeHead(200, { 'content-type': 'application/json' }).end('{}');
      };
      text(req).then(answer, () => res.destroy());
    }).listen(0, '127.0.0.1');
    await once(collector, 'listening');
    onTestFinished(() => collector.close().closeAllConnections());
    const at = await world();
    const served = start(['--config', at.folder.file('webhooks.yaml', at.yaml())], {
      cwd: at.folder.path,
      env: {
        OTEL_EXPORTER_OTLP_ENDPOINT: `http://127.0.0.1:${(collector.address() as AddressInfo).port}`,
        OTEL_EXPORTER_OTLP_PROTOCOL: 'http/json',
      },
    });
    await ready(at);
    await deliver(at);
    await expect.poll(() => at.sink.posted.length, LONG).toBe(1);
    served.child.kill('SIGTERM');
    expect(await served.ended).toMatchObject({ code: 0, stderr: '' });
    expect(got.get('/v1/traces')).toContain('"receive /webhooks/seller"');
    expect(got.get('/v1/metrics')).toContain('"webhook.deliveries"');
    expect(got.get('/v1/metrics')).toContain(
      '{"key":"service.name","value":{"stringValue":"proto-webhooks"}}',
    );
    expect(got.get('/v1/logs')).toBeUndefined();
  });
});

describe('a package that is not installed is one line with the command that installs it, and 2', () => {
  /** As installed somewhere with nothing but what it depends on. */
  function alone(): string {
    const at = folder();
    cpSync(join(ROOT, 'dist'), join(at.path, 'dist'), { recursive: true });
    cpSync(join(ROOT, 'package.json'), join(at.path, 'package.json'));
    mkdirSync(join(at.path, 'node_modules'));
    for (const name of ['commander', '@noble', 'structured-headers', 'tldts', 'tldts-core', 'yaml', 'zod'])
      symlinkSync(join(ROOT, 'node_modules', name), join(at.path, 'node_modules', name));
    return join(at.path, 'dist/cli.js');
  }

  const PACKAGES = [
    ['pg', 'store: { postgres: { url: { env: URL } } }\n', 'postgres://127.0.0.1:1/x', 'pg'],
    ['mysql2', 'store: { mysql: { url: { env: URL } } }\n', 'mysql://127.0.0.1:1/x', 'mysql2'],
    ['ioredis', 'store: { redis: { url: { env: URL } } }\n', 'redis://127.0.0.1:1', 'ioredis'],
    [
      'for /metrics',
      '',
      '',
      '@opentelemetry/api @opentelemetry/sdk-metrics @opentelemetry/exporter-prometheus',
    ],
    ['for OTLP', '', '', '@opentelemetry/api @opentelemetry/sdk-node'],
  ] as const;

  it.each(PACKAGES)('%s', async (name, more, url, packages) => {
    const at = await world();
    const yaml =
      name === 'for /metrics' ? at.yaml().replace('health: {', 'health: { metrics: true,') : at.yaml(more);
    const env = name === 'for OTLP' ? { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:1' } : { URL: url };
    const served = start(['--config', at.folder.file('webhooks.yaml', yaml)], {
      cwd: at.folder.path,
      env,
      cli: alone(),
    });
    const { code, stdout, stderr } = await served.ended;
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
    expect(stderr).toMatch(/^proto-webhooks: [^\n]*\n$/);
    expect(stderr).toContain(`Run npm install ${packages}, in the folder of the configuration`);
  });
});

describe('serve --check and --migrate', () => {
  const env = { SINK_SECRET: SECRET };

  it('each mistake is a line, and 2', async () => {
    const at = await world();
    const cwd = at.folder.path;
    const file = at.folder.file(
      'webhooks.yaml',
      at.yaml('wrong: 1\nlisten: {}\n').replace(/^listen.*\n/m, 'hostCheck: 5\n'),
    );
    for (const args of [[], ['--check'], ['--migrate']]) {
      const { code, stdout, stderr } = await cli(['serve', '--config', file, ...args], { cwd, env });
      expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
      expect(stderr.trimEnd().split('\n')).toEqual([
        expect.stringMatching(/^proto-webhooks: webhooks\.yaml:6:1 hostCheck: /) as string,
        expect.stringMatching(/^proto-webhooks: webhooks\.yaml:9:1 wrong: is not known\./) as string,
      ]);
    }
    const { stdout } = await cli(['serve', '--config', file, '--check', '--json'], { cwd, env });
    expect(JSON.parse(stdout)).toMatchObject({ error: { code: 'config_error' } });
  });

  it('store and sink are tried, and nothing is made', async () => {
    const at = await world();
    const args = ['serve', '--config', at.folder.file('webhooks.yaml', at.yaml()), '--check'];
    const good = await cli(args, { cwd: at.folder.path, env });
    expect(good).toMatchObject({ code: 0, stderr: '' });
    expect(good.stdout).toMatch(
      /^ok {4}configuration: webhooks\.yaml has no mistake\nok {4}store: \S+ is not there yet: the first start makes it\nok {4}sink: http:\/\/127\.0\.0\.1:\d+\/events is reached; whether it takes events, the first one shows\n$/,
    );
    expect(existsSync(join(at.folder.path, 'data'))).toBe(false);
    expect(at.sink.posted).toEqual([]);
  });

  it('what cannot be reached is told by itself, and 1', async () => {
    const at = await world();
    at.folder.file('text.db', 'no database, but long enough to have a header\n'.repeat(100));
    const yaml = at.yaml('store: { sqlite: text.db }\n').replace(at.sink.url, 'http://127.0.0.1:1/events');
    const args = ['serve', '--config', at.folder.file('webhooks.yaml', yaml), '--check', '--json'];
    const { code, stdout } = await cli(args, { cwd: at.folder.path, env });
    expect(code).toBe(1);
    expect(JSON.parse(stdout)).toMatchObject({
      ok: false,
      parts: [
        { part: 'configuration', ok: true },
        { part: 'store', ok: false, text: expect.stringContaining('not a database') as string },
        { part: 'sink', ok: false, text: expect.stringContaining('ECONNREFUSED') as string },
      ],
    });
  });

  it('packages of telemetry are looked for, and nothing is sent', async () => {
    const at = await world();
    const args = ['serve', '--config', at.folder.file('webhooks.yaml', at.yaml()), '--check'];
    const sent = { ...env, OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:1' };
    // Packages are found from this repository.
    expect((await cli(args, { cwd: at.folder.path, env: sent })).stdout).toMatch(
      /\n(ok {4}telemetry: installed: @opentelemetry\/api, @opentelemetry\/sdk-node|FAIL {2}telemetry: .*npm install @opentelemetry\/)/,
    );
  });

  it('a module is asked for its send', async () => {
    const at = await world();
    at.folder.file('good.mjs', 'export async function send() {}');
    at.folder.file('bad.mjs', 'export const other = 1;');
    const checked = async (module: string): Promise<string> => {
      const yaml = at.yaml().replace(/sink: .*/, `sink: ./${module}`);
      const file = at.folder.file('webhooks.yaml', yaml);
      return (await cli(['serve', '--config', file, '--check'], { cwd: at.folder.path, env })).stdout;
    };
    expect(await checked('good.mjs')).toContain('ok    sink: ./good.mjs is there');
    expect(await checked('bad.mjs')).toContain('FAIL  sink: ./bad.mjs: exports no function send.');
  });

  it('SQLite has nothing to migrate', async () => {
    const at = await world();
    const args = ['serve', '--config', at.folder.file('webhooks.yaml', at.yaml()), '--migrate'];
    expect(await cli(args, { cwd: at.folder.path, env })).toEqual({
      code: 0,
      stdout: 'nothing to do: the sqlite store makes what it needs by itself\n',
      stderr: '',
    });
    expect(existsSync(join(at.folder.path, 'data'))).toBe(false);
  });

  it('--check and --migrate are not for one run', async () => {
    const { code, stderr } = await cli(['serve', '--config', 'x.yaml', '--check', '--migrate']);
    expect({ code, stderr }).toEqual({
      code: 2,
      stderr: 'proto-webhooks: --check and --migrate: write one of them.\n',
    });
  });
});
