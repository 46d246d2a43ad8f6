// Recognises delivery reports and warns of their mistakes (contract.md §6.9, §6.10, owed.md §3.1).
// Called while a body is read, for both transports.

import { type JsonObject, isJsonObject, present } from '../codec/members.ts';
import type { DeliveryReport, EventChannel, EventWarning } from './event.ts';
import { MAX_REPORTED_WINDOWS, REPORT_TASK_TYPE } from './report-names.ts';
import { deliveryReportSchema, REPORT_TYPES } from './schemas.ts';
import { eventWarning } from './warnings.ts';

/** Returns the name in lower case, with `-` replaced by `_`. Nearly every `task_type` already has that form. */
function plainName(text: string): string {
  return /^[0-9_a-z]*$/.test(text) ? text : text.toLowerCase().replaceAll('-', '_');
}

/**
 * True if a result is meant as a delivery report, by its envelope's `task_type` or by its own members. A response
 * of `get_media_buy_delivery` also has `media_buy_deliveries`, but with `aggregated_totals`, which a report must
 * not have.
 */
export function isReportShaped(taskType: string | undefined, result: unknown): boolean {
  if (taskType !== undefined && plainName(taskType) === REPORT_TASK_TYPE) return true;
  if (!isJsonObject(result)) return false;
  if (hasReportType(result)) return true;
  return (
    taskType === undefined &&
    present(result, 'aggregated_totals') === undefined &&
    Array.isArray(present(result, 'media_buy_deliveries'))
  );
}

/**
 * True if the body is a delivery report without its envelope: the report's members are at the top level, not in
 * `result` (contract.md §6.10).
 */
export function isBareReport(payload: JsonObject): boolean {
  if (present(payload, 'result') !== undefined) return false;
  return hasReportType(payload) || Array.isArray(present(payload, 'media_buy_deliveries'));
}

/** Returns `data` itself with a type; undefined if it is no delivery report. */
export function reportOf(data: unknown): DeliveryReport | undefined {
  // Only the schema's verdict is used, because its copy would differ from what was sent.
  return deliveryReportSchema.safeParse(data).success ? (data as DeliveryReport) : undefined;
}

/**
 * Returns warnings about a report with too many media buys, and about a pulled report without figures by package
 * (owed.md §3.1, §4.3). A pulled report was fetched from the seller, not sent by it.
 */
export function rowWarnings(
  { media_buy_deliveries: rows }: DeliveryReport,
  source: EventChannel | undefined,
): readonly EventWarning[] {
  const isShort = source === 'pull' && rows?.some(({ by_package: packages }) => !packages);
  return [
    ...((rows?.length ?? 0) > MAX_REPORTED_WINDOWS ? [eventWarning('report_too_wide')] : []),
    ...(isShort ? [eventWarning('pulled_without_packages')] : []),
  ];
}

/** Returns warnings about members that must not be in a report's result (contract.md §6.9). */
export function reportWarnings(data: unknown): readonly EventWarning[] {
  if (!isJsonObject(data)) return [];
  return [
    ...(present(data, 'aggregated_totals') === undefined
      ? []
      : [eventWarning('report_has_aggregated_totals')]),
    ...(present(data, 'notification_id') === undefined ? [] : [eventWarning('report_has_notification_id')]),
  ];
}

/** True if the payload's own `notification_type` is a type of delivery report, e.g. `scheduled`. */
export function hasReportType(payload: JsonObject): boolean {
  const type = present(payload, 'notification_type');
  return REPORT_TYPES.some((known) => known === type);
}
