// Counts the answers to a call that this package refused, e.g. as too large, and stops the call after three (calls.md
// §4.10). The seller has answered, so it may have done the work, and each repeat would get the same answer.
import type { RaiseAlarm } from '../shared/alarms.ts';
import { boundedCall } from '../calls/bounded-call.ts';
import { requireBounded } from '../calls/bounds.ts';
import { type AnswerRefusedError, refusedBy } from '../calls/refused-answer.ts';
import type { Hashes } from '../crypto/engine.ts';
import { storedId } from '../stages/ids.ts';
import type { StoreRegistrations } from '../stores/store.ts';
import { closedRow, type OperationName, type OperationSeen, rowOf, seenOf, storedIn } from './operation.ts';
import { requireCall } from './option-checks.ts';
import type { CallSeller } from './call-seller.ts';
import type { AnyonesRegistration, Registration } from './registration.ts';

/** The number of refused answers after which a call is no longer repeated (calls.md §4.10). */
const MOST_REFUSED = 3;

export interface RefusedAnswers {
  /** The option `call`, which calls sellers; undefined if the owner makes calls by hand. */
  readonly seller: CallSeller | undefined;
  readonly registrations: StoreRegistrations;
  readonly hashes: Hashes;
  /** The time for which an operation is kept after its end. Ms. */
  readonly retentionMs: number;
  readonly raise: RaiseAlarm;
}

/** Wraps a registration, so that answers which this package refuses are counted, and reported by an alarm. */
export function countingRefused(registration: AnyonesRegistration, counting: RefusedAnswers): Registration {
  const { agentUrl, operationId } = registration;
  const judged = async <T>(isAnswered: () => boolean, work: () => Promise<T>): Promise<T> => {
    try {
      return await work();
    } catch (error) {
      const refused = refusedBy(error, isAnswered());
      if (!refused) throw error;
      await count({ agentUrl, operationId }, refused, counting);
      throw refused;
    }
  };
  const { callBy, ...own } = registration;
  return {
    ...own,
    call: async (options) => {
      const { call, signal = new AbortController().signal } = requireCall(counting.seller, options);
      let isAnswered = false;
      const bounded = boundedCall(call, () => (isAnswered = true));
      return judged(
        () => isAnswered,
        () => callBy(bounded, signal),
      );
    },
    settle: (answer) =>
      judged(
        () => true,
        async () => {
          requireBounded(answer);
          return registration.settle(answer);
        },
      ),
    again: () => {
      const again = registration.again();
      return again && countingRefused(again, counting);
    },
  };
}

/**
 * Counts a refused answer in the store, and raises an alarm. After `MOST_REFUSED` answers the operation is orphaned:
 * the call is given up. Does nothing if the call is no longer made.
 */
async function count(
  of: OperationName,
  { message, reason }: AnswerRefusedError,
  { registrations, hashes, retentionMs, raise }: RefusedAnswers,
): Promise<void> {
  const kept = await registrations.run(of.agentUrl, (rows, now) => {
    const row = rows.get('operation', storedId(of.operationId, hashes));
    const stored = row && storedIn(row);
    if (stored?.state !== 'calling') return undefined;
    const refusals = (stored.refusals ?? 0) + 1;
    const isOver = refusals >= MOST_REFUSED;
    rows.save(
      isOver
        ? closedRow(of, { ...stored, reason }, 'orphaned', { now, retentionMs })
        : rowOf(of, { ...stored, refusals }, row?.dueAt ?? null, null),
    );
    return { refusals, isOver, operation: row && seenOf(row, stored) };
  });
  if (!kept?.operation) return;
  const { refusals, isOver } = kept;
  const names = namesOf(kept.operation);
  raise({
    code: 'answer_refused',
    ...names,
    refusals,
    message: `${message} It is unknown whether ${names.taskType} was done. ${isOver ? 'It is not called again.' : `It is called again: ${refusals} of at most ${MOST_REFUSED} calls.`}`,
  });
  if (!isOver) return;
  raise({
    code: 'operation_orphaned',
    ...names,
    message: `It is unknown whether ${names.taskType} was done: the answers of ${refusals} calls were refused, the last one because ${reason}. Ask the seller.`,
  });
}

function namesOf({ agentUrl: sender, operationId, taskType, ref }: OperationSeen): {
  readonly sender: string;
  readonly operationId: string;
  readonly taskType: string;
  readonly ref?: string;
} {
  return { sender, operationId, taskType, ...(ref !== undefined && { ref }) };
}
