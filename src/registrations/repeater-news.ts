// Reports the outcome of a repeated call: an alarm if the call is never made again, otherwise a log line. The loop that
// repeats calls (retry-loop.ts) uses it.
import { AnswerRefusedError } from '../calls/refused-answer.ts';
import type { RaiseAlarm } from '../shared/alarms.ts';
import { isOfKind } from '../shared/errors.ts';
import type { SafeLogger } from '../shared/logging.ts';
import { isError } from '../shared/realms.ts';
import { SellerError } from './answer.ts';
import type { RepeaterNews } from './retry-loop.ts';

/**
 * Returns a function that reports the outcome of a repeated call. A seller's refusal is not reported here, because it
 * was reported when it was stored.
 */
export function teller(logger: SafeLogger, raise: RaiseAlarm): (news: RepeaterNews) => Promise<void> {
  return async (news) => {
    if (news.kind === 'orphaned') {
      const { agentUrl: sender, operationId, taskType, ref, isStep, reason } = news.operation;
      raise({
        code: 'operation_orphaned',
        message: `It is unknown whether ${taskType} was done: the call was not answered, and cannot be repeated${reason === undefined ? '' : `: ${reason}`}. Ask the seller.`,
        sender,
        operationId,
        taskType,
        ...(ref !== undefined && !isStep && { ref }),
      });
      return;
    }
    const { error } = news;
    // An answer that this package refused was reported when it was counted.
    if (isOfKind(error, AnswerRefusedError)) return;
    const message = isError(error) ? error.message : 'The thrown value is not an Error.';
    if (news.kind === 'store') {
      logger.warn({ error }, `Registrations: the store could not list the calls to repeat. ${message}`);
      return;
    }
    if (error instanceof SellerError && error.recovery !== 'transient') return;
    const { agentUrl: sender, operationId } = news.operation;
    logger.warn({ sender, operationId, error }, `A call is repeated later: it was not answered. ${message}`);
  };
}
