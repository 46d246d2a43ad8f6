import { isRegistration, PROCESSES, ROW_KINDS } from '../driver/row-data.ts';
import type { RegistrationSearch } from '../rules/registrations.ts';
import type { QueueRows } from '../rules/rows.ts';
import { dueRows } from './due.ts';
import type { SqliteHandle } from './handle.ts';
import { registrationRows } from './registrations.ts';
import type { Scopes } from './scopes.ts';
import { scopesOf } from './scopes.ts';
import { tableOf } from './table.ts';

export type SqliteRows = QueueRows & RegistrationSearch & Pick<Scopes, 'begin' | 'save' | 'forget'>;

/** Expired rows that one accept deletes at most, of one kind; each kind has its turn. An accept adds one of each at most. */
const PURGE_AN_ACCEPT = 16;

/** Those that accepts add to; rows of registrations go when others of their kind are saved. */
const OF_EVENTS = ROW_KINDS.filter((kind) => !isRegistration(kind));

/** What is counted as a sender's entries. */
const ENTRIES = ROW_KINDS.filter((kind) => kind !== 'nonce' && kind !== 'process');

/** `Rows` over one connection. Every statement is prepared here, once; the schema must exist. */
export function sqliteRows(db: SqliteHandle): SqliteRows {
  const scopes = scopesOf(db);
  const table = tableOf(db, scopes);
  let turn = 0;
  return {
    ...dueRows(db, scopes),
    ...registrationRows(db, scopes),
    registration: (kind, sender, id, now) => table.find(kind, { sender }, id, now),
    saveRegistration: (row, now) => {
      table.purge(row.kind, now, PURGE_AN_ACCEPT);
      table.save(row.kind, row, row.id, row, true);
    },
    nonce: (of, now) => table.find('nonce', of, of.nonce, now),
    saveNonce: (row) => table.save('nonce', row, row.nonce, row, false),
    record: (sender, key, now) => table.find('record', { sender }, key, now),
    body: (sender, key) => table.body('record', { sender }, key),
    insertRecord: (row, body) => table.insert('record', row, row.key, row, body),
    updateRecord: (row) => {
      table.save('record', row, row.key, row, true);
      if (row.bodyBytes === 0) table.dropBody('record', row, row.key);
    },
    task: (sender, id, now) => table.find('task', { sender }, id, now),
    // One with a mark was there before.
    saveTask: (row) => table.save('task', row, row.id, { ...row, waiting: false }, row.mark !== null),
    notification: (sender, id, now) => table.find('notification', { sender }, id, now),
    saveNotification: (row) => table.save('notification', row, row.id, row, false),
    isProcessAlive: (id, now) => table.find('process', PROCESSES, id, now) !== undefined,
    saveProcess: (row, now) => {
      table.purge('process', now, PURGE_AN_ACCEPT);
      table.save('process', PROCESSES, row.id, row, true);
    },
    usage: scopes.usage,
    purge: (now) => {
      turn = (turn + 1) % OF_EVENTS.length;
      table.purge(OF_EVENTS[turn] ?? 'nonce', now, PURGE_AN_ACCEPT);
    },
    purgeSender: (sender, now, atLeast) => {
      for (const kind of ENTRIES) table.purge(kind, now, atLeast, { sender });
    },
    purgeNonces: (now, atLeast, of) => {
      if (!of || of.keyid !== undefined) table.purge('nonce', now, atLeast, of);
      else for (const scope of scopes.keyids(of.sender)) table.purge('nonce', now, atLeast, scope);
    },
    begin: scopes.begin,
    save: scopes.save,
    forget: scopes.forget,
  };
}
