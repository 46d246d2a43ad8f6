import { spawn } from 'node:child_process';
import { EventEmitter, once } from 'node:events';
import { createServer } from 'node:http';
import { PassThrough } from 'node:stream';
import { describe, expect, it, onTestFinished } from 'vitest';
import { type CliProcess, main } from '../../src/cli/for-tests.ts';
import { folder } from '../dev/kit.ts';
import { inThisForm } from '../reliability/form.ts';
import { freePort } from '../support/free-port.ts';
import { CLI, cli } from './run-cli.ts';

interface Running {
  readonly stdout: () => string;
  readonly stderr: () => string;
  readonly signal: (name: 'SIGINT' | 'SIGTERM') => void;
  readonly ended: Promise<number>;
}

/** In this process. */
function here(args: readonly string[], cwd: string): Running {
  const signals = new EventEmitter();
  const texts = { stdout: '', stderr: '' };
  const stream = (name: keyof typeof texts): PassThrough =>
    new PassThrough().setEncoding('utf8').on('data', (chunk: string) => (texts[name] += chunk));
  const process = Object.assign(signals, {
    env: {},
    cwd: () => cwd,
    stdin: new PassThrough(),
    stdout: stream('stdout'),
    stderr: stream('stderr'),
    exit: () => undefined,
  });
  const ended = main(['dev', ...args], process as unknown as CliProcess);
  onTestFinished(async () => {
    signals.emit('SIGTERM');
    await ended;
    expect(signals.listenerCount('SIGINT')).toBe(0);
  });
  return {
    stdout: () => texts.stdout,
    stderr: () => texts.stderr,
    signal: (name) => void signals.emit(name),
    ended,
  };
}

/** The built command line, as a process of its own. */
function apart(args: readonly string[], cwd: string): Running {
  const child = spawn(process.execPath, ['--no-warnings', CLI, 'dev', ...args], {
    cwd,
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  onTestFinished(() => void child.kill('SIGKILL'));
  const texts = { stdout: '', stderr: '' };
  child.stdout.setEncoding('utf8').on('data', (chunk: string) => (texts.stdout += chunk));
  child.stderr.setEncoding('utf8').on('data', (chunk: string) => (texts.stderr += chunk));
  return {
    stdout: () => texts.stdout,
    stderr: () => texts.stderr,
    signal: (name) => void child.kill(name),
    ended: once(child, 'close').then(([code]) => code as number),
  };
}

const WAYS = inThisForm(
  [
    ['in this process', here],
    ['as a process of its own', apart],
  ] as const,
  (_, index) => index === 0,
);

const LONG = { timeout: 30_000 };

describe.each(WAYS)('dev, %s', (_, start) => {
  it('says where the page is and what to paste, tells that the receiver goes and comes, and ends with 0', async () => {
    const [cwd, port, at] = [folder(), await freePort(), await freePort()];
    const forward = `http://127.0.0.1:${at}/webhooks/seller`;
    const dev = start(['--port', String(port), '--forward', forward], cwd);
    await expect.poll(dev.stdout, LONG).toContain(`The receiver at ${forward} is away (ECONNREFUSED)`);
    const [, url, token] = /^Page {6}(http:\/\/127\.0\.0\.1:\d+\/)#([\w-]{43})$/m.exec(dev.stdout()) ?? [];
    expect(url).toBe(`http://127.0.0.1:${port}/`);
    expect(dev.stdout()).toContain(
      `senders: [{ agentUrl: 'http://127.0.0.1:${port}/proto-webhooks-dev/signature' }], allowLoopback: true,`,
    );
    const answer = await fetch(`${url}api/state`, { headers: { Authorization: `Bearer ${token}` } });
    expect(await answer.json()).toMatchObject({ port, forward, version: expect.stringMatching(/^\d+\./) });
    const server = createServer().listen(at, '127.0.0.1');
    await expect.poll(dev.stdout, LONG).toContain(`The receiver at ${forward} is there.`);
    server.close();
    server.closeAllConnections();
    await expect.poll(() => dev.stdout().split('is away').length, LONG).toBe(3);
    const streaming = await fetch(`${url}api/events`, { headers: { Authorization: `Bearer ${token}` } });
    expect(streaming.status).toBe(200);
    streaming.body?.cancel().catch(() => undefined);
    dev.signal('SIGINT');
    expect(await dev.ended).toBe(0);
    expect(dev.stderr()).toBe('');
  });

  it('with --json prints one JSON value, and the rest on standard error', async () => {
    const [cwd, port] = [folder(), await freePort()];
    const dev = start(['--json', '--port', String(port), '--forward', 'http://127.0.0.1:9/webhooks/*'], cwd);
    await expect.poll(dev.stderr, LONG).toContain('is away');
    const said = JSON.parse(dev.stdout()) as { url: string; token: string; sellers: { line: string }[] };
    expect(said).toMatchObject({ port, url: `http://127.0.0.1:${port}/#${said.token}` });
    expect(
      said.sellers.map(({ line }) => line.startsWith("senders: { '/webhooks/signature': [{ agentUrl: 'http")),
    ).toEqual([true, true, true]);
    dev.signal('SIGTERM');
    expect(await dev.ended).toBe(0);
  });

  it('a port that is taken is one line and 2', async () => {
    const server = createServer().listen(0, '127.0.0.1');
    await once(server, 'listening');
    onTestFinished(() => void server.close());
    const { port } = server.address() as { port: number };
    const dev = start(['--port', String(port)], folder());
    expect(await dev.ended).toBe(2);
    expect(dev.stderr()).toMatch(
      new RegExp(`^proto-webhooks: --port: ${port}: another process listens there[^\\n]*--port[^\\n]*\\n$`),
    );
  });
});

describe('what dev cannot do as it is given', () => {
  it.each([
    ['--forward', 'nowhere'],
    ['--forward', 'ftp://127.0.0.1/'],
    ['--forward', 'http://127.0.0.1:3000/*/x'],
    ['--forward', 'http://127.0.0.1:3000/x#y'],
    ['--forward', 'http://127.0.0.1:3000/*'],
    ['--public-url', 'https://buyer.example/*'],
    ['--port', '65536'],
    ['--port', '0'],
    ['--protocol', 'A B'],
  ])('%s %s is one line and 2, and nothing is made', async (flag, value) => {
    const more = value === 'http://127.0.0.1:3000/*' ? ['--public-url', 'https://buyer.example/hook'] : [];
    const { code, stdout, stderr } = await cli(['dev', flag, value, ...more], { cwd: folder() });
    expect([code, stdout]).toEqual([2, '']);
    expect(stderr).toMatch(/^proto-webhooks: [^\n]+\n$/);
  });

  it('the help has its flags', async () => {
    const { code, stdout } = await cli(['dev', '--help']);
    expect(code).toBe(0);
    for (const flag of ['--forward', '--public-url', '--port', '--dir', '--refused', '--protocol', '--json'])
      expect(stdout).toContain(flag);
  });
});
