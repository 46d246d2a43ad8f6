import { ConfigError } from '../../errors.ts';
import type { CompleteRequest } from '../contract.ts';
import type { Rows } from '../rules/rows.ts';
import { complete, heldBy, leaseLost } from '../rules/settle.ts';
import type { SqliteHandle } from './handle.ts';
import { asFault } from './handle.ts';

/**
 * The owner's writes and the completion as one step, to be run in a transaction of its own: the lease is looked at
 * before (a paused process must not begin) and by `complete` at the end (nor finish).
 */
export function transactionStep<T>(
  db: SqliteHandle,
  rows: Rows,
  request: CompleteRequest,
  fn: (tx: unknown) => T | Promise<T>,
  now: () => number,
): T {
  if (!inStore(() => heldBy(rows, request, now()))) throw leaseLost();
  inStore(() => db.exec('SAVEPOINT webhook_fn'));
  const result = fn(db);
  if (isThenable(result)) {
    // It goes on after the rollback: what it writes then is not ours, what it throws has no other listener.
    Promise.resolve(result).catch(() => undefined);
    throw new ConfigError(
      'ctx.transaction: SQLite transactions are synchronous, but the function returned a promise; its writes were rolled back. ' +
        'Await what it needs first, then call ctx.transaction with a function that is not async.',
    );
  }
  checkStillOpen(db);
  if (inStore(() => complete(rows, request, now())) === 'lost') throw leaseLost();
  return result;
}

/** A COMMIT or ROLLBACK inside `fn` ends the savepoint too: its writes would stand, or fall, without the completion. */
function checkStillOpen(db: SqliteHandle): void {
  try {
    db.exec('RELEASE webhook_fn');
  } catch (error) {
    throw new ConfigError(
      'ctx.transaction: the function ended the transaction itself, so the event could not be completed with it. ' +
        'Leave out COMMIT and ROLLBACK: return to commit, throw to roll back.',
      { cause: error },
    );
  }
}

/** The store's own statements fail as faults; what `fn` throws is the caller's and goes through as it is. */
function inStore<T>(step: () => T): T {
  try {
    return step();
  } catch (error) {
    throw asFault(error);
  }
}

function isThenable<T>(value: T | Promise<T>): value is Promise<T> {
  return typeof (value as { readonly then?: unknown } | null | undefined)?.then === 'function';
}
