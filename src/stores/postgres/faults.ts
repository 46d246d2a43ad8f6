import { ConfigError, Fault } from '../../errors.ts';

/** SQLSTATE of an error that the server reported; undefined for any other error: the connection broke, or the driver. */
export function sqlState(error: unknown): string | undefined {
  if (!(error instanceof Error)) return undefined;
  const { code, severity } = error as { readonly code?: unknown; readonly severity?: unknown };
  // Node's network errors have a code too (`EPIPE` has five letters), but no severity.
  return typeof code === 'string' && typeof severity === 'string' ? code : undefined;
}

/** FATAL and the classes of shutdown end the connection. */
export function isServerError(error: unknown): boolean {
  const state = sqlState(error);
  if (state === undefined || state.startsWith('57P') || state.startsWith('08')) return false;
  return (error as { readonly severity?: unknown }).severity === 'ERROR';
}

/** Rolled back because of others who were there at the same time: deadlock, serialization failure. */
export function isRetryable(error: unknown): boolean {
  const state = sqlState(error);
  return state === '40P01' || state === '40001';
}

/** Classes of SQLSTATE that are about what was sent: data, constraints, sizes; and the server's own mistakes. */
const ABOUT_INPUT: readonly string[] = ['21', '22', '23', '54', 'XX', 'P0'];

/** One call of a batch may be the reason: the others must not fail with it. */
export function mayBeOneCalls(error: unknown): boolean {
  return ABOUT_INPUT.includes(sqlState(error)?.slice(0, 2) ?? '');
}

/** Where the owner has to do something, and what. */
const FIX: Readonly<Record<string, string>> = {
  '25006': ' The server is read-only: connect the pool to the primary (target_session_attrs=read-write).',
  '42501': ' Grant the role what docs/reliability.md says under "Postgres".',
  '3F000': ' Run migrate(pool).',
  '42P01': ' Run migrate(pool).',
  '42883': ' Run migrate(pool).',
  PW002: ' Set default_transaction_isolation to read committed for the role.',
};

/** What callers see: a fault of ours, 503. Faults and configuration errors pass. */
export function asFault(error: unknown): Error {
  if (error instanceof Fault || error instanceof ConfigError) return error;
  const state = sqlState(error);
  const reason = error instanceof Error && error.message !== '' ? error.message : String(error);
  const code = state === undefined ? '' : ` (${state})`;
  return new Fault('store_unavailable', `Postgres: ${reason}${code}.${FIX[state ?? ''] ?? ''}`, {
    cause: error,
  });
}
