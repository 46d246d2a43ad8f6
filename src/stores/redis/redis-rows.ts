// Makes the names, texts and index changes of rows on Redis, and reads rows from replies of scripts (admission.md
// §8.3).
// Called by commit.ts and by the files that search rows; `lua/rows.lua` uses the same names.
import { isRegistration } from '../optimistic/row-data.ts';
import { turnIn } from '../optimistic/commit-unit.ts';
import type { Counted, LoadResult, Row, RowId, RowKind, Scope, Write } from '../backend.ts';

/** The letter of each kind of row in names of keys, as in `lua/rows.lua`. */
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

/** The separator between key id and nonce in a row's name. No id contains it, because `columnText` encodes it. */
const BEHIND_KEYID = '\0';

/** The number of digits of a version, which has 52 bits. */
const VERSION_DIGITS = 16;

/**
 * The time between a finished row's expiry and its deletion by Redis itself, if no sweep has deleted the row. The
 * deletion frees the memory of senders that no longer send. Ms: 1 h.
 */
const SLACK_MS = 3_600_000;

export function rowName({ scope: { keyid }, kind, id }: RowId): string {
  return keyid === undefined ? `${LETTERS[kind]}:${id}` : `${LETTERS[kind]}:${keyid}${BEHIND_KEYID}${id}`;
}

export function versionText(version: number | undefined): string {
  return version === undefined ? '' : String(version).padStart(VERSION_DIGITS, '0');
}

/** Returns the index (a sorted set) whose size is the row count of a scope: a sender's, or a key id's. */
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

/**
 * Returns the time at which Redis may delete a row by itself, Unix ms by the server's clock. 0: never, because the row
 * has no expiry, is on a list, or has a body.
 */
export function ttlOf({ expiresAt, list, bytes }: Write, offsetMs: number): number {
  return expiresAt === null || list !== null || bytes > 0
    ? 0
    : Math.max(1, Math.ceil(expiresAt - offsetMs) + SLACK_MS);
}

/**
 * Returns the changes of a row's indexes (sorted sets) as index, score, index, score, …. The score `false` removes the
 * row from the index. For `true` the script sets the score to the time at which the row was inserted.
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
 * Returns the changes of the indexes of due rows. The due time is written even if it is unchanged, because a worker
 * that reserved the row may have changed it in the index.
 */
function changesOfTurns({ dueAt, suspect }: Write, was: Before): (string | number | boolean)[] {
  const out: (string | number | boolean)[] = [];
  if (dueAt !== null || was.dueAt !== null) out.push('d', dueAt ?? false);
  if (suspect || was.suspect) out.push('u', suspect?.at ?? false);
  return out;
}

const listIndex = (list: Write['list']): string | undefined => (list === null ? undefined : LISTS[list]);
const waitIndex = (task: string | null): string | undefined => (task === null ? undefined : `y:${task}`);

/** Returns changes that remove a row from the index `from` and add it to the index `to`. */
function moved(from: string | undefined, to: string | undefined): (string | boolean)[] {
  return [...(from === undefined ? [] : [from, false]), ...(to === undefined ? [] : [to, true])];
}

/** The former values of a row that is being inserted: it is in no index yet. */
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

/** Returns the indexes of a kind of registrations. `all` sorts the ids as texts, `due` sorts them by due time. */
export function registrationIndexes(kind: RowKind): { readonly all: string; readonly due: string } {
  return { all: `a:${LETTERS[kind]}`, due: `d:${LETTERS[kind]}` };
}

export function textOf(reply: unknown): string {
  return Buffer.isBuffer(reply) ? reply.toString() : String(reply);
}

/**
 * Makes a `Row` of its name and its stored text.
 *
 * @param name as `rowName` returns it.
 */
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

/** Reads rows from a list in which names and texts of rows alternate. In `bodies` ids and bodies alternate. */
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

/** The reply of the scripts `lua/commit.lua`, `load.lua`, `take.lua` and `suspect.lua`. */
export interface Seen extends LoadResult {
  readonly isOld: boolean;
  /** The number of the sender's nonces; undefined if no counts were requested. */
  readonly nonces: number | undefined;
  /** The further parts of the reply, which differ from script to script. */
  readonly rest: readonly unknown[];
}

/**
 * Reads the reply of a script.
 *
 * @param scopes the scopes (the sender, or its key ids) whose counts were requested.
 */
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
