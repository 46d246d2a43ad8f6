import { ConfigError, Fault } from '../../errors.ts';

/** The number of an error that the server reported; undefined for any other error: the connection broke, or the driver. */
export function errorNumber(error: unknown): number | undefined {
  if (!(error instanceof Error)) return undefined;
  const { errno, sqlState } = error as { readonly errno?: unknown; readonly sqlState?: unknown };
  return typeof errno === 'number' && typeof sqlState === 'string' ? errno : undefined;
}

/** Shutdown, a killed connection, a packet that was too large: the server closes the connection. */
const CLOSING: readonly number[] = [1053, 1152, 1153, 1158, 1159, 1160, 1161, 1184, 1927, 2013, 4031];

export function isServerError(error: unknown): boolean {
  const number = errorNumber(error);
  return number !== undefined && !CLOSING.includes(number);
}

/** A deadlock, a row that moved, and a deadlock over the next AUTO_INCREMENT value, which has a number of its own. */
const ROLLED_BACK: readonly number[] = [1213, 1020, 1467];

/**
 * Rolled back because of others who were there at the same time. Not where a lock was waited for in vain: that was all the
 * time there is.
 */
export function isRetryable(error: unknown): boolean {
  return ROLLED_BACK.includes(errorNumber(error) ?? 0);
}

/** Classes of SQLSTATE that are about what was sent: data, constraints. */
const ABOUT_INPUT: readonly string[] = ['21', '22', '23'];

/** A packet, a value or a text of JSON that the server does not take: none of these has a class. */
const INPUTS: readonly number[] = [1153, 1366, 4035, 4036, 4037, 4038];

/** One call of a batch may be the reason: the others must not fail with it. */
export function mayBeOneCalls(error: unknown): boolean {
  const number = errorNumber(error);
  if (number === undefined) return false;
  const { sqlState } = error as { readonly sqlState?: string };
  return INPUTS.includes(number) || ABOUT_INPUT.includes((sqlState ?? '').slice(0, 2));
}

const READ_ONLY = ' The server is read-only: connect the pool to the primary.';
const GRANT = ' Grant the user what docs/reliability.md says under "MySQL".';
const MIGRATE = ' Run migrate(pool).';

/** Where the owner has to do something, and what. */
const FIX: Readonly<Record<number, string>> = {
  1290: READ_ONLY,
  1792: READ_ONLY,
  1836: READ_ONLY,
  1044: GRANT,
  1142: GRANT,
  1143: GRANT,
  1370: GRANT,
  1146: MIGRATE,
  1305: MIGRATE,
  1114: ' The disk, or the table space, is full.',
  1153: ' Set max_allowed_packet higher.',
};

/** What callers see: a fault of ours, 503. Faults and configuration errors pass. */
export function asFault(error: unknown): Error {
  if (error instanceof Fault || error instanceof ConfigError) return error;
  const number = errorNumber(error) ?? 0;
  const { code } = (error ?? {}) as { readonly code?: unknown };
  const reason = error instanceof Error && error.message !== '' ? error.message : String(code ?? error);
  const said = number === 0 ? '' : ` (${number})`;
  return new Fault('store_unavailable', `MySQL: ${reason}${said}.${FIX[number] ?? ''}`, { cause: error });
}
