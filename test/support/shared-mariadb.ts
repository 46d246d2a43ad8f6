import { rmSync } from 'node:fs';
import { dirname } from 'node:path';
import { startServer } from './mariadb.ts';
import { madeInRun, onceARun } from './once-a-run.ts';

const NAME = 'mariadb';

interface Shared {
  readonly url: string;
  readonly pid: number;
  readonly data: string;
}

/**
 * The URL of a server that all test files of a run share: `MYSQL_URL` (of a user that may do everything), else the first
 * who asks starts one, and the run's end stops it.
 * @param folder `inject('shared')`.
 */
export async function sharedMariadb(folder: string): Promise<string> {
  const given = process.env['MYSQL_URL'];
  if (given !== undefined && given !== '') return given;
  const { url } = await onceARun(folder, NAME, async (): Promise<Shared> => {
    const { url, pid, data } = await startServer({}, true);
    return { url, pid: pid(), data };
  });
  return url;
}

export function endSharedMariadb(folder: string): void {
  const started = madeInRun(folder, NAME) as Shared | undefined;
  if (!started) return;
  try {
    process.kill(started.pid, 'SIGKILL');
  } catch {
    // It has ended by itself; the test that used it has said so.
  }
  rmSync(dirname(started.data), { recursive: true, force: true, maxRetries: 5 });
}
