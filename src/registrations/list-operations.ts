// Lists operations (registered calls) in pages, selected by their own state or by the polling state of their tasks.
// `registrations.list`, `proto-webhooks tasks` and `proto-webhooks state` use it.
import type { Hashes } from '../crypto/engine.ts';
import { storedId } from '../stages/ids.ts';
import type { RegistrationRow, StoreRegistrations } from '../stores/store.ts';
import { type OperationSeen, type OperationState, seenOf, storedIn } from './operation.ts';
import { watchIn, type WatchState } from './watch-task.ts';

/**
 * Selects the operations (registered calls to sellers) that `registrations.list` returns. Default: those of all sellers
 * and states. `after` is the `next` of the previous page.
 */
export interface OperationQuery {
  /**
   * The state of the operation, e.g. `open` or `ended`, or the polling state of its task. `watched`: the task is
   * polled. `unresolved`: polling was given up. The two kinds of state are independent.
   */
  readonly state?: OperationState | WatchState | undefined;
  /** The agent URL of the seller. Default: all sellers. */
  readonly agentUrl?: string | undefined;
  /** The largest number of operations, 1 to 1000. Default: 100. */
  readonly limit?: number | undefined;
  /** The `next` of the previous page. */
  readonly after?: string | undefined;
}

/**
 * One page of operations, returned by `registrations.list`. Pass `next` as `after` to get the next page; it is
 * absent on the last one.
 */
export interface OperationPage {
  readonly operations: readonly OperationSeen[];
  readonly next?: string;
}

const WATCH_STATES: Readonly<Record<WatchState, true>> = { watched: true, unresolved: true };

const isWatchState = (state: OperationQuery['state']): state is WatchState =>
  state !== undefined && Object.hasOwn(WATCH_STATES, state);

/** The number of operations on a page of `list`, if no limit is given. */
export const LISTED = 100;

/** Returns a page of operations, for `registrations.list`. */
export async function listOperations(
  registrations: StoreRegistrations,
  hashes: Hashes,
  { state, agentUrl, limit = LISTED, after }: OperationQuery,
): Promise<OperationPage> {
  const ofWatches = isWatchState(state);
  const { rows, next } = await registrations.page({
    kind: ofWatches ? 'watch' : 'operation',
    limit,
    ...(state && { list: state }),
    ...(agentUrl !== undefined && { sender: agentUrl }),
    ...(after !== undefined && { after }),
  });
  const operations = ofWatches ? await watchedBy(registrations, hashes, rows) : rows.map(seen);
  return { operations, ...(next !== undefined && { next }) };
}

const seen = (row: RegistrationRow): OperationSeen => seenOf(row, storedIn(row));

/**
 * Returns the operations of polled tasks, with one store transaction for each seller. If an operation has expired, the
 * facts that the task's row has are returned.
 */
async function watchedBy(
  registrations: StoreRegistrations,
  hashes: Hashes,
  watches: readonly RegistrationRow[],
): Promise<readonly OperationSeen[]> {
  const senders = [...new Set(watches.map(({ sender }) => sender))];
  const found = await Promise.all(
    senders.map((sender) => {
      const own = watches.filter((row) => row.sender === sender);
      return registrations.run(sender, (rows) =>
        own.map((watch) => {
          const row = rows.get('operation', storedId(watchIn(watch).operationId, hashes));
          return row ? seen(row) : seenByWatch(watch);
        }),
      );
    }),
  );
  return found.flat();
}

function seenByWatch(row: RegistrationRow): OperationSeen {
  const { operationId, taskId, taskType, status, since } = watchIn(row);
  return {
    agentUrl: row.sender,
    operationId,
    taskType,
    taskId,
    state: 'ended',
    createdAt: since,
    ...(status !== undefined && { status }),
  };
}
