// Turns planned row changes into the unit that a backend commits whole or not at all, with indexed values (admission.md
// §8.3, §8.15).
// Called by batch-commit.ts. SQLite and the backends also use the index values of rows and of due registrations.
import type { Expected, RowKind, Unit, Write } from '../backend.ts';
import type { RegistrationKind, RegistrationRow } from '../store.ts';
import { dueAt } from '../rules/task-wait.ts';
import type { RecordRow, TaskRow } from '../rules/rule-rows.ts';
import type { Draft, Entry } from './plan-rows.ts';
import type { AnyRow } from './row-data.ts';
import { fitted, isRegistration, packed } from './row-data.ts';

/** Makes the unit of a draft (plans that commit together): the rows that are only compared, and the rows to write. */
export function unitOf(draft: Draft): Unit {
  const { reads, writes, next } = draft;
  const expects: Expected[] = [];
  for (const entry of reads) if (!writes.has(entry)) expects.push({ ...entry.id, version: entry.version });
  return { expects, writes: [...writes.keys()].map((entry) => writeOf(entry, next)) };
}

const isRecord = (kind: string, _row: AnyRow): _row is RecordRow => kind === 'record';
const isTask = (kind: string, _row: AnyRow): _row is TaskRow & { waiting: boolean } => kind === 'task';

const isOfRegistration = (kind: RowKind, _row: AnyRow): _row is RegistrationRow => isRegistration(kind);

/**
 * Makes the `Write.waitsFor` of a registration's row: its due time as a text that sorts by the time. No task's id
 * equals it, because `columnText` encodes ids that begin with U+0001. So due registrations need no index of their own,
 * and searches for waiting events never find them.
 */
export function turnText(kind: RegistrationKind, dueAt: number): string {
  return `\u0001${TURN_LETTER[kind]}${String(dueAt).padStart(TURN_DIGITS, '0')}`;
}

/** The letter of each kind of registration in a `turnText`, so that the texts of a kind form one range. */
const TURN_LETTER: Readonly<Record<RegistrationKind, string>> = {
  move: 'm',
  operation: 'o',
  route: 'r',
  stream: 's',
  snapshot: 'h',
  subscription: 'u',
  watch: 'w',
};

/** The number of digits of the largest integer that a JavaScript number holds exactly. */
const TURN_DIGITS = 16;

export type TextRange = readonly [from: string, to: string];

/**
 * Returns the two ranges of `Write.waitsFor` in which rows are due. `come`: their time has come. `far`: their time is
 * over `longestMs` ahead, so it was set before the store's clock was set back.
 */
export function turnRanges(
  kind: RegistrationKind,
  now: number,
  longestMs: number,
): readonly [come: TextRange, far: TextRange] {
  const last = Number.MAX_SAFE_INTEGER;
  const far = Math.min(Math.floor(now + longestMs), last) + 1;
  return [
    [turnText(kind, 0), turnText(kind, Math.max(0, Math.floor(now)))],
    [turnText(kind, far), turnText(kind, last)],
  ];
}

/** Returns the due time, Unix ms, that `turnText` wrote into a text. */
export function turnIn(text: string): number {
  return Number(text.slice(-TURN_DIGITS));
}

type Indexed = Pick<Write, 'dueAt' | 'suspect' | 'list' | 'waitsFor' | 'link' | 'bytes' | 'expiresAt'>;

/**
 * Returns the values by which a backend searches and counts a row. `named` converts the id of another row to the form
 * that row names contain.
 */
export function indexed(kind: RowKind, row: AnyRow, named: (id: string) => string = fitted): Indexed {
  const { expiresAt } = row;
  if (isRecord(kind, row)) return indexedRecord(row, row.task ? named(row.task.id) : null);
  const none = { expiresAt, dueAt: null, suspect: null, list: null, waitsFor: null, link: null, bytes: 0 };
  if (isOfRegistration(kind, row)) {
    return { ...none, waitsFor: row.dueAt === null ? null : turnText(row.kind, row.dueAt), link: row.list };
  }
  return isTask(kind, row) && row.holder !== null ? { ...none, link: named(row.holder) } : none;
}

function indexedRecord(row: RecordRow, task: string | null): Indexed {
  const at = dueAt(row);
  const isOpen = row.state === 'queued' || row.state === 'leased' || row.state === 'dead';
  return {
    expiresAt: row.expiresAt,
    dueAt: row.suspect ? null : at,
    suspect: row.suspect && at !== null ? { at, crashes: row.crashes } : null,
    list: isOpen ? row.state : null,
    waitsFor: row.parkedUntil > 0 ? task : null,
    link: task,
    bytes: row.bodyBytes,
  };
}

export function writeOf({ id, version, stored, row, body }: Entry, next: number): Write {
  const is = indexed(id.kind, row as AnyRow);
  const was = stored && indexed(id.kind, stored);
  return {
    scope: id.scope,
    kind: id.kind,
    id: id.id,
    version,
    next,
    data: packed(id, row as AnyRow),
    body,
    expiresAt: is.expiresAt,
    dueAt: is.dueAt,
    suspect: is.suspect,
    list: is.list,
    waitsFor: is.waitsFor,
    link: is.link,
    bytes: is.bytes,
    bytesBefore: was?.bytes ?? 0,
    before: was,
  };
}
