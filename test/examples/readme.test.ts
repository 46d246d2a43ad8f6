import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { connect } from 'node:net';
import { mkdir, mkdtemp, readFile, symlink } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import { openWorkshop, type Project, type Workshop } from '../consumers/project.ts';
import { freePort } from '../support/free-port.ts';
import { namedSeller } from '../support/named-seller.ts';
import { INSTALL_MS } from '../support/packed.ts';

const run = promisify(execFile);
const root = fileURLToPath(new URL('../..', import.meta.url));

/** A page's fenced blocks of JavaScript, in order. */
function blocks(page: string): readonly string[] {
  return [...page.matchAll(/^```js\n([^]*?)^```$/gm)].map(([, code = '']) => code);
}

function blockWith(page: string, text: string): string {
  const found = blocks(page).find((code) => code.includes(text));
  if (found === undefined) throw new Error(`no block has ${text}`);
  return found;
}

const URL_GIVEN = 'https://buyer.example/webhooks/seller';

/** A program that listens on `PORT` until SIGTERM ends it. */
interface Server extends AsyncDisposable {
  readonly origin: string;
  readonly printed: () => string;
  /** SIGTERM. @returns its exit code, null where the signal ended it. */
  readonly stop: () => Promise<number | null>;
}

/** Runs it in a folder of its own, where its database is. */
async function serve({ folder }: Project, file: string, env: Record<string, string> = {}): Promise<Server> {
  const port = String(await freePort());
  const cwd = await mkdtemp(join(folder, 'run-'));
  const program = join(folder, file);
  const child = spawn(process.execPath, [program], { cwd, env: { ...process.env, ...env, PORT: port } });
  let text = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (chunk: string) => {
      text += chunk;
    });
  }
  const exited = once(child, 'exit') as Promise<[number | null]>;
  while (!text.includes(`listening on ${port}`)) {
    if (child.exitCode !== null || child.signalCode !== null) throw new Error(`${file} ended:\n${text}`);
    await sleep(20);
  }
  const stop = async (): Promise<number | null> => {
    await Promise.all([
      holding(Number(port), ''),
      holding(Number(port), 'POST /webhooks/seller HTTP/1.1\r\nHost: a\r\n'),
    ]);
    if (child.exitCode === null && child.signalCode === null) child.kill('SIGTERM');
    return (await exited)[0];
  };
  return {
    origin: `http://127.0.0.1:${port}`,
    printed: () => text,
    stop,
    [Symbol.asyncDispose]: async () => {
      child.kill('SIGKILL');
      await exited;
    },
  };
}

/** A connection that has sent no whole request, and stays: the program has to end all the same. */
async function holding(port: number, sent: string): Promise<void> {
  const socket = connect(port, '127.0.0.1').on('error', () => {});
  await once(socket, 'connect');
  if (sent !== '') await new Promise<void>((resolve) => socket.write(sent, () => resolve()));
}

const post = (url: string): Promise<Response> =>
  fetch(url, { method: 'POST', headers: { 'content-type': 'application/json' }, body: '{}' });

const UNSIGNED = 'Signature error="webhook_signature_header_malformed"';

describe('README: its programs run as written, in an empty project on the packed package', () => {
  let workshop: Workshop;
  let project: Project;
  let folder = '';
  let readme = '';

  beforeAll(async () => {
    readme = await readFile(join(root, 'README.md'), 'utf8');
    workshop = await openWorkshop(inject('shared'));
    project = await workshop.project('readme', {});
    ({ folder } = project);
  }, INSTALL_MS);
  afterAll(() => workshop[Symbol.asyncDispose]());

  it('is 320 lines at most, and these two blocks are its first', () => {
    expect(readme.split('\n').length).toBeLessThanOrEqual(320);
    const [first = '', second = ''] = blocks(readme);
    expect(first).toContain('createFakeSeller');
    expect(second).toContain('await receiver.ready()');
  });

  it('the first: a receiver beside a fake seller prints what arrived', async () => {
    await project.write('first.mjs', String(blocks(readme)[0]));
    const env = { ...process.env, PORT: String(await freePort()) };
    const { stdout } = await run(process.execPath, ['first.mjs'], { cwd: folder, env });
    const lines = stdout.trim().split('\n');
    expect(lines[0]).toMatch(/^arrived: task completed \{/);
    expect(lines.filter((line) => /^(arrived: delivery|\d{3})/.test(line))).toEqual([
      '200',
      '200',
      'arrived: delivery-report scheduled',
      '200',
      '401 webhook_signature_digest_mismatch',
    ]);
  });

  it('the second: the receiver for production says that it listens, takes what is signed, refuses what is not, and ends in order', async () => {
    await project.write('server.mjs', String(blocks(readme)[1]));
    await using named = await namedSeller(folder);
    await using server = await serve(project, 'server.mjs', named.env);
    const { seller } = named;
    const to = `${server.origin}/webhooks/seller`;
    const { last } = await seller.deliver(seller.payloads.tool('completed'), { url: URL_GIVEN, to });
    expect(last.status, server.printed()).toBe(200);
    expect(server.printed()).toContain('done');
    const answers = await Promise.all(
      ['seller', 'other'].map((name) => post(`${server.origin}/webhooks/${name}`)),
    );
    expect(answers.map(({ status, headers }) => [status, headers.get('www-authenticate')])).toEqual([
      [401, UNSIGNED],
      [401, UNSIGNED],
    ]);
    expect((await post(`${server.origin}/other`)).status).toBe(404);
    expect(await server.stop(), server.printed()).toBe(0);
  });

  it.each([
    ['express', 'proto'],
    ['fastify', 'adcp'],
    ['hono', undefined],
  ])('%s: takes what a seller signs that writes %s, and ends in order', async (name, protocol) => {
    await using named = await namedSeller(folder, protocol);
    const { seller } = named;
    for (const dependency of ['express', 'fastify', 'hono', '@hono/node-server']) await link(dependency);
    // As the page says: up to `ready()`.
    await project.write('receiver.mjs', String(blocks(readme)[1]).split('\nconst { PORT')[0] ?? '');
    await project.write(`${name}.mjs`, blockWith(readme, `proto-webhooks/${name}`));
    await using server = await serve(project, `${name}.mjs`, named.env);
    const to = `${server.origin}/webhooks/seller`;
    const { last } = await seller.deliver(seller.payloads.tool('completed'), { url: URL_GIVEN, to });
    expect(last.status, server.printed()).toBe(200);
    expect((await post(to)).headers.get('www-authenticate')).toBe(UNSIGNED);
    expect(await server.stop(), server.printed()).toBe(0);
    expect(server.printed()).toContain('done');
  });

  it('docs/quickstart.md: its program', async () => {
    const page = await readFile(join(root, 'docs/quickstart.md'), 'utf8');
    await project.write('quickstart.mjs', blockWith(page, 'createFakeSeller'));
    const env = { ...process.env, PORT: String(await freePort()) };
    const { stdout } = await run(process.execPath, ['quickstart.mjs'], { cwd: folder, env });
    expect(stdout.trim().split('\n')).toEqual([
      'task tool completed',
      '200',
      '200',
      'task agent working',
      '200',
      'delivery-report tool completed',
      '200',
      '401 webhook_signature_digest_mismatch',
    ]);
  });

  it('docs/moving-a-url.md: an event that comes to both hosts is one event', async () => {
    const page = await readFile(join(root, 'docs/moving-a-url.md'), 'utf8');
    await using named = await namedSeller(folder);
    const { seller } = named;
    await project.write('moving.mjs', blockWith(page, 'new.buyer.example'));
    await using server = await serve(project, 'moving.mjs', named.env);
    const to = `${server.origin}/webhooks/seller`;
    const event = seller.payloads.tool('completed');
    for (const host of ['old', 'new']) {
      const url = `https://${host}.buyer.example/webhooks/seller`;
      expect((await seller.deliver(event, { url, to })).last.status, server.printed()).toBe(200);
    }
    const answer = await post(to);
    expect([answer.status, answer.headers.get('retry-after')]).toEqual([503, '5']);
    expect(await server.stop(), server.printed()).toBe(0);
    expect(server.printed().match(/^task completed$/gm)).toHaveLength(1);
    const heard = server.printed().match(/^last heard at (\S+): (\S+) \d{4}-\d\d-\d\dT/gm);
    expect(heard?.map((line) => line.split(' ').slice(3, 5).join(' '))).toEqual([
      'old.buyer.example: https://seller.example/mcp',
      'new.buyer.example: https://seller.example/mcp',
    ]);
  });

  it('docs/many-sellers.md: a sender is taken as soon as its row is there, and while the database is away', async () => {
    const page = await readFile(join(root, 'docs/many-sellers.md'), 'utf8');
    await project.write('many.mjs', blockWith(page, 'receiverFor'));
    const driver = [
      "import { createFakeSeller } from 'proto-webhooks/testing';",
      "import { receiverFor } from './many.mjs';",
      "const url = 'https://buyer.example/webhooks/one';",
      'const seller = await createFakeSeller({ url });',
      'let row;',
      'let away = false;',
      'const lookUp = async () => {',
      "  if (away) throw new Error('away');",
      '  return row;',
      '};',
      'const quiet = { debug() {}, info() {}, warn() {}, error() {} };',
      'const receiver = receiverFor(lookUp, { allowLoopback: true, logger: quiet });',
      'const deliver = async () => {',
      "  const { body, headers } = await seller.sign(seller.payloads.tool('working'));",
      "  const { response } = await receiver.verifyAndDispatch(body, headers, { url: '/webhooks/one' });",
      '  console.log(response.status);',
      '};',
      'away = true;',
      'await deliver();',
      'away = false;',
      'await deliver();',
      'row = { agent_url: seller.agentUrl };',
      'await deliver();',
      'away = true;',
      'const real = Date.now;',
      'Date.now = () => real() + 31_000;',
      'await deliver();',
      'Date.now = real;',
      'await receiver.stop();',
      'await seller.close();',
    ];
    await project.write('many-run.mjs', driver.join('\n'));
    const cwd = await mkdtemp(join(folder, 'run-'));
    const { stdout } = await run(process.execPath, [join(folder, 'many-run.mjs')], { cwd });
    expect(stdout.match(/^\d{3}$/gm)).toEqual(['503', '401', '200', '200']);
  });

  async function link(dependency: string): Promise<void> {
    const at = join(folder, 'node_modules', dependency);
    await mkdir(join(at, '..'), { recursive: true });
    await symlink(join(root, 'node_modules', dependency), at).catch((error: NodeJS.ErrnoException) => {
      if (error.code !== 'EEXIST') throw error;
    });
  }
});
