/*
 * What is kept of registrations, in the store that has their events: an operation that a seller was asked for, a route by
 * which it sends, a task that is watched. A store knows no more of a row than this file says; what its value means, its
 * writer knows.
 */

/** What a row is of. */
export type RegistrationKind = 'operation' | 'route' | 'watch';

/** One row, by sender, kind and id. Counted as a record of its sender. */
export interface RegistrationRow {
  readonly kind: RegistrationKind;
  /** As in `AcceptRequest`; '' for what belongs to no sender alone. */
  readonly sender: string;
  /** Not ''. */
  readonly id: string;
  /** Opaque to the store. At most 1 MiB. */
  readonly value: string;
  /** When somebody is to look at it, on the store's clock, Unix ms; null: never. One that has it has a sender, and does not expire. */
  readonly dueAt: number | null;
  /** What it is listed as, of `page`'s `list`; null: nothing. */
  readonly list: string | null;
  /** From then on it is absent, on the store's clock, Unix ms; null: never. One that is past deletes it, e.g. 1. */
  readonly expiresAt: number | null;
}

/** The rows of one sender, in one atomic step. */
export interface RegistrationRows {
  /** undefined: there is none, or it has expired. */
  get(kind: RegistrationKind, id: string): RegistrationRow | undefined;
  /**
   * How far the task's end is, by the claims of its events that said by which channel they came. `done`: applied, or DEAD. `safe`:
   * acknowledged, but a newer status may still make it stale. `unsafe`: not acknowledged.
   * @param id as in `TaskClaim`.
   */
  taskEnd(id: string): 'done' | 'safe' | 'unsafe' | undefined;
  /** The task's status that was applied last, by the same claims, and when: Unix ms on the store's clock. @param id as in `TaskClaim`. */
  lastTold(id: string): { readonly status: string; readonly at: number } | undefined;
  /** Inserts or replaces. @throws TypeError for a row of another sender, or one as `RegistrationRow` rules out. */
  save(row: RegistrationRow): void;
}

/** Which rows somebody is to look at. */
export interface RegistrationDueRequest {
  readonly kind: RegistrationKind;
  /** At most so many; 1 to 1000. */
  readonly max: number;
  /** Each row that is given is due again after so long, unless it is written before. Ms. */
  readonly holdMs: number;
  /** Configured senders; a store that registers senders itself adds those. */
  readonly senders: readonly string[];
}

/** Rows that were due, as they are now: held. */
export interface RegistrationDueResult {
  readonly rows: readonly RegistrationRow[];
  /** Ms until another one is known to come due; absent where none is. */
  readonly nextDueMs?: number;
}

/** Which rows to list. */
export interface RegistrationQuery {
  readonly kind: RegistrationKind;
  /** Those that are listed as this; all where it is absent. */
  readonly list?: string;
  /** Of one sender; of all but '' where it is absent. */
  readonly sender?: string;
  /** At most so many; 1 to 1000. */
  readonly limit: number;
  /** `next` of the page before. */
  readonly after?: string;
}

/** A page of rows. */
export interface RegistrationPage {
  readonly rows: readonly RegistrationRow[];
  /** Absent on the last page. */
  readonly next?: string;
}

/** What a store keeps of registrations. Every rule of `Store` holds for these methods too. */
export interface StoreRegistrations {
  /**
   * Runs `plan` over the rows of a sender in one atomic step. It may run several times, over other rows each time: it reads
   * and writes `rows` alone. What it throws is thrown on, with nothing written.
   * @param plan `now` is the store's clock, Unix ms.
   */
  run<T>(sender: string, plan: (rows: RegistrationRows, now: number) => T): Promise<T>;
  /**
   * Rows that are due, each given to one caller: the earliest of each sender, then the second of each, and of the senders
   * from call to call another one first.
   */
  due(request: RegistrationDueRequest): Promise<RegistrationDueResult>;
  /**
   * Unexpired rows, sender by sender. Each page is of its own moment: a row that is listed from before the
   * first page until after the last is on exactly one of them.
   */
  page(query: RegistrationQuery): Promise<RegistrationPage>;
}
