// Defines the settings and functions that all parts of a reconciler share. Also reads rows of the store that this
// process has leased.
import type { CallSessions } from '../calls/sessions.ts';
import type { ReceiverContext } from '../receiver/context.ts';
import type { ObserveReport } from '../receiver/observe-report.ts';
import type { ObserveState } from '../receiver/observe-state.ts';
import type { CallSeller } from '../registrations/call-seller.ts';
import type { Capabilities } from '../registrations/capabilities.ts';
import type { RegistrationRow, RegistrationRows, StoreRegistrations } from '../stores/store.ts';
import type { Tolerance } from './evaluate.ts';
import type { ScheduledBuy } from './schedule-option.ts';
import type { BookedBuy, TotalsMargins } from './totals.ts';

/** The settings, functions and store that all parts of a reconciler share. */
export interface ReconcilerContext {
  readonly parts: Pick<ReceiverContext, 'config' | 'logger' | 'raiseAlarm' | 'now'>;
  readonly rows: StoreRegistrations;
  readonly observe: ObserveReport;
  readonly observeState: ObserveState;
  readonly capabilities: Capabilities;
  readonly call: CallSeller;
  readonly sessions: CallSessions;
  readonly schedule: (buy: ScheduledBuy) => unknown;
  /** The option `ours` and its tolerance. Absent: `ours` was not given, so no totals are compared. */
  readonly totals?: {
    readonly ours: (buy: BookedBuy) => unknown;
    readonly tolerance: TotalsMargins;
  };
  /** The time for which the record of a closed media buy is kept. Ms. */
  readonly keepMs: number;
  readonly tolerance: Tolerance;
  readonly callMs: number;
  /** The time between two requests for the impairments of a media buy. Ms. */
  readonly snapshotMs: number;
  /**
   * The duration of the lease that this process takes on a row while it checks the row. Longer than a call takes. Ms.
   */
  readonly leaseMs: number;
  readonly perSeller: number;
  /** The most rows of one kind that this process checks concurrently, e.g. rows of media buys. */
  readonly concurrency: number;
  /** The longest wait between two searches for due rows, because another process may have added a row meanwhile. Ms. */
  readonly lookMs: number;
  /** Waits for `ms`, or less if the signal aborts. */
  readonly sleep: (ms: number, signal: AbortSignal) => Promise<void>;
}

/** A row of the store that this process has leased until `dueAt`. */
export type Held = Pick<RegistrationRow, 'sender' | 'id' | 'dueAt'>;

/** Returns the leased row. Undefined if another process has leased the row since, or if the row was deleted. */
export function heldRow(
  rows: RegistrationRows,
  kind: RegistrationRow['kind'],
  { id, dueAt }: Held,
): RegistrationRow | undefined {
  const row = rows.get(kind, id);
  return row?.dueAt === dueAt ? row : undefined;
}
