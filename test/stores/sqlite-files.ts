import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { type SqliteHandle, sqliteStore } from '../../src/stores/sqlite.ts';
import type { StoreHarness } from '../../src/testing/index.ts';
import { DATA_FOLDER } from '../support/data-folder.ts';
import { twoHandles } from './fixtures/two-handles.ts';

export interface TempFile {
  readonly file: string;
  readonly remove: () => void;
}

/**
 * A database file of its own, in a folder of its own.
 * @param parent where that is; in memory a store says that it is not durable.
 */
export function tempFile(parent: string = tmpdir()): TempFile {
  const folder = mkdtempSync(join(parent, 'proto-webhooks-'));
  return {
    file: join(folder, 'webhooks.db'),
    remove: () => rmSync(folder, { recursive: true, force: true }),
  };
}

/** What is counted of each scope, and what there is; body bytes that rows speak of and that are kept. */
export function countsOf(db: DatabaseSync): { readonly noted: unknown[]; readonly counted: unknown[] } {
  const noted = db
    .prepare('SELECT id, rows, bytes, bytes AS kept, nonces FROM webhook_scope ORDER BY id')
    .all();
  const counted = db
    .prepare(
      `SELECT s.id, count(r.id) AS rows, CAST(total(json_extract(r.data, '$.bodyBytes')) AS INTEGER) AS bytes,
        CAST(total(length(c.body)) AS INTEGER) AS kept,
        (SELECT count(*) FROM webhook_row n JOIN webhook_scope k ON k.id = n.scope
          WHERE n.kind = 'nonce' AND s.id IN (0, k.within)) AS nonces
      FROM webhook_scope s LEFT JOIN webhook_row r ON r.scope = s.id LEFT JOIN webhook_copy c ON c.id = r.id
      GROUP BY s.id ORDER BY s.id`,
    )
    .all();
  return { noted, counted };
}

/** The ways to a connection; each handle of a harness is one of its own. */
export const CONNECTIONS: Readonly<Record<string, (file: string) => string | SqliteHandle>> = {
  'a path': (file) => file,
  'a handle of node:sqlite': (file) => new DatabaseSync(file),
};

function writeNote(tx: unknown): void {
  (tx as SqliteHandle).prepare('INSERT INTO note (line) VALUES (?)').run('written by the handler');
}

export async function sqliteHarness(connect: (file: string) => string | SqliteHandle): Promise<StoreHarness> {
  const { file, remove } = tempFile(DATA_FOLDER);
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
