import { execFile } from 'node:child_process';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { onceARun } from './once-a-run.ts';
import { packed } from './packed.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));

/** What npm and vitest tell their scripts about this repository; what is installed is somebody else's project. */
const OURS = /^(npm_(package|lifecycle)_|npm_config_(local_)?prefix$|VITEST|NODE_ENV$)/;

/** The environment of somebody else's project. */
export function outside(): NodeJS.ProcessEnv {
  const theirs = Object.entries(process.env).filter(([name]) => !OURS.test(name));
  return { ...Object.fromEntries(theirs), NEXT_TELEMETRY_DISABLED: '1' };
}

/** A `package.json`, as far as tests read it. */
export interface Manifest {
  readonly scripts: Readonly<Record<string, string>>;
  readonly dependencies?: Readonly<Record<string, string>>;
  readonly devDependencies?: Readonly<Record<string, string>>;
}

/** Arguments of npm. */
export const INSTALL: readonly string[] = ['install', '--prefer-offline', '--no-audit', '--no-fund'];

export const manifestIn = async (folder: string): Promise<Manifest> =>
  JSON.parse(await readFile(join(folder, 'package.json'), 'utf8')) as Manifest;

/** Examples that share an installation. */
export const SHARED = [
  'bullmq',
  'express',
  'fastify',
  'hono',
  'media-buy',
  'otel',
  'pg-boss',
  'registry',
  'serve',
] as const;

/**
 * Installs the packed package and what the shared examples ask for, once in a run, for the projects in its folder: copies of
 * examples, and in `npm test` users' projects (`test/consumers/project.ts`). The long form installs each example by itself. One
 * whose `package.json` lacks what its code imports is found by `test/examples/manifests.test.ts`.
 * @param shared `inject('shared')`.
 * @returns the folder.
 */
export function sharedInstallation(shared: string): Promise<string> {
  return onceARun(shared, 'examples', async () => {
    const folder = join(shared, 'examples-installed');
    await mkdir(folder);
    const manifests = await Promise.all(SHARED.map((name) => manifestIn(join(root, 'examples', name))));
    const dependencies = Object.assign(
      {},
      ...manifests.flatMap(({ dependencies, devDependencies }) => [dependencies, devDependencies]),
    ) as Record<string, string>;
    await writeFile(join(folder, 'package.json'), JSON.stringify({ private: true, dependencies }));
    const args = [...INSTALL, await packed(shared)];
    await promisify(execFile)('npm', args, { cwd: folder, env: outside() });
    return folder;
  });
}
