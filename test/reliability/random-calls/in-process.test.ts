import { DatabaseSync } from 'node:sqlite';
import Libsql from 'libsql';
import { inThisForm } from '../form.ts';
import { MEMORY, onDriver, onSqlite, SQLITE_WITHOUT_FILE } from './in-process.ts';
import { describeRandomCalls, type Histories } from './random-calls.ts';
import type { Subject } from './subject.ts';

const STORES: readonly (readonly [Subject, Histories])[] = [
  [MEMORY, { anyOrder: 1000 }],
  [onDriver(), { events: 60, registrations: 60, atOnce: 40, anyOrder: 150 }],
  [SQLITE_WITHOUT_FILE, { events: 40, registrations: 60 }],
  [onSqlite('node:sqlite', (file) => new DatabaseSync(file)), { anyOrder: 40 }],
  [onSqlite('libsql', (file) => new Libsql(file)), { anyOrder: 40 }],
];

for (const [subject, histories] of inThisForm(STORES, ([{ name }]) => name !== 'SQLite on libsql')) {
  describeRandomCalls(subject, histories);
}
