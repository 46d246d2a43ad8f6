import { chmodSync, existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { stopServer, startServer } from './postgres.ts';

const STARTING_MS = 120_000;

/**
 * The URL of a server that all test files of a run share: `DATABASE_URL`, else the first who asks starts one, and the
 * run's end stops it.
 * @param folder `inject('shared')`.
 */
export async function sharedPostgres(folder: string): Promise<string> {
  const given = process.env['DATABASE_URL'];
  if (given !== undefined && given !== '') return given;
  const file = join(folder, 'postgres.json');
  if (isFirst(folder)) {
    // The server's own user has to pass through.
    chmodSync(folder, 0o711);
    const { url, data } = await startServer({}, folder);
    writeFileSync(`${file}.new`, JSON.stringify({ url, data }));
    renameSync(`${file}.new`, file);
  }
  const deadline = performance.now() + STARTING_MS;
  while (!existsSync(file)) {
    if (performance.now() > deadline) throw new Error('the shared PostgreSQL server did not start');
    await sleep(50);
  }
  return read(file).url;
}

/** A folder is made once. */
function isFirst(folder: string): boolean {
  try {
    mkdirSync(join(folder, 'postgres-starting'));
    return true;
  } catch {
    return false;
  }
}

function read(file: string): { readonly url: string; readonly data: string } {
  return JSON.parse(readFileSync(file, 'utf8')) as { url: string; data: string };
}

export function endShared(folder: string): void {
  const file = join(folder, 'postgres.json');
  if (existsSync(file)) stopServer(read(file).data);
  rmSync(folder, { recursive: true, force: true });
}
