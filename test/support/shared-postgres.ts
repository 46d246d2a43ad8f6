import { madeInRun, onceARun } from './once-a-run.ts';
import { removeServer, startServer } from './postgres.ts';

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
    const { url, data } = await startServer();
    return { url, data };
  });
  return url;
}

export function endSharedPostgres(folder: string): void {
  const started = madeInRun(folder, NAME) as Shared | undefined;
  if (started) removeServer(started.data);
}
