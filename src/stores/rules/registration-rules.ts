// Rules of registrations, the rows that are kept beside the events: plans (callers' functions over the rows), due rows
// and pages (`StoreRegistrations`).
// Called by memory, SQLite and the optimistic store inside one atomic step, with the current time passed in.
import { ConfigError } from '../../shared/errors.ts';
import type {
  RegistrationDueResult,
  RegistrationKind,
  RegistrationPage,
  RegistrationQuery,
  RegistrationRow,
  RegistrationRows,
  StoreRegistrations,
} from '../store-registrations.ts';
import type { NeededRow, RecordRow, Rows } from './rule-rows.ts';
import { taskEnd } from './channels.ts';
import { isDue, leftMs } from './task-wait.ts';
import { LONGEST_TURN_MS } from '../constants.ts';

/** The reads and writes that `StoreRegistrations` needs: a part of `Rows`. Every read ignores expired rows. */
export type RegistrationTable = Pick<
  Rows,
  'task' | 'record' | 'updateRecord' | 'registration' | 'saveRegistration' | 'needRows'
>;

/** The rows of registrations, with searches for due rows and for pages in the same atomic step. */
export interface RegistrationSearch extends RegistrationTable {
  /**
   * Returns at most `max` rows that are due at `now`: the earliest of each sender, then the second of each. Senders are
   * ordered by name, beginning with the first name after `after`.
   */
  dueRegistrations(of: DueRegistrations, now: number): readonly RegistrationRow[];
  /** Returns the time at which the earliest row of the kind is or was due. Unix ms. */
  nextRegistration(kind: RegistrationKind): number | undefined;
  /** Returns at most `limit` rows that follow the row `after`, ordered by sender and id. Expired rows are included. */
  registrations(of: ListedRegistrations): readonly RegistrationRow[];
}

/** Selects the due rows that one call asks for. */
export interface DueRegistrations {
  readonly kind: RegistrationKind;
  readonly max: number;
  /** The sender of the last row that the previous call returned; '' in the first call. */
  readonly after: string;
}

/** Selects the rows of a page. */
export interface ListedRegistrations {
  readonly kind: RegistrationKind;
  /** undefined: rows of every list, and rows in no list. */
  readonly list: string | undefined;
  /** undefined: rows of every sender except ''. */
  readonly sender: string | undefined;
  readonly limit: number;
  /** The row after which the result begins; undefined: from the first row. */
  readonly after: RegistrationName | undefined;
}

/** The name of a row within its kind: its sender and its id. */
export interface RegistrationName {
  readonly sender: string;
  readonly id: string;
}

type RowsPlan<T> = (rows: RegistrationRows, now: number) => T;

/**
 * The result of a plan (a caller's function over the rows of a sender). `value` returns the plan's result or throws its
 * error. `value` is called after the atomic step, because other plans in the same step must not fail with this one.
 */
export interface Planned<T> {
  readonly value: () => T;
}

/**
 * Runs a plan (a caller's function) over the rows of one sender. The rows that the plan saves are written only if it
 * does not throw.
 */
export function planned<T>(
  table: RegistrationTable,
  sender: string,
  plan: RowsPlan<T>,
  now: number,
): Planned<T> {
  const saved = new Map<string, RegistrationRow>();
  const made = new Set<string>();
  const wanted: NeededRow[] = [];
  // The error of a read that the table cannot answer now. It is thrown even if the plan catches it.
  let fault: { readonly error: unknown } | undefined;
  const read = <R>(from: () => R): R => {
    try {
      return from();
    } catch (error) {
      fault = { error };
      throw error;
    }
  };
  // If a row is not loaded yet, the plan continues without it, so that all rows that the plan needs become known. The
  // result of this run is discarded.
  const wants = <R>(row: NeededRow, from: () => R): R | undefined => {
    try {
      return read(from);
    } catch (error) {
      if (!table.needRows) throw error;
      wanted.push(row);
      return undefined;
    }
  };
  const rows: RegistrationRows = {
    get: (kind, id) => {
      const own = saved.get(`${kind} ${id}`);
      if (own) return own.expiresAt === null || own.expiresAt > now ? own : undefined;
      return wants({ kind, id }, () => table.registration(kind, sender, id, now));
    },
    taskEnd: (id) => read(() => taskEnd(table, sender, id, now)),
    lastTold: (id) => read(() => table.task(sender, id, now)?.told ?? undefined),
    eventState: (key) => wants({ kind: 'record', id: key }, () => stateOf(table.record(sender, key, now))),
    acknowledge: (key) => {
      if (read(() => stateOf(table.record(sender, key, now))) === 'unsafe') made.add(key);
    },
    save: (row) => {
      requireOwn(row, sender);
      saved.set(`${row.kind} ${row.id}`, row);
    },
  };
  let value: T;
  try {
    value = plan(rows, now);
  } catch (error) {
    table.needRows?.(sender, wanted);
    if (fault) throw fault.error;
    return {
      value: () => {
        throw error;
      },
    };
  }
  table.needRows?.(sender, [...wanted, ...saved.values()]);
  if (fault) throw fault.error;
  for (const row of saved.values()) table.saveRegistration(row, now);
  for (const key of made) makeSafe(table, sender, key, now);
  return { value: () => value };
}

/** Returns the progress of the event that the record belongs to; undefined if the record is absent or stale. */
function stateOf(record: RecordRow | undefined): 'done' | 'dead' | 'safe' | 'unsafe' | undefined {
  if (!record || record.state === 'stale') return undefined;
  if (record.state === 'applied') return 'done';
  if (record.state === 'dead') return 'dead';
  return record.acked ? 'safe' : 'unsafe';
}

/** Acknowledges a record, so that a worker runs it. In mode inbox, another copy from the sender would do the same. */
function makeSafe(table: RegistrationTable, sender: string, key: string, now: number): void {
  const record = table.record(sender, key, now);
  if (record) table.updateRecord({ ...record, acked: true, expiresAt: null });
}

/**
 * Checks a row that a plan saves.
 *
 * @throws TypeError for a row of another sender, without an id, or with times that are not allowed.
 */
function requireOwn(row: RegistrationRow, sender: string): void {
  if (row.sender !== sender) {
    throw new TypeError('registrations.run: a row of another sender. Save it in a run of its own.');
  }
  if (row.id === '') throw new TypeError('registrations.run: a row without an id.');
  const { dueAt, expiresAt } = row;
  if (expiresAt !== null && !(expiresAt > 0)) throw new TypeError('registrations.run: expiresAt is over 0.');
  if (dueAt === null) return;
  if (sender === '' || expiresAt !== null || !Number.isSafeInteger(dueAt) || dueAt < 0) {
    throw new TypeError(
      'registrations.run: dueAt is a whole number of ms, of a row that has a sender and never expires.',
    );
  }
}

/**
 * Returns the longest time for which a row of the kind may wait to be due, in ms. Infinity: no limit. An operation has
 * no limit: while its call is under way it must not be due early, because nobody else may make the call.
 */
export function longestTurnMs(kind: RegistrationKind): number {
  return kind === 'watch' || kind === 'subscription' || kind === 'move' ? LONGEST_TURN_MS : Infinity;
}

/**
 * True if a row of the kind that is due at `at` may be processed now. Also true if `at` is further ahead than the
 * kind's longest wait: then the store's clock was set back.
 */
export function isTurn(kind: RegistrationKind, at: number, now: number): boolean {
  return isDue(at, now, longestTurnMs(kind));
}

/**
 * Reserves a due row for the caller, by moving its `dueAt` to `holdMs` from now.
 *
 * @returns the changed row; undefined if the row is no longer due.
 */
export function held(
  table: RegistrationTable,
  { kind, sender, id }: Pick<RegistrationRow, 'kind' | 'sender' | 'id'>,
  holdMs: number,
  now: number,
): RegistrationRow | undefined {
  const found = table.registration(kind, sender, id, now);
  if (!found || found.dueAt === null || !isTurn(kind, found.dueAt, now)) return undefined;
  const row = { ...found, dueAt: now + Math.max(1, Math.ceil(holdMs)) };
  table.saveRegistration(row, now);
  return row;
}

/**
 * Orders due rows so that senders take turns: the first row of each, then the second of each. Senders are ordered by
 * name, beginning with the first name after `after`.
 */
export function inTurns(
  bySender: ReadonlyMap<string, readonly RegistrationRow[]>,
  { max, after }: Pick<DueRegistrations, 'max' | 'after'>,
): readonly RegistrationRow[] {
  const names = [...bySender.keys()].sort();
  const senders = [...names.filter((name) => name > after), ...names.filter((name) => name <= after)];
  const rows: RegistrationRow[] = [];
  for (let turn = 0, before = -1; rows.length < max && rows.length > before; turn += 1) {
    before = rows.length;
    for (const sender of senders) {
      const row = bySender.get(sender)?.[turn];
      if (row && rows.length < max) rows.push(row);
    }
  }
  return rows;
}

/** The largest number of rows on a page, and from one call for due rows. */
const MOST = 1000;

/** Limits a number of rows to 1 … `MOST`. */
export function bounded(count: number): number {
  return Math.min(Math.max(1, Math.floor(count)), MOST);
}

/**
 * Reads a query for a page, and limits the number of rows.
 *
 * @throws ConfigError for an `after` that is not the `next` of an earlier page.
 */
export function listed(query: RegistrationQuery): ListedRegistrations {
  const { kind, list, sender, limit, after } = query;
  return {
    kind,
    list,
    sender,
    limit: bounded(limit),
    after: after === undefined ? undefined : nameIn(after),
  };
}

/**
 * Makes the `next` of a page, which callers pass as `after`. It is one text: the length of the sender, a space, the
 * sender, the id.
 */
function afterOf({ sender, id }: RegistrationName): string {
  return `${sender.length} ${sender}${id}`;
}

function nameIn(after: string): RegistrationName {
  const [start = '', length = ''] = /^([0-9]{1,7}) /.exec(after) ?? [];
  const end = start.length + Number(length);
  if (start === '' || after.length <= end) {
    throw new ConfigError(
      "after: is not the next of an earlier page. Give that page's next, or leave it out.",
    );
  }
  return { sender: after.slice(start.length, end), id: after.slice(end) };
}

/**
 * Makes a page of the unexpired rows.
 *
 * @param found the rows of the page, and one more if another page follows. Expired rows are included.
 */
export function pageOf<R>(
  found: readonly R[],
  { limit }: ListedRegistrations,
  rowOf: (row: R) => RegistrationRow,
  nameOf: (row: R) => RegistrationName,
  now: number,
): RegistrationPage {
  const page = found.slice(0, limit);
  const last = found.length > limit ? page.at(-1) : undefined;
  const rows = page.map(rowOf).filter(({ expiresAt }) => expiresAt === null || expiresAt > now);
  if (last === undefined) return { rows };
  return { rows, next: afterOf(nameOf(last)) };
}

/** Runs a function in one atomic step of a store, with the store's rows and current time. */
type Atomic = <T>(step: (rows: RegistrationSearch, now: number) => T) => Promise<T>;

/** Makes `Store.registrations` for a store: `atomic` gives access to its rows. */
export function registrationsOf(atomic: Atomic): StoreRegistrations {
  const last: Partial<Record<RegistrationKind, string>> = {};
  return {
    run: async (sender, plan) => (await atomic((rows, now) => planned(rows, sender, plan, now))).value(),
    due: ({ kind, max, holdMs }) =>
      atomic((rows, now): RegistrationDueResult => {
        const due = rows.dueRegistrations({ kind, max: bounded(max), after: last[kind] ?? '' }, now);
        last[kind] = due.at(-1)?.sender ?? last[kind] ?? '';
        const claimed = due.flatMap((row) => held(rows, row, holdMs, now) ?? []);
        const next = rows.nextRegistration(kind);
        return {
          rows: claimed,
          ...(next !== undefined && { nextDueMs: leftMs(next, now, longestTurnMs(kind)) }),
        };
      }),
    page: async (query) => {
      const of = listed(query);
      return atomic((rows, now) =>
        pageOf(
          rows.registrations({ ...of, limit: of.limit + 1 }),
          of,
          (row) => row,
          (row) => row,
          now,
        ),
      );
    },
  };
}
