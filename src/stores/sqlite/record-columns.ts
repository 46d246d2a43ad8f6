import { dueAt } from '../rules/park.ts';
import type { Claim, RecordRow, RecordState } from '../rules/rows.ts';
import type { SqliteRow, SqliteValue } from './handle.ts';
import { nullableTextOf, textOf } from './handle.ts';
import { columnText, fromColumnText } from './text.ts';

/** What changes in a record's life; the rest is written once. */
const CHANGING = [
  'state',
  'claim',
  'claimed_by',
  'owner',
  'fence',
  'lease_until',
  'attempts',
  'spared',
  'crashes',
  'suspect',
  'process',
  'crashed_in',
  'acked',
  'not_before',
  'parked_until',
  'set_at',
  'due_at',
  'suspect_due_at',
  'last_error',
  'after_terminal',
  'ahead',
  'body_bytes',
  'expires_at',
] as const;
const FIXED = [
  'inserted_at',
  'raw_hash',
  'canonical_hash',
  'task_id',
  'instant',
  'instant_ms',
  'terminal',
  'reemission',
  'after_final',
] as const;

type Column = (typeof CHANGING)[number] | (typeof FIXED)[number];

const flag = (value: boolean): number => (value ? 1 : 0);

const encoded = (text: string | null): string | null => (text === null ? null : columnText(text));

const COLUMN: Record<Column, (row: RecordRow) => SqliteValue> = {
  state: (row) => row.state,
  claim: (row) => row.claim,
  claimed_by: (row) => row.claimedBy,
  owner: (row) => row.owner,
  fence: (row) => row.fence,
  lease_until: (row) => row.leaseUntil,
  attempts: (row) => row.attempts,
  spared: (row) => flag(row.spared),
  crashes: (row) => row.crashes,
  suspect: (row) => flag(row.suspect),
  process: (row) => encoded(row.process),
  crashed_in: (row) => encoded(row.crashedIn),
  acked: (row) => flag(row.acked),
  inserted_at: (row) => row.insertedAt,
  not_before: (row) => row.notBefore,
  parked_until: (row) => row.parkedUntil,
  set_at: (row) => row.setAt,
  due_at: (row) => (row.suspect ? null : dueAt(row)),
  suspect_due_at: (row) => (row.suspect ? dueAt(row) : null),
  last_error: (row) => encoded(row.lastError),
  after_terminal: (row) => flag(row.afterTerminal),
  ahead: (row) => flag(row.ahead),
  body_bytes: (row) => row.bodyBytes,
  expires_at: (row) => row.expiresAt,
  raw_hash: (row) => row.rawHash,
  canonical_hash: (row) => row.canonicalHash,
  task_id: (row) => (row.task ? columnText(row.task.id) : null),
  instant: (row) => row.task?.instant ?? null,
  instant_ms: (row) => row.task?.instantMs ?? null,
  terminal: (row) => flag(row.task?.terminal ?? false),
  reemission: (row) => flag(row.reemission),
  after_final: (row) => flag(row.afterFinal),
};

const NAMES: readonly Column[] = [...CHANGING, ...FIXED];
/** The columns that make a record, for a SELECT. */
export const RECORD_COLUMNS: string = NAMES.join(', ');

/** An UPDATE's SET of what changes in a record's life. */
export const CHANGES: string = CHANGING.map((name) => `${name} = ?`).join(', ');

/** What is bound to `CHANGES`. */
export function changesOf(row: RecordRow): SqliteValue[] {
  return CHANGING.map((name) => COLUMN[name](row));
}

/** What is bound to an INSERT of `RECORD_COLUMNS`, and how many marks it has. */
export function valuesOf(row: RecordRow): SqliteValue[] {
  return NAMES.map((name) => COLUMN[name](row));
}

export const RECORD_MARKS: string = NAMES.map(() => '?').join(', ');

/** A record from the columns `RECORD_COLUMNS`. */
export function fromColumns(sender: string, key: string, row: SqliteRow): RecordRow {
  const number = (name: Column): number => Number(row[name]);
  const taskId = nullableTextOf(row, 'task_id');
  const instant = nullableTextOf(row, 'instant');
  const plain = (name: Column): string | null => {
    const text = nullableTextOf(row, name);
    return text === null ? null : fromColumnText(text);
  };
  return {
    sender,
    key,
    state: textOf(row, 'state') as RecordState,
    claim: textOf(row, 'claim') as Claim,
    claimedBy: textOf(row, 'claimed_by'),
    owner: nullableTextOf(row, 'owner'),
    fence: number('fence'),
    leaseUntil: number('lease_until'),
    attempts: number('attempts'),
    spared: number('spared') === 1,
    crashes: number('crashes'),
    suspect: number('suspect') === 1,
    process: plain('process'),
    crashedIn: plain('crashed_in'),
    acked: number('acked') === 1,
    insertedAt: number('inserted_at'),
    notBefore: number('not_before'),
    parkedUntil: number('parked_until'),
    setAt: number('set_at'),
    lastError: plain('last_error'),
    rawHash: textOf(row, 'raw_hash'),
    canonicalHash: nullableTextOf(row, 'canonical_hash'),
    task:
      taskId === null
        ? null
        : {
            id: fromColumnText(taskId),
            ...(instant !== null && { instant }),
            ...(row['instant_ms'] != null && { instantMs: number('instant_ms') }),
            terminal: number('terminal') === 1,
          },
    reemission: number('reemission') === 1,
    afterTerminal: number('after_terminal') === 1,
    ahead: number('ahead') === 1,
    afterFinal: number('after_final') === 1,
    bodyBytes: number('body_bytes'),
    expiresAt: row['expires_at'] == null ? null : number('expires_at'),
  };
}
