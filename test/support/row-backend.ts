import { Fault } from '../../src/index.ts';
import type { InboxQuery } from '../../src/stores/index.ts';
import {
  type Backend,
  type CommitRequest,
  type CommitResult,
  type Counted,
  type DueRequest,
  type DueResult,
  type Expected,
  type LoadRequest,
  type LoadResult,
  type NoncesOf,
  type Page,
  type Row,
  type RowId,
  type RowKind,
  type Scope,
  type Unit,
  type Write,
} from '../../src/stores/index.ts';
import { isDue, nameOf, scopeName } from '../../src/stores/for-tests.ts';

/** A row as it is kept, with what it is searched by. */
interface Kept extends Row {
  readonly write: Write;
  readonly place: number;
  heldUntil: number;
}

/** What handles on one backend share. */
export interface KeptRows {
  readonly rows: Map<string, Kept>;
  place: number;
  /** Of each method how often it was called. */
  readonly calls: Record<'commit' | 'load' | 'due' | 'sweep', number>;
}

export function keptRows(): KeptRows {
  return { rows: new Map(), place: 0, calls: { commit: 0, load: 0, due: 0, sweep: 0 } };
}

const rowsOf = (units: readonly Unit[]): number =>
  units.reduce((sum, { expects, writes }) => sum + expects.length + writes.length, 0);

/** `Backend` over a map, to try the driver: what a call does, it does at once and alone. */
export function rowBackend(kept: KeptRows, now: () => number): Backend {
  const { rows } = kept;
  const versionOf = (id: RowId): number | undefined => rows.get(nameOf(id))?.version;
  const matches = (of: Expected): boolean => versionOf(of) === of.version;
  return {
    name: 'rows',
    concurrency: 2,
    bySender: false,
    timeoutMs: 3000,
    open: async () => {},
    close: async () => {},
    durability: async () => 'process',
    advice: () => 'none',
    clock: async () => now(),
    isAboutOne: () => false,
    asFault: (error) => (error instanceof Error ? error : new Fault('store_unavailable', String(error))),
    commit: async ({ at, units, counts }: CommitRequest): Promise<CommitResult> => {
      kept.calls.commit += 1;
      const empty = { now: now(), rows: [], counts: [], nonces: undefined };
      if (at < now() - Math.max(1000, rowsOf(units)) || at > now() + 5)
        return { ...empty, isOld: true, refused: [] };
      const holds = ({ expects, writes }: Unit): boolean => [...expects, ...writes].every(matches);
      const taken = units.map(holds);
      for (const [index, unit] of units.entries())
        if (taken[index]) unit.writes.forEach((write) => put(kept, write, now()));
      const refused = [...units.keys()].filter((index) => !taken[index]);
      const seen = refused.flatMap((index) => [
        ...(units[index]?.expects ?? []),
        ...(units[index]?.writes ?? []),
      ]);
      return { ...look(kept, seen, counts, now()), isOld: false, refused };
    },
    load: async ({ rows: ids, bodies, counts }: LoadRequest): Promise<LoadResult> => {
      kept.calls.load += 1;
      return look(kept, [...ids, ...bodies], counts, now());
    },
    due: async ({ suspects, max, holdMs, longestMs, after }: DueRequest): Promise<DueResult> => {
      kept.calls.due += 1;
      const at = now();
      if (suspects) return dueSuspect(kept, at, { holdMs, longestMs });
      const dueOf = ({ write, heldUntil }: Kept): number => Math.max(write.dueAt ?? Infinity, heldUntil);
      const all = [...rows.values()].filter(({ write }) => write.dueAt !== null);
      const turns = new Map<string, number>();
      const due = all
        .filter((row) => isDue(dueOf(row), at, longestMs))
        .toSorted((a, b) => dueOf(a) - dueOf(b) || a.place - b.place)
        .map((row) => {
          const turn = turns.get(row.scope.sender) ?? 0;
          turns.set(row.scope.sender, turn + 1);
          return { row, turn };
        })
        .toSorted(
          (a, b) => a.turn - b.turn || senderTurn(a.row, after).localeCompare(senderTurn(b.row, after)),
        )
        .slice(0, max)
        .map(({ row }) => row);
      for (const row of due) row.heldUntil = at + holdMs;
      const next = Math.min(...all.filter((row) => !due.includes(row)).map(dueOf));
      return {
        ...look(kept, due, [], at),
        due,
        nextDueMs: next === Infinity ? undefined : Math.max(0, next - at),
        isSuspectDue: suspectsAt(kept, at, longestMs).length > 0,
      };
    },
    page: async ({ state, sender, limit, after = '0' }: InboxQuery): Promise<Page> => {
      const found = [...rows.values()]
        .filter(
          ({ write, scope, place }) =>
            write.list === state &&
            (sender === undefined || scope.sender === sender) &&
            place > Number(after),
        )
        .filter(({ write: { expiresAt } }) => expiresAt === null || expiresAt > now())
        .toSorted((a, b) => a.place - b.place);
      const last = found[limit - 1];
      return {
        rows: found.slice(0, limit),
        ...(found.length > limit && last && { next: String(last.place) }),
      };
    },
    registrations: {
      due: async ({ kind, max, longestMs, after }) => {
        const at = now();
        const all = [...rows.values()].filter((row) => row.kind === kind && row.write.waitsFor !== null);
        const dueOf = ({ write }: Kept): string => write.waitsFor ?? '';
        const turns = new Map<string, number>();
        const due = all
          .filter((row) => isDue(Number(dueOf(row).slice(2)), at, longestMs))
          .toSorted((a, b) => (dueOf(a) < dueOf(b) ? -1 : dueOf(a) > dueOf(b) ? 1 : a.id < b.id ? -1 : 1))
          .map((row) => {
            const turn = turns.get(row.scope.sender) ?? 0;
            turns.set(row.scope.sender, turn + 1);
            return { row, turn };
          })
          .toSorted(
            (a, b) => a.turn - b.turn || senderTurn(a.row, after).localeCompare(senderTurn(b.row, after)),
          )
          .slice(0, max)
          .map(({ row }) => row);
        const next = Math.min(
          ...all.filter((row) => !due.includes(row)).map((row) => Number(dueOf(row).slice(2))),
        );
        return { now: at, rows: due, nextDueMs: next === Infinity ? undefined : Math.max(0, next - at) };
      },
      list: async ({ kind, list, sender, limit, after }) => {
        const place = ({ scope, id }: RowId): string => JSON.stringify([scope.sender, id]);
        const behind = after && JSON.stringify([after.sender, after.id]);
        return [...rows.values()]
          .filter((row) => row.kind === kind && (list === undefined || row.write.link === list))
          .filter(({ scope }) => (sender === undefined ? scope.sender !== '' : scope.sender === sender))
          .toSorted((a, b) => (place(a) < place(b) ? -1 : 1))
          .filter((row) => behind === undefined || place(row) > behind)
          .slice(0, limit);
      },
    },
    overdueMs: async () => {
      const due = [...rows.values()]
        .map(({ write }) => write.dueAt ?? write.suspect?.at ?? Infinity)
        .filter((at) => at <= now());
      return due.length > 0 ? now() - Math.min(...due) : undefined;
    },
    sweep: async (of: Scope | NoncesOf | 'nonces', most: number) => {
      kept.calls.sweep += 1;
      const gone = [...rows].filter(
        ([, { scope, kind, write }]) =>
          write.expiresAt !== null && write.expiresAt <= now() && isIn(of, scope, kind),
      );
      for (const [name] of gone.slice(0, most)) rows.delete(name);
      return Math.min(gone.length, most);
    },
  };
}

/** Those that are due, the one whose turn it is first. */
function suspectsAt({ rows }: KeptRows, at: number, longestMs: number): readonly Kept[] {
  return [...rows.values()]
    .filter(
      ({ write, heldUntil }) => write.suspect && isDue(Math.max(write.suspect.at, heldUntil), at, longestMs),
    )
    .toSorted(
      (a, b) => (a.write.suspect?.crashes ?? 0) - (b.write.suspect?.crashes ?? 0) || a.place - b.place,
    );
}

function dueSuspect(
  kept: KeptRows,
  at: number,
  { holdMs, longestMs }: Pick<DueRequest, 'holdMs' | 'longestMs'>,
): DueResult {
  const [first, ...others] = suspectsAt(kept, at, longestMs);
  if (first) first.heldUntil = at + holdMs;
  return {
    ...look(kept, first ? [first] : [], [], at),
    due: first ? [first] : [],
    nextDueMs: undefined,
    isSuspectDue: others.length > 0,
  };
}

function put(kept: KeptRows, write: Write, now: number): void {
  const name = nameOf(write);
  const before = kept.rows.get(name);
  const { scope, kind, id, next, data } = write;
  const body = write.body ? new Uint8Array(write.body) : write.body === undefined ? before?.body : undefined;
  const { expiresAt = null } = before?.write ?? {};
  // What comes in the place of one that has expired is a new one.
  const isNew = !before || (expiresAt !== null && expiresAt <= now);
  const place = isNew ? (kept.place += 1) : before.place;
  kept.rows.set(name, {
    scope,
    kind,
    id,
    version: next,
    data,
    ...(body && { body }),
    write,
    place,
    heldUntil: 0,
  });
}

function counted({ rows }: KeptRows, scope: Scope): Counted {
  const own = [...rows.values()].filter((row) => scopeName(row.scope) === scopeName(scope));
  const nonces = [...rows.values()].filter((row) => isIn({ noncesOf: scope.sender }, row.scope, row.kind));
  const bytes = own.reduce((sum, { write }) => sum + write.bytes, 0);
  return { scope, rows: own.length, bytes, nonces: nonces.length };
}

/** With what comes with them. */
function look(kept: KeptRows, ids: readonly RowId[], counts: readonly Scope[], now: number): LoadResult {
  const found = new Map<string, Row>();
  const add = (id: RowId, more: number): void => {
    const row = kept.rows.get(nameOf(id));
    if (!row || (found.has(nameOf(id)) && more === 0)) return;
    found.set(nameOf(id), row);
    if (more === 0) return;
    const { scope, kind, write } = row;
    if (kind === 'record' && write.link !== null) add({ scope, kind: 'task', id: write.link }, more - 1);
    if (kind !== 'task') return;
    if (write.link !== null) add({ scope, kind: 'record', id: write.link }, 0);
    const first = [...kept.rows.values()]
      .filter((other) => other.scope.sender === scope.sender && other.write.waitsFor === row.id)
      .toSorted((a, b) => a.place - b.place);
    for (const row of first.slice(0, 2)) add(row, 0);
  };
  for (const id of ids) add(id, 2);
  return {
    now,
    rows: [...found.values()].map((row) => ({ ...row, ...(row.body && { body: new Uint8Array(row.body) }) })),
    counts: counts.map((scope) => counted(kept, scope)),
    nonces:
      counts.length > 0 ? [...kept.rows.values()].filter(({ kind }) => kind === 'nonce').length : undefined,
  };
}

function isIn(of: Scope | NoncesOf | 'nonces', scope: Scope, kind: RowKind): boolean {
  if (of === 'nonces') return kind === 'nonce';
  return 'noncesOf' in of
    ? kind === 'nonce' && scope.sender === of.noncesOf
    : scopeName(scope) === scopeName(of);
}

/** By their names, from the one behind `after` on. */
const senderTurn = ({ scope: { sender } }: RowId, after: string): string =>
  `${Number(sender <= after)}${sender}`;
