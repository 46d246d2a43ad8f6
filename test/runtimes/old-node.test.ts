import { execFile } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join, sep } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { inThisForm } from '../reliability/form.ts';
import { fetchRuntimes, npmEnv, OLD_NODE, RUNTIMES } from './runtimes.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));
const manifest = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as {
  readonly engines: { readonly node: string };
  readonly scripts: Readonly<Record<string, string>>;
};

let old: string;
beforeAll(async () => {
  old = (await fetchRuntimes([OLD_NODE]))(OLD_NODE);
});

interface Ended {
  readonly code: unknown;
  readonly stdout: string;
  readonly stderr: string;
}

function run(command: string, args: readonly string[], options: object): Promise<Ended> {
  return new Promise((resolve) => {
    execFile(command, [...args], options, (error, stdout, stderr) =>
      resolve({ code: error?.code ?? 0, stdout, stderr }),
    );
  });
}

/** Without what the Node of this run is told. */
function environment(): NodeJS.ProcessEnv {
  const { NODE_OPTIONS: _options, NODE: _node, npm_node_execpath: _path, ...env } = npmEnv();
  return env;
}

const onOldNode = (...args: string[]): Promise<Ended> => run(old, args, { cwd: root, env: environment() });

it('`engines` has the oldest Node that the suite of all runtimes is run on', () => {
  const [oldest] = RUNTIMES.filter(({ name }) => name.startsWith('Node '));
  expect(`${manifest.engines.node}.0`).toBe(`>=${oldest?.version}`);
});

describe(`the package on Node ${OLD_NODE.version}`, () => {
  it.each([
    ['import', "await import('proto-webhooks/sqlite')"],
    ['require', "require('proto-webhooks/sqlite')"],
  ])('%s of ./sqlite is a ConfigError that names the Node to use', async (_how, load) => {
    const tell = '({ name, code, message }) => console.log(JSON.stringify({ name, code, message }))';
    const script = `(async () => { ${load}; })().catch(${tell})`;
    const { code, stdout } = await onOldNode('-e', script);
    expect(code).toBe(0);
    expect(JSON.parse(stdout)).toEqual({
      name: 'ConfigError',
      code: 'config_error',
      message: expect.stringContaining('Use Node >= 22.13, or ') as string,
    });
  });

  it.each([
    [
      'createReceiver',
      "{ publicUrl: 'https://buyer.example/hook', senders: [{ agentUrl: 'https://seller.example/mcp' }], store: memoryStore(), handlers: { other: () => undefined } }",
    ],
    [
      'createVerifier',
      "{ publicUrl: 'https://buyer.example/hook', senders: [{ agentUrl: 'https://seller.example/mcp' }] }",
    ],
  ])('%s is a ConfigError that names the Node to use', async (name, options) => {
    const load = `const { ${name} } = await import('proto-webhooks'); const { memoryStore } = await import('proto-webhooks/memory');`;
    const tell = '({ name, message }) => console.log(JSON.stringify({ name, message }))';
    const { code, stdout } = await onOldNode(
      '-e',
      `(async () => { ${load} ${name}(${options}); })().catch(${tell})`,
    );
    expect(code).toBe(0);
    expect(JSON.parse(stdout)).toEqual({
      name: 'ConfigError',
      message: expect.stringContaining('Use Node >= 22.13, or ') as string,
    });
  });

  const LINE = `this is Node ${OLD_NODE.version}. Expected Node ${manifest.engines.node.replace('>=', '>= ')}.`;

  it.each([
    [[]],
    [['--version']],
    [['inbox', 'list', '--sqlite', 'webhooks.db']],
    [['explain', 'delivery.http']],
  ])('the command line says one line and ends with 2: %j', async (args) => {
    expect(await onOldNode('dist/cli.js', ...args)).toEqual({
      code: 2,
      stdout: '',
      stderr: `proto-webhooks: ${LINE}\n`,
    });
  });

  it('the command line says it in JSON too', async () => {
    const { code, stdout, stderr } = await onOldNode('dist/cli.js', 'vectors', 'run', '--json');
    expect({ code, stderr }).toEqual({ code: 2, stderr: `proto-webhooks: ${LINE}\n` });
    expect(JSON.parse(stdout)).toEqual({ error: { code: 'usage', message: LINE } });
  });
});

/** Those that people start: npm runs `pre…` by itself. */
const SCRIPTS = Object.keys(manifest.scripts).filter((name) => !name.startsWith('pre'));

describe(`npm scripts of the repository on Node ${OLD_NODE.version}`, () => {
  // What a script needs before it looks at the Node is not here, so it would fail otherwise.
  const folder = mkdtempSync(join(tmpdir(), 'proto-webhooks-scripts-'));
  afterAll(() => rmSync(folder, { recursive: true, force: true }));
  beforeAll(() => {
    for (const file of ['package.json', '.npmrc', 'scripts/needs-node.js']) {
      mkdirSync(dirname(join(folder, file)), { recursive: true });
      cpSync(join(root, file), join(folder, file));
    }
  });

  function npmRun(script: string): Promise<Ended> {
    const path = (process.env['PATH'] ?? '').split(delimiter);
    const own = path.filter((entry) => !entry.includes(`node_modules${sep}`));
    const env = { ...environment(), PATH: [dirname(old), ...own].join(delimiter) };
    return run('npm', ['run', '--silent', script], { cwd: folder, env });
  }

  const said = (command: string): Ended => ({
    code: 1,
    stdout: '',
    stderr: `This is Node ${OLD_NODE.version}; the repository's scripts need Node >= 22.18. To install one for them run: ${command}\n`,
  });

  it.each(inThisForm(SCRIPTS, (name) => /^(test|demo)$/.test(name)))(
    '%s: says in one line what to run',
    async (script) => {
      expect(await npmRun(script)).toEqual(said('npm ci'));
    },
  );

  it('vitest by itself says it too, before it runs a file', async () => {
    expect(await onOldNode('node_modules/vitest/vitest.mjs', 'run', 'test/config')).toEqual(
      said('npm rebuild node --ignore-scripts=false'),
    );
  });

  it('after an installation without install scripts that is another command', async () => {
    const installed = join(folder, 'node_modules/node');
    mkdirSync(installed, { recursive: true });
    writeFileSync(join(installed, 'package.json'), '{}');
    expect(await npmRun('build')).toEqual(said('npm rebuild node --ignore-scripts=false'));
    rmSync(installed, { recursive: true });
  });
});
