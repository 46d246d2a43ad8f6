import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import Libsql from 'libsql';
import type { SqliteHandle } from '../../src/stores/sqlite.ts';
import { sqliteStore } from '../../src/stores/sqlite.ts';
import type { StoreHarness } from '../../src/testing/store-contract.ts';
import { twoHandles } from './fixtures/two-handles.js';

export interface TempFile {
  readonly file: string;
  readonly remove: () => void;
}

/** A database file of its own, in a folder of its own. */
export function tempFile(): TempFile {
  const folder = mkdtempSync(join(tmpdir(), 'proto-webhooks-'));
  return {
    file: join(folder, 'webhooks.db'),
    remove: () => rmSync(folder, { recursive: true, force: true }),
  };
}

/** The ways to a connection; each handle of a harness is one of its own. */
export const DRIVERS: Readonly<Record<string, (file: string) => string | SqliteHandle>> = {
  'a path': (file) => file,
  'a handle of node:sqlite': (file) => new DatabaseSync(file),
  'a handle of libsql': (file) => new Libsql(file),
};

function writeNote(tx: unknown): void {
  (tx as SqliteHandle).prepare('INSERT INTO note (line) VALUES (?)').run('written by the handler');
}

export async function sqliteHarness(connect: (file: string) => string | SqliteHandle): Promise<StoreHarness> {
  const { file, remove } = tempFile();
  const owner = new DatabaseSync(file);
  owner.exec('CREATE TABLE note (line TEXT)');
  const handles: SqliteHandle[] = [owner];
  const stores = twoHandles((clockOffsetMs) => {
    const connection = connect(file);
    if (typeof connection !== 'string') handles.push(connection);
    return sqliteStore(connection, { clockOffsetMs });
  });
  return {
    ...stores,
    effects: {
      synchronous: true,
      write: writeNote,
      count: async () => Number(owner.prepare('SELECT count(*) AS n FROM note').get()?.['n']),
    },
    cleanup: async () => {
      await stores.cleanup();
      for (const handle of handles) handle.close();
      remove();
    },
  };
}
