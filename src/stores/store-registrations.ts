// Defines the rows that registrations, pollers and the reconciler keep beside the events: `Store.registrations`.
// Called by `src/registrations`, `src/poll` and `src/reconcile`. The store does not interpret the value of a row. Only
// its rules of reports and states read the values of streams, snapshots and operations.

/**
 * The kind of a row that `createRegistrations` or a poller keeps in a store. `operation`: a call to a seller.
 * `route`: a URL that was given to a seller. `watch`: a task that is polled. `stream`: the account of a media buy's
 * reports. `subscription`: the notifications that an account, or an agent, is to send. `snapshot`: a request that is
 * repeated, and whose answer has all present states. `move`: a media buy whose seller is to be asked to send to
 * another URL.
 */
export type RegistrationKind =
  'operation' | 'route' | 'watch' | 'stream' | 'subscription' | 'snapshot' | 'move';

/**
 * A row that `createRegistrations` or a poller keeps in a store, named by its sender, kind and id. The store does not
 * interpret its value. The row is included in the sender's `maxRecordsPerSender`.
 */
export interface RegistrationRow {
  readonly kind: RegistrationKind;
  /** The sender, as in `AcceptRequest`; '' if the row belongs to no single sender. */
  readonly sender: string;
  /** The id, not empty. */
  readonly id: string;
  /** The value, opaque to the store, at most 1 MiB. */
  readonly value: string;
  /**
   * The time at which the row is due, Unix ms on the store's clock; null: never. A row with a due time needs a
   * sender, and must not expire.
   */
  readonly dueAt: number | null;
  /** The name of the list on which `page` finds the row; null: the row is on no list. */
  readonly list: string | null;
  /** The time of expiry, Unix ms on the store's clock; null: never. A time in the past, e.g. 1, deletes the row. */
  readonly expiresAt: number | null;
}

/**
 * The rows of one sender that `createRegistrations` or a poller keeps, as the function passed to
 * `StoreRegistrations.run` reads and writes them. All writes of that function take effect together or not at all.
 */
export interface RegistrationRows {
  /** Returns a row; undefined if there is none, or it has expired. */
  get(kind: RegistrationKind, id: string): RegistrationRow | undefined;
  /**
   * Returns the progress of the task's terminal status, as events with `TaskClaim.told` reported it. `done`: applied,
   * or DEAD. `safe`: acknowledged, but a newer status may still make it stale. `unsafe`: not acknowledged.
   * Undefined: the task has none.
   * @param id the task's id, as in `TaskClaim`.
   */
  taskEnd(id: string): 'done' | 'safe' | 'unsafe' | undefined;
  /**
   * Returns the task's last applied status, as events with `TaskClaim.told` reported it, and the time at which it was
   * applied. Undefined if there is none. Unix ms on the store's clock.
   * @param id the task's id, as in `TaskClaim`.
   */
  lastTold(id: string): { readonly status: string; readonly at: number } | undefined;
  /**
   * Returns the progress of an event. `done`: its handler has completed. `dead`: DEAD. `safe`: acknowledged, and a
   * worker handles it. `unsafe`: not acknowledged. Undefined: there is no record of it, or it was discarded.
   */
  eventState(key: string): 'done' | 'dead' | 'safe' | 'unsafe' | undefined;
  /** Acknowledges an event whose state is `unsafe`, so that a worker handles it. Changes no other event. */
  acknowledge(key: string): void;
  /**
   * Inserts or replaces a row.
   * @throws TypeError for a row of another sender, or one that `RegistrationRow` does not allow.
   */
  save(row: RegistrationRow): void;
}

/**
 * Asks `StoreRegistrations.due` for rows whose time (`dueAt`) has come, e.g. tasks to poll next. Each returned row
 * is withheld from other callers for `holdMs`.
 */
export interface RegistrationDueRequest {
  readonly kind: RegistrationKind;
  /** The largest number of rows, 1 to 1000. */
  readonly max: number;
  /** The time after which each returned row is due again, unless it is written before, ms. */
  readonly holdMs: number;
  /** The configured senders. A store that keeps a list of senders also considers those on its list. */
  readonly senders: readonly string[];
}

/**
 * The rows that `StoreRegistrations.due` returned to this caller, e.g. tasks to poll now, and the time until the next
 * row is due.
 */
export interface RegistrationDueResult {
  readonly rows: readonly RegistrationRow[];
  /** The time until another known row comes due, ms; absent if none is known. */
  readonly nextDueMs?: number;
}

/**
 * Selects the rows of `createRegistrations` and pollers that `StoreRegistrations.page` returns: those of one kind,
 * and of one sender or one `RegistrationRow.list` if given. They come one page at a time.
 */
export interface RegistrationQuery {
  readonly kind: RegistrationKind;
  /** The name of the list. Absent: all rows. */
  readonly list?: string;
  /** The sender. Absent: all senders but ''. */
  readonly sender?: string;
  /** The largest number of rows, 1 to 1000. */
  readonly limit: number;
  /** The `next` of the previous page. Absent: the first page. */
  readonly after?: string;
}

/** One page of rows from `StoreRegistrations.page`. Pass `next` as `after` to get the next page. */
export interface RegistrationPage {
  readonly rows: readonly RegistrationRow[];
  /** The `after` of the next page. Absent on the last page. */
  readonly next?: string;
}

/**
 * The part of a store that keeps the rows of `createRegistrations` and of pollers: calls, URLs, and tasks to poll.
 * `Store.registrations` is one. Every rule of `Store` applies.
 */
export interface StoreRegistrations {
  /**
   * Runs `plan` over the rows of a sender in one atomic step. It may run several times, over other rows each time,
   * so it must read and write only `rows`. If it throws, nothing is written and the error is passed on.
   * @param plan receives the rows and the store's clock, Unix ms.
   */
  run<T>(sender: string, plan: (rows: RegistrationRows, now: number) => T): Promise<T>;
  /**
   * Returns due rows, each to one caller only. Senders take turns: the earliest row of each, then the second of
   * each. Each call begins with another sender.
   */
  due(request: RegistrationDueRequest): Promise<RegistrationDueResult>;
  /**
   * Lists unexpired rows, sender by sender. Each page is a separate snapshot. A row that is listed from before the
   * first page until after the last is on exactly one page.
   */
  page(query: RegistrationQuery): Promise<RegistrationPage>;
}
