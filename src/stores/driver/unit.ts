import type { Expected, Unit, Write } from '../backend.ts';
import { dueAt } from '../rules/park.ts';
import type { RecordRow, TaskRow } from '../rules/rows.ts';
import type { Draft, Entry } from './journal.ts';
import type { AnyRow } from './row-data.ts';
import { fitted, packed } from './row-data.ts';

/** What a backend is told of plans that stand or fall together. */
export function unitOf(draft: Draft): Unit {
  const { reads, writes, counts, next } = draft;
  const expects: Expected[] = [];
  for (const entry of reads) if (!writes.has(entry)) expects.push({ ...entry.id, version: entry.version });
  return {
    expects,
    writes: [...writes.keys()].map((entry) => writeOf(entry, next)),
    counts: [...counts.values()],
  };
}

const isRecord = (kind: string, _row: AnyRow): _row is RecordRow => kind === 'record';
const isTask = (kind: string, _row: AnyRow): _row is TaskRow & { waiting: boolean } => kind === 'task';

type Indexed = Pick<Write, 'dueAt' | 'suspect' | 'list' | 'waitsFor' | 'link' | 'bytes' | 'expiresAt'>;

/** What of a row is searched and counted; `named` makes the names of others from their ids. */
export function indexed(kind: string, row: AnyRow, named: (id: string) => string = fitted): Indexed {
  const { expiresAt } = row;
  if (isRecord(kind, row)) {
    const task = row.task ? named(row.task.id) : null;
    const at = dueAt(row);
    const isOpen = row.state === 'queued' || row.state === 'leased' || row.state === 'dead';
    return {
      expiresAt,
      dueAt: row.suspect ? null : at,
      suspect: row.suspect && at !== null ? { at, crashes: row.crashes } : null,
      list: isOpen ? row.state : null,
      waitsFor: row.parkedUntil > 0 ? task : null,
      link: task,
      bytes: row.bodyBytes,
    };
  }
  const link = isTask(kind, row) && row.holder !== null ? named(row.holder) : null;
  return { expiresAt, dueAt: null, suspect: null, list: null, waitsFor: null, link, bytes: 0 };
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
