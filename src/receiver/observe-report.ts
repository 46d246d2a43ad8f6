// Passes a pulled delivery report (one that the buyer requested) to the handlers (owed.md §4.3).
// Called by the reconciler for each window whose report it requested from the seller.

import type { DeliveryReport } from '../events/event.ts';
import type { Observed } from '../events/observation.ts';
import { REPORT_TASK_TYPE } from '../events/report-names.ts';
import type { ReceiverContext } from './context.ts';
import { observePulledWith } from './observe-pulled.ts';

/** A report that the buyer requested from the seller, about one media buy and one report window (owed.md §4.3). */
export interface PulledReport {
  /** The agent URL of the seller. */
  readonly sender: string;
  readonly mediaBuyId: string;
  readonly report: DeliveryReport;
}

/**
 * Passes a pulled report to the handlers. The result is `duplicate` if the same window was reported before (owed.md
 * §3.2).
 */
export type ObserveReport = (pulled: PulledReport) => Promise<Observed>;

/**
 * Returns the function that passes pulled reports to the handlers.
 * @throws UnfitObservation (rejects) for a report that cannot be stored, Fault if the store cannot accept it now.
 */
export const observeReportWith = (context: ReceiverContext): ObserveReport =>
  observePulledWith(context, {
    name: 'the report',
    envelope: ({ mediaBuyId, report }) => ({
      task_id: mediaBuyId,
      task_type: REPORT_TASK_TYPE,
      status: 'completed',
      result: report,
    }),
  });
