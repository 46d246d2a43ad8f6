import { chmodSync, rmSync } from 'node:fs';
import { madeInRun, onceARun } from './once-a-run.ts';
import { startServer, stopServer } from './postgres.ts';

const NAME = 'postgres';

interface Shared {
  readonly url: string;
  readonly data: string;
}

/**
 * The URL of a server that all test files of a run share: `DATABASE_URL`, else the first who asks starts one, and the
 * run's end stops it.
 * @param folder `inject('shared')`.
 */
export async function sharedPostgres(folder: string): Promise<string> {
  const given = process.env['DATABASE_URL'];
  if (given !== undefined && given !== '') return given;
  const { url } = await onceARun(folder, NAME, async (): Promise<Shared> => {
    // The server's own user has to pass through.
    chmodSync(folder, 0o711);
    const { url, data } = await startServer({}, folder);
    return { url, data };
  });
  return url;
}

export function endShared(folder: string): void {
  const started = madeInRun(folder, NAME) as Shared | undefined;
  if (started) stopServer(started.data);
  rmSync(folder, { recursive: true, force: true });
}
