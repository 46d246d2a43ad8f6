// The texts of warnings, and the list of members that do not fit a schema.
// Called while events are read, and by the stages that add warnings.

import { printableName } from '../codec/printable.ts';
import type { WarningCode } from '../shared/codes.ts';
import type { EventWarning } from './event.ts';

const SENTENCES: Record<WarningCode, string> = {
  missing_operation_id: 'the envelope has no operation_id: it cannot be correlated with the request',
  missing_task_type: 'the envelope has no task_type',
  missing_timestamp: 'the envelope has no timestamp: it is not ordered',
  invalid_timestamp: 'the timestamp is not an RFC 3339 date-time with a zone: the event is not ordered',
  unknown_status: 'the status is unknown',
  after_terminal: 'a non-terminal status came after a terminal one of the same task',
  second_terminal_status:
    'another terminal status of the same task came before, under another idempotency_key',
  end_dropped: 'the idempotency_key was used before for something else: this end of the task is not handled',
  wrapped_response: 'the data part is only {response: {…}}: the sender wrapped the result once too often',
  completed_without_data: 'the status is completed without a result: it does not end the task',
  later_artifact: 'a later artifact than the first has data: it is read only if nothing else has data',
  report_has_aggregated_totals:
    'the delivery report has aggregated_totals, which belong to get_media_buy_delivery',
  report_has_notification_id:
    'the delivery report has a notification_id, which belongs to state-shaped events',
  report_after_final: 'the final delivery report of its media buy came before',
  report_too_wide:
    'the delivery report has more than 10 000 media buys: the account of reports has the first',
  pulled_without_packages: 'the report was pulled, and the seller gives its window without packages',
  invalid_delivery_report: 'the delivery report lacks members or has some of the wrong type',
  token_missing: 'the delivery carries no notification token, and one is registered',
  token_mismatch: 'the delivery carries another notification token than the one that is registered',
  invalid_notification:
    "the payload is not its family's: it lacks what identifies it, or a member has another type",
  result_schema_mismatch: 'the result does not fit the schema of its task type',
  invalid_progress: 'the progress or input request has members of the wrong type',
  derived_idempotency_key: 'the payload has no idempotency_key: the SHA-256 of its bytes is used instead',
  inexact_number: 'a number has more digits than a double holds: event.rawBody has it exactly',
  operation_id_unknown: 'no operation registered with this seller has the operation_id',
  operation_id_mismatch: 'the operation_id is of one registered operation, and the task of another',
  context_mismatch: 'the context is not the one of the call',
  webhook_after_terminal_response:
    'the call was answered with its result at once, and no webhook should follow that',
};

/**
 * Makes a warning.
 * @param detail added in brackets, for the owner. If it comes from the body, it must already be sanitized.
 */
export function eventWarning(code: WarningCode, detail?: string): EventWarning {
  return { code, message: detail === undefined ? SENTENCES[code] : `${SENTENCES[code]} (${detail})` };
}

/** A fault that a schema found in a value, in the form that Standard Schema and zod share. */
export interface Issue {
  readonly path?: readonly (PropertyKey | { readonly key: PropertyKey })[] | undefined;
}

/** The largest number of members that one warning lists. */
const MAX_PLACES = 4;

/**
 * Lists the members that do not fit a schema. The reasons are left out: messages of schemas may quote values, and the
 * body is never logged.
 * @param whole the name of the value, for an issue that concerns the whole value.
 */
export function placesOf(issues: readonly Issue[], whole: string): string {
  const places = issues.slice(0, MAX_PLACES).map(({ path = [] }) => {
    const keys = path.map((step) => (typeof step === 'object' ? step.key : step));
    return keys.length === 0 ? whole : keys.map((key) => printableName(String(key))).join('.');
  });
  return `at ${places.join(', ')}`;
}
