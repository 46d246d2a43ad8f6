import { ConfigError, Fault } from '../../errors.ts';
import type { CompleteRequest } from '../contract.ts';
import { completeCall } from './call.ts';
import type { PgClient, PgPool } from './client.ts';
import { checkOut, giveBack, within } from './client.ts';
import { asFault, isServerError, sqlState } from './faults.ts';
import type { Server } from './server.ts';

export interface TransactionParts {
  readonly pool: PgPool;
  readonly server: Server;
  readonly timeoutMs: number;
}

/**
 * The owner's writes and the completion in one transaction of a client of its own. The lease is looked at before (a
 * paused process must not begin) and decides at the end, by the compare-and-set that is sent together with COMMIT; in
 * between it is renewed by others, and nothing of the store's is locked.
 * @param over a function that has not ended when it aborts is left alone, and its connection closed: it may go on
 *   writing on it, and nobody else may get those writes.
 * @throws what `fn` throws, rolled back; Fault `lease_lost`, rolled back; Fault `store_unavailable` where the connection
 *   breaks, at COMMIT with unknown outcome: then the record says what happened; what the owner's deferred constraints say.
 */
export async function runTransaction<T>(
  { pool, server, timeoutMs }: TransactionParts,
  request: CompleteRequest,
  fn: (tx: PgClient) => T | Promise<T>,
  over?: AbortSignal,
): Promise<T> {
  const call = completeCall(request, 'finish').json;
  await server.known();
  const client = await checkOut(pool, timeoutMs).catch((error: unknown) => {
    throw asFault(error);
  });
  try {
    const started = await begin(client, server.begin(call), timeoutMs);
    const value = await unlessOver(async () => fn(client), over);
    await commit(client, server.finish(call, started), timeoutMs);
    giveBack(client);
    return value;
  } catch (error) {
    const left = over?.aborted === true && error === over.reason;
    giveBack(client, left ? error : await rollBack(client, timeoutMs));
    throw error;
  }
}

/** @throws the signal's reason where it aborts first. */
async function unlessOver<T>(work: () => Promise<T>, over: AbortSignal | undefined): Promise<T> {
  if (!over) return work();
  over.throwIfAborted();
  let leave = (): void => {};
  const ended = new Promise<never>((_, reject) => {
    leave = () => reject(over.reason);
  });
  over.addEventListener('abort', leave);
  try {
    return await Promise.race([work(), ended]);
  } finally {
    over.removeEventListener('abort', leave);
  }
}

async function begin(client: PgClient, text: string, timeoutMs: number): Promise<string> {
  const results = await within(client.query(text), timeoutMs, 'BEGIN').catch((error: unknown) => {
    throw asFault(error);
  });
  const [row] = [results].flat().flatMap(({ rows }) => rows) as { readonly started: string | null }[];
  if (row?.started == null) throw leaseLost();
  return row.started;
}

async function commit(client: PgClient, text: string, timeoutMs: number): Promise<void> {
  try {
    await within(client.query(text), timeoutMs, 'COMMIT');
  } catch (error) {
    throw atCommit(error);
  }
}

/** By SQLSTATE. What is not here and no constraint of the owner's is a fault of ours. */
const AT_COMMIT: Readonly<Record<string, (cause: unknown) => Error>> = {
  PW003: () => leaseLost(),
  PW004: (cause) =>
    new ConfigError(
      'ctx.transaction: the function ended the transaction itself, so the event could not be completed with it. ' +
        'Leave out COMMIT and ROLLBACK: return to commit, throw to roll back.',
      { cause },
    ),
  '25P02': (cause) =>
    new ConfigError(
      'ctx.transaction: a statement of the function failed and its error was caught, so PostgreSQL had given the ' +
        'transaction up; its writes were rolled back. Let the error through, or put the statement into a SAVEPOINT.',
      { cause },
    ),
};

function atCommit(error: unknown): unknown {
  const state = sqlState(error) ?? '';
  const known = AT_COMMIT[state];
  if (known) return known(error);
  // A deferred constraint of the owner's tables fails here, and is the owner's.
  return state.startsWith('23') && isServerError(error) ? error : asFault(error);
}

/** @returns the error of a connection that is of no more use. */
async function rollBack(client: PgClient, timeoutMs: number): Promise<unknown> {
  try {
    await within(client.query('ROLLBACK'), timeoutMs, 'ROLLBACK');
    return undefined;
  } catch (error) {
    return error;
  }
}

function leaseLost(): Fault {
  return new Fault('lease_lost', 'The lease ran out or went to another owner; nothing was written.');
}
