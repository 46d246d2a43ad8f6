/** For both processes of the run "frozen transaction". */

/** Over in the other process, whose clock is put ahead. */
export const LEASE_MS = 30_000;
export const IDLE_MS = 1500;

/** What the process that is frozen says of an event. */
export interface Told {
  readonly key: string;
  readonly what: string;
}

/** The owner's own: a row that all events write, and a line for each effect. $1 is the key, $2 who it was. */
export const WRITE = (schema: string): string =>
  `WITH held AS (UPDATE ${schema}.balance SET n = n + 1 RETURNING n) INSERT INTO ${schema}.effect SELECT $1, $2 FROM held`;
