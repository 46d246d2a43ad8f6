import type { DeliveryReport } from './event.ts';

type ReportType = DeliveryReport['notification_type'];

const TYPES: Record<ReportType, true> = {
  scheduled: true,
  final: true,
  delayed: true,
  adjusted: true,
  window_update: true,
};

/** Every `notification_type` of a delivery report. */
export const REPORT_TYPES: readonly ReportType[] = Object.keys(TYPES) as ReportType[];
