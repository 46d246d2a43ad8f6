import { chmodSync } from 'node:fs';
import { startServer } from './mariadb.ts';
import { madeInRun, onceARun } from './once-a-run.ts';

/**
 * Servers of a run, by what a commit waits for: `disk`, as MariaDB has it and durability is tested on, or the operating
 * system's memory, which is faster: what is tested there is what commits hold, and never that they outlive a power cut.
 */
export type Flushes = 'disk' | 'memory';

const SETTINGS: Readonly<Record<Flushes, Readonly<Record<string, string>>>> = {
  disk: {},
  memory: { 'innodb-flush-log-at-trx-commit': '2' },
};

const nameOf = (flushes: Flushes): string => `mariadb-${flushes}`;

interface Shared {
  readonly url: string;
  readonly pid: number;
}

/**
 * The URL of a server that all test files of a run share: `MYSQL_URL` (of a user that may do everything), else the first
 * who asks starts one, and the run's end stops it.
 * @param folder `inject('shared')`.
 */
export async function sharedMariadb(folder: string, flushes: Flushes = 'disk'): Promise<string> {
  const given = process.env['MYSQL_URL'];
  if (given !== undefined && given !== '') return given;
  const { url } = await onceARun(folder, nameOf(flushes), async (): Promise<Shared> => {
    // The server's own user has to pass through.
    chmodSync(folder, 0o711);
    const { url, pid } = await startServer(SETTINGS[flushes], folder);
    return { url, pid: pid() };
  });
  return url;
}

export function endSharedMariadb(folder: string): void {
  for (const flushes of Object.keys(SETTINGS) as Flushes[]) {
    const started = madeInRun(folder, nameOf(flushes)) as Shared | undefined;
    if (started) end(started);
  }
}

function end({ pid }: Shared): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch {
    // It has ended by itself; the test that used it has said so.
  }
}
