import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { onceARun } from './once-a-run.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));

/** Installing is the registry's time, and building the machine's. */
export const INSTALL_MS = 300_000;

/**
 * The package as npm would publish it, packed once in a run, of what `dist` has: it was built before the tests, and
 * building it again would take it away from others.
 * @param folder `inject('shared')`.
 * @returns the tarball.
 */
export function packed(folder: string): Promise<string> {
  return onceARun(folder, 'packed', async () => {
    const args = ['pack', '--ignore-scripts', '--json', '--pack-destination', folder];
    const { stdout } = await promisify(execFile)('npm', args, { cwd: root });
    const [{ filename }] = JSON.parse(stdout) as [{ filename: string }];
    return join(folder, filename);
  });
}
