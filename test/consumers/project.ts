import { execFile } from 'node:child_process';
import { copyFile, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { FORM } from '../reliability/form.ts';
import { npmEnv } from '../runtimes/runtimes.ts';
import { packed } from '../support/packed.ts';
import { sharedInstallation } from '../support/shared-installation.ts';

const run = promisify(execFile);

/** A folder in which projects of the package's users are made. */
export interface Workshop extends AsyncDisposable {
  /**
   * Makes a project in which the packed package is installed as users install it; in `npm test` all have one installation.
   * @param manifest beside the dependency on the package.
   */
  readonly project: (name: string, manifest: object, dependencies?: readonly string[]) => Promise<Project>;
}

/** A user's project. */
export interface Project {
  readonly folder: string;
  readonly write: (file: string, text: string) => Promise<void>;
  /** Copies a fixture into it. */
  readonly add: (fixture: string, file?: string) => Promise<void>;
  /** Runs a program in it. @returns what it writes. Rejects with both its outputs where it fails. */
  readonly run: (program: string, ...args: readonly string[]) => Promise<string>;
}

async function checked(program: string, args: readonly string[], cwd: string): Promise<string> {
  try {
    return (await run(program, args, { cwd, env: npmEnv() })).stdout;
  } catch (error) {
    const { stdout = '', stderr = '' } = error as { stdout?: string; stderr?: string };
    throw new Error(`${program} ${args.join(' ')}\n${stdout}\n${stderr}`, { cause: error });
  }
}

function projectIn(folder: string): Project {
  return {
    folder,
    write: (file, text) => writeFile(join(folder, file), text),
    add: (fixture, file = fixture) =>
      copyFile(fileURLToPath(new URL(`fixtures/${fixture}`, import.meta.url)), join(folder, file)),
    run: (program, ...args) => checked(program, args, folder),
  };
}

/** @param shared `inject('shared')`. */
export async function openWorkshop(shared: string): Promise<Workshop> {
  const isShared = FORM === 'short';
  const above = isShared ? await sharedInstallation(shared) : tmpdir();
  const folder = await mkdtemp(join(above, 'proto-webhooks-consumers-'));
  return {
    project: async (name, manifest, dependencies = []) => {
      const project = projectIn(join(folder, name));
      await mkdir(project.folder);
      await project.write('package.json', JSON.stringify({ name, private: true, ...manifest }));
      const flags = ['--prefer-offline', '--ignore-scripts', '--no-audit', '--no-fund'];
      if (!isShared) await project.run('npm', 'install', ...flags, await packed(shared), ...dependencies);
      return project;
    },
    [Symbol.asyncDispose]: () => rm(folder, { recursive: true, force: true }),
  };
}
