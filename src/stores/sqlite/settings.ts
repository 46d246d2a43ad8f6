import * as fs from 'node:fs';
import { Fault } from '../../errors.ts';
import type { Durability } from '../contract.ts';
import type { SqliteHandle, SqliteRow } from './handle.ts';
import { textOf } from './handle.ts';
import { fileOf } from './place.ts';

/**
 * Durability of SQLite is a matter of each connection: `synchronous` is not stored in the file, and drivers open a
 * WAL database with NORMAL, under which a commit that was answered can be gone after a power cut. So it is set on
 * every open, read back, and looked at again before every transaction.
 */
export interface Settings {
  /** Sets what can be set. BUSY where another connection is in the way. */
  apply(): void;
  /**
   * Before each transaction: somebody else's PRAGMA on this handle may have weakened it.
   * @throws Fault `not_durable` where it cannot be set back.
   */
  restore(): void;
  /** From what the connection says now. */
  durability(): Durability;
}

/** Weakest `synchronous` under which a commit survives a power cut (sqlite.org/pragma.html#pragma_synchronous). */
const FULL = 2;
const EXTRA = 3;

/**
 * By `journal_mode`. DELETE needs EXTRA: under FULL the directory entry of the deleted journal is not synced, and
 * its return rolls the last commit back. MEMORY and OFF survive nothing.
 */
const NEEDED: Readonly<Record<string, number>> = { wal: FULL, truncate: FULL, persist: FULL, delete: EXTRA };

/**
 * Pages in the WAL before a commit moves them into the database: some 16 MiB. A lone accept writes 13, most of them those
 * of the accept before; a move writes each once and syncs twice, and SQLite's own 1 000 would be one every 80.
 */
const CHECKPOINT_PAGES = 4000;

export function settingsOf(db: SqliteHandle): Settings {
  let needed = FULL;
  /** What the open reached: less than needed where the driver refuses, and `durability` says so. */
  let reached = FULL;
  const raise = (): void => {
    db.exec(`PRAGMA synchronous = ${needed === EXTRA ? 'EXTRA' : 'FULL'}`);
  };
  return {
    apply: () => {
      // The driver is synchronous: a timeout of its own would stop the event loop. Retries are ours.
      db.exec('PRAGMA busy_timeout = 0');
      needed = NEEDED[journalMode(db, 'PRAGMA journal_mode = WAL')] ?? FULL;
      raise();
      reached = Math.min(needed, synchronous(db));
      // Only macOS knows it: there fsync does not reach the platter without.
      db.exec('PRAGMA fullfsync = ON');
      db.exec('PRAGMA checkpoint_fullfsync = ON');
      db.exec(`PRAGMA wal_autocheckpoint = ${CHECKPOINT_PAGES}`);
    },
    restore: () => {
      if (synchronous(db) >= reached) return;
      raise();
      if (synchronous(db) >= reached) return;
      throw new Fault('not_durable', 'SQLite: PRAGMA synchronous was lowered on this handle and stays so.');
    },
    durability: () => {
      const least = NEEDED[journalMode(db, 'PRAGMA journal_mode')] ?? Infinity;
      const file = fileOf(db);
      return file !== '' && !isInMemory(file) && synchronous(db) >= least ? 'disk' : 'process';
    },
  };
}

/** Linux's tmpfs and ramfs, as statfs names them: what is there is gone with the machine's power, synced or not. */
const IN_MEMORY: ReadonlySet<number> = new Set([0x01_02_19_94, 0x85_84_58_f6]);

/** Where the runtime cannot tell, it is a disk. */
function isInMemory(file: string): boolean {
  try {
    return IN_MEMORY.has(fs.statfsSync(file).type >>> 0);
  } catch {
    return false;
  }
}

/** Prepared each time: SQLite compiles the setting's value into the statement, so a kept one gives an old value. */
function synchronous(db: SqliteHandle): number {
  const row = db.prepare('PRAGMA synchronous').get() as SqliteRow | undefined;
  return Number(row?.['synchronous']);
}

function journalMode(db: SqliteHandle, pragma: string): string {
  return textOf(db.prepare(pragma).get() as SqliteRow, 'journal_mode').toLowerCase();
}
