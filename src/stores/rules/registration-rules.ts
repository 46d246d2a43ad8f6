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

/** What `StoreRegistrations` reads and writes, as `Rows` for events. Every read ignores rows that have expired. */
export type RegistrationTable = Pick<
  Rows,
  'task' | 'record' | 'updateRecord' | 'registration' | 'saveRegistration' | 'needRows'
>;

/** Rows that can be searched in the same atomic step. */
export interface RegistrationSearch extends RegistrationTable {
  /** Due at `now`, at most so many: the earliest of each sender, then the second; senders from the one behind `after` on. */
  dueRegistrations(of: DueRegistrations, now: number): readonly RegistrationRow[];
  /** When the earliest of all is due, or was. */
  nextRegistration(kind: RegistrationKind): number | undefined;
  /** At most so many, expired ones too, behind `after`, by sender and id. */
  registrations(of: ListedRegistrations): readonly RegistrationRow[];
}

/** Which due rows are looked for. */
export interface DueRegistrations {
  readonly kind: RegistrationKind;
  readonly max: number;
  /** The sender whose turn was last; '' before the first. */
  readonly after: string;
}

/** Which rows are listed. */
export interface ListedRegistrations {
  readonly kind: RegistrationKind;
  /** undefined: all. */
  readonly list: string | undefined;
  /** undefined: all but ''. */
  readonly sender: string | undefined;
  readonly limit: number;
  /** undefined: from the beginning. */
  readonly after: RegistrationName | undefined;
}

/** The last row of a page. */
export interface RegistrationName {
  readonly sender: string;
  readonly id: string;
}

type RowsPlan<T> = (rows: RegistrationRows, now: number) => T;

/** What a plan came to; told outside the step, for others may share it. */
export interface Planned<T> {
  readonly value: () => T;
}

/** Runs a plan over the rows of one sender. What it saves is written where it has not thrown. */
export function planned<T>(
  table: RegistrationTable,
  sender: string,
  plan: RowsPlan<T>,
  now: number,
): Planned<T> {
  const saved = new Map<string, RegistrationRow>();
  const made = new Set<string>();
  const wanted: NeededRow[] = [];
  // A row that the table cannot give now is its own affair, whatever the plan makes of it.
  let fault: { readonly error: unknown } | undefined;
  const read = <R>(from: () => R): R => {
    try {
      return from();
    } catch (error) {
      fault = { error };
      throw error;
    }
  };
  // The plan goes on, so that all that it asks for are known; what it comes to is dropped.
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

/** How far an event is. */
function stateOf(record: RecordRow | undefined): 'done' | 'dead' | 'safe' | 'unsafe' | undefined {
  if (!record || record.state === 'stale') return undefined;
  if (record.state === 'applied') return 'done';
  if (record.state === 'dead') return 'dead';
  return record.acked ? 'safe' : 'unsafe';
}

/** As its sender's next copy would in inbox mode. */
function makeSafe(table: RegistrationTable, sender: string, key: string, now: number): void {
  const record = table.record(sender, key, now);
  if (record) table.updateRecord({ ...record, acked: true, expiresAt: null });
}

/** @throws TypeError: the caller's mistake. */
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
 * How long a row of a kind waits at most. Ms. A call that is under way holds its operation: that is due when its time comes,
 * and at no other, for nobody else may make the call meanwhile.
 */
export function longestTurnMs(kind: RegistrationKind): number {
  return kind === 'watch' || kind === 'subscription' || kind === 'move' ? LONGEST_TURN_MS : Infinity;
}

/** `isDue`, of a row. */
export function isTurn(kind: RegistrationKind, at: number, now: number): boolean {
  return isDue(at, now, longestTurnMs(kind));
}

/** Puts a row off that is due. @returns it; undefined where it is not due any more. */
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

/** The first of each sender, then the second of each; senders by their names, from the one behind `after` on. */
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

/** The longest page, and the most rows of one look. */
const MOST = 1000;

/** A number of rows, as it may be. */
export function bounded(count: number): number {
  return Math.min(Math.max(1, Math.floor(count)), MOST);
}

/** @throws ConfigError for an `after` that no page gave. */
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

/** What follows a page, as one text: how long the sender is, the sender, the id. */
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

/** @param found one more than the page is to have, where there is one; expired ones too. */
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

/** One atomic step of a backend, on its clock. */
type Atomic = <T>(step: (rows: RegistrationSearch, now: number) => T) => Promise<T>;

/** `Store.registrations` of a backend that brings the rows. */
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
