// Names and texts of rows on Redis, changes of their indexes, and replies of scripts as rows (admission.md §8.3).
// Called by commit.ts and by the files that search rows; `lua/rows.lua` has the same names.
import { isRegistration } from '../optimistic/row-data.ts';
import { turnIn } from '../optimistic/commit-unit.ts';
import type { Counted, LoadResult, Row, RowId, RowKind, Scope, Write } from '../backend.ts';

/** The letters of the kinds of rows, as `lua/rows.lua` has them. */

const LETTERS: Record<RowKind, string> = {
  record: 'r',
  task: 't',
  nonce: 'o',
  notification: 'n',
  process: 'p',
  operation: 'O',
  route: 'U',
  watch: 'W',
  stream: 'S',
  subscription: 'B',
  snapshot: 'H',
  move: 'M',
};
export const letterOf = (kind: RowKind): string => LETTERS[kind];

const KINDS = new Map(Object.entries(LETTERS).map(([kind, letter]) => [letter, kind as RowKind]));
const LISTS: Record<NonNullable<Write['list']>, string> = { queued: 'q', leased: 'l', dead: 'k' };

/** The separator between key id and nonce. No id contains it (`columnText`). */
const BEHIND_KEYID = '\0';

/** The digits of a version: 52 bits. */
const VERSION_DIGITS = 16;

/**
 * The time after its expiry at which Redis itself deletes a finished row that no sweep has deleted. It frees the
 * memory of senders that no longer send. Ms: 1 h.
 */
const SLACK_MS = 3_600_000;

export function rowName({ scope: { keyid }, kind, id }: RowId): string {
  return keyid === undefined ? `${LETTERS[kind]}:${id}` : `${LETTERS[kind]}:${keyid}${BEHIND_KEYID}${id}`;
}

export function versionText(version: number | undefined): string {
  return version === undefined ? '' : String(version).padStart(VERSION_DIGITS, '0');
}

/** Returns the index whose size is the count of a scope. */
export function indexOf({ keyid }: Scope): string {
  return keyid === undefined ? 'x' : `z:${keyid}`;
}

export function listName(list: Write['list']): string {
  return list === null ? '' : LISTS[list];
}

export function rowText({ next, link, expiresAt, list, waitsFor, bytes, suspect, data }: Write): string {
  const head = [link ?? '', expiresAt ?? 0, listName(list), waitsFor ?? '', bytes];
  if (suspect) head.push(suspect.crashes);
  return `${versionText(next)} ${JSON.stringify(head)}\n${data}`;
}

/** Returns the time at which Redis may delete a row by itself, Unix ms by its own clock; 0: never. */
export function ttlOf({ expiresAt, list, bytes }: Write, offsetMs: number): number {
  return expiresAt === null || list !== null || bytes > 0
    ? 0
    : Math.max(1, Math.ceil(expiresAt - offsetMs) + SLACK_MS);
}

/**
 * Returns pairs of index and score, flattened. The score is false if the row is removed from the index. It is true if
 * the script decides the score: the row's time of insertion.
 */
export function changesOf(write: Write): (string | number | boolean)[] {
  const { kind, scope, expiresAt, list, waitsFor, before } = write;
  const was = before ?? NOT_INDEXED;
  const out = isRegistration(kind) ? changesOfRegistration(write) : [];
  if (!before || was.expiresAt !== expiresAt) out.push(indexOf(scope), expiresAt ?? '+inf');
  if (was.list !== list) out.push(...moved(listIndex(was.list), listIndex(list)));
  out.push(...changesOfTurns(write, was));
  if (!isRegistration(kind) && was.waitsFor !== waitsFor) {
    out.push(...moved(waitIndex(was.waitsFor), waitIndex(waitsFor)));
  }
  return out;
}

type Before = NonNullable<Write['before']>;

/**
 * Returns the changes of the indexes of due rows. A due time is written even if it is unchanged, because a worker may
 * have moved it when it reserved the row.
 */
function changesOfTurns({ dueAt, suspect }: Write, was: Before): (string | number | boolean)[] {
  const out: (string | number | boolean)[] = [];
  if (dueAt !== null || was.dueAt !== null) out.push('d', dueAt ?? false);
  if (suspect || was.suspect) out.push('u', suspect?.at ?? false);
  return out;
}

const listIndex = (list: Write['list']): string | undefined => (list === null ? undefined : LISTS[list]);
const waitIndex = (task: string | null): string | undefined => (task === null ? undefined : `y:${task}`);

/** Removes a row from one index, and adds it to another. */
function moved(from: string | undefined, to: string | undefined): (string | boolean)[] {
  return [...(from === undefined ? [] : [from, false]), ...(to === undefined ? [] : [to, true])];
}

/** The values of a row before its insertion, when it is in no index. */
const NOT_INDEXED: Before = {
  expiresAt: null,
  dueAt: null,
  suspect: null,
  list: null,
  waitsFor: null,
};

function changesOfRegistration({ kind, waitsFor, before }: Write): (string | number | boolean)[] {
  const { all, due } = registrationIndexes(kind);
  const out: (string | number | boolean)[] = before ? [] : [all, 0];
  if (waitsFor !== null) out.push(due, turnIn(waitsFor));
  else if (before && before.waitsFor !== null) out.push(due, false);
  return out;
}

/** Returns the indexes of a kind of registrations: `all` has all ids in order, `due` has ids by their due time. */
export function registrationIndexes(kind: RowKind): { readonly all: string; readonly due: string } {
  return { all: `a:${LETTERS[kind]}`, due: `d:${LETTERS[kind]}` };
}

export function textOf(reply: unknown): string {
  return Buffer.isBuffer(reply) ? reply.toString() : String(reply);
}

/** Reads a row. @param name as `rowName` returns it. */
export function rowOf(sender: string, name: string, text: string): Row {
  const kind = KINDS.get(name.slice(0, 1)) ?? 'record';
  const at = kind === 'nonce' ? name.indexOf(BEHIND_KEYID) : 1;
  const scope = kind === 'nonce' ? { sender, keyid: name.slice(2, at) } : { sender };
  return {
    scope,
    kind,
    id: name.slice(at + 1),
    version: Number(text.slice(0, VERSION_DIGITS)),
    data: text.slice(text.indexOf('\n') + 1),
  };
}

/** Reads rows from a list of alternating names and rows; `bodies` alternates ids and bodies. */
export function rowsOf(sender: string, reply: readonly unknown[], bodies: readonly unknown[] = []): Row[] {
  const byId = new Map<string, Uint8Array>();
  for (let at = 0; at < bodies.length; at += 2) {
    const body = bodies[at + 1];
    if (Buffer.isBuffer(body)) byId.set(textOf(bodies[at]), new Uint8Array(body));
  }
  const rows: Row[] = [];
  for (let at = 0; at < reply.length; at += 2) {
    const row = rowOf(sender, textOf(reply[at]), textOf(reply[at + 1]));
    const body = row.kind === 'record' ? byId.get(row.id) : undefined;
    rows.push(body ? { ...row, body } : row);
  }
  return rows;
}

/** The reply of `lua/commit.lua`, `load.lua` and `take.lua`. */
export interface Seen extends LoadResult {
  readonly isOld: boolean;
  /** The nonces of the sender. */
  readonly nonces: number | undefined;
  /** The further parts of the reply, which differ from script to script. */
  readonly rest: readonly unknown[];
}

/** Reads a reply. @param scopes the scopes whose counts were requested. */
export function seenOf(sender: string, scopes: readonly Scope[], reply: unknown): Seen {
  const [now, isOld, rows, counts, bodies = [], ...rest] = reply as [
    number,
    number,
    unknown[],
    unknown[],
    unknown[]?,
    ...unknown[],
  ];
  const nonces = counts[scopes.length] as number | undefined;
  const counted = scopes.map((scope, at): Counted => {
    const [rowCount = 0, bytes = 0] = (counts[at] ?? []) as number[];
    return { scope, rows: rowCount, bytes, ...(nonces !== undefined && { nonces }) };
  });
  return {
    now,
    isOld: isOld === 1,
    rows: rowsOf(sender, rows, bodies),
    counts: counted,
    nonces,
    rest,
  };
}
