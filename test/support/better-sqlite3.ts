import { execFile } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { delimiter, dirname, join, sep } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

const run = promisify(execFile);

/** The last one for Node 20; 13 needs 22. */
const VERSION = '12.9.0';

const CACHE = fileURLToPath(new URL('../../node_modules/.cache/proto-webhooks', import.meta.url));

/** A Node other than the tests' own where the machine has one, and where better-sqlite3 is installed for it. */
export interface BetterSqlite3 {
  readonly node: string;
  /** e.g. `v20.20.2`. */
  readonly nodeVersion: string;
  /** Its node_modules has better-sqlite3. */
  readonly folder: string;
}

interface SystemNode {
  readonly node: string;
  readonly version: string;
  /** NODE_MODULE_VERSION: what a compiled module fits. */
  readonly abi: string;
}

/** What the package runs on: `engines`. */
const OLDEST = [20, 19] as const;

/** Folders of PATH without those of node_modules, which npm scripts put first. */
function ownPath(): string[] {
  const folders = (process.env['PATH'] ?? '').split(delimiter);
  return folders.filter((folder) => folder !== '' && !folder.includes(`node_modules${sep}`));
}

async function versionOf(node: string): Promise<SystemNode | undefined> {
  const ask = 'process.stdout.write(process.version + " " + process.versions.modules)';
  // A shim of a version manager may be there without a Node behind it.
  const said = await run(node, ['-e', ask]).catch(() => undefined);
  const [version = '', abi = ''] = said?.stdout.split(' ') ?? [];
  const [major = 0, minor = 0] = version.slice(1).split('.').map(Number);
  const fits = major > OLDEST[0] || (major === OLDEST[0] && minor >= OLDEST[1]);
  return fits ? { node, version, abi } : undefined;
}

async function systemNode(): Promise<SystemNode> {
  for (const folder of ownPath()) {
    const node = join(folder, 'node');
    const found = existsSync(node) ? await versionOf(node) : undefined;
    if (found) return found;
  }
  return { node: process.execPath, version: process.version, abi: process.versions.modules };
}

/** As a shell outside npm has it: this Node first, so that npm and node-gyp run under it and compile for it. */
function environment({ node }: SystemNode): NodeJS.ProcessEnv {
  const {
    NODE: _node,
    npm_execpath: _npm,
    npm_node_execpath: _exec,
    NODE_OPTIONS: _options,
    ...env
  } = process.env;
  return { ...env, PATH: [dirname(node), ...ownPath()].join(delimiter) };
}

async function loads({ node }: SystemNode, folder: string): Promise<boolean> {
  const script = "new (require('better-sqlite3'))(':memory:').close()";
  return run(node, ['-e', script], { cwd: folder }).then(
    () => true,
    () => false,
  );
}

/** Where it is compiled: what the driver does is tested, not how fast, and this takes a third of the time. */
const UNOPTIMISED = { CFLAGS: '-O0', CXXFLAGS: '-O0', JOBS: 'max' } as const;

/** @throws Error with what npm said and what to install. */
async function install(system: SystemNode, folder: string): Promise<void> {
  const manifest = { private: true, allowScripts: { 'better-sqlite3': true } };
  writeFileSync(join(folder, 'package.json'), JSON.stringify(manifest));
  const args = ['install', `better-sqlite3@${VERSION}`, '--save-exact', '--no-audit', '--no-fund'];
  const env = { ...environment(system), ...UNOPTIMISED };
  const said = await run('npm', args, { cwd: folder, env }).catch((error: unknown) => error);
  if (await loads(system, folder)) return;
  const { stdout = '', stderr = '' } = said as { readonly stdout?: string; readonly stderr?: string };
  throw new Error(
    `better-sqlite3 ${VERSION} could not be installed for Node ${system.version}. Where its prebuilt binary cannot be ` +
      'fetched it is compiled, which needs make, a C++ compiler and python3 (Debian: apt-get install build-essential ' +
      `python3) and Node's headers (npm config set nodedir, where they are not fetched).\n${stdout}\n${stderr}`,
  );
}

/**
 * better-sqlite3 under the system's Node, installed once into the cache of node_modules: where its prebuilt binary
 * cannot be fetched that is half a minute of compiling.
 */
export async function betterSqlite3(): Promise<BetterSqlite3> {
  const system = await systemNode();
  const name = `better-sqlite3-${VERSION}-${process.platform}-${process.arch}-${system.abi}`;
  const folder = join(CACHE, name);
  if (!(await loads(system, folder))) await installOnce(system, folder);
  return { node: system.node, nodeVersion: system.version, folder };
}

/** In a folder of its own first: several runs may begin at once, and one may be ended in the middle. */
async function installOnce(system: SystemNode, folder: string): Promise<void> {
  mkdirSync(CACHE, { recursive: true });
  const making = mkdtempSync(join(CACHE, 'making-'));
  try {
    await install(system, making);
    if (existsSync(folder) && !(await loads(system, folder)))
      rmSync(folder, { recursive: true, force: true });
    renameSync(making, folder);
  } catch (error) {
    rmSync(making, { recursive: true, force: true });
    // Another run was first.
    if (!(await loads(system, folder))) throw error;
  }
}
