// Defines the parts that a reconciler works with, and a row that is reserved for this process.
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

/** The parts that a reconciler works with. */
export interface ReconcilerContext {
  readonly parts: Pick<ReceiverContext, 'config' | 'logger' | 'raiseAlarm' | 'now'>;
  readonly rows: StoreRegistrations;
  readonly observe: ObserveReport;
  readonly observeState: ObserveState;
  readonly capabilities: Capabilities;
  readonly call: CallSeller;
  readonly sessions: CallSessions;
  readonly schedule: (buy: ScheduledBuy) => unknown;
  /** The owner's function for totals. Absent: the option `ours` was not given, so no totals are compared. */
  readonly totals?: {
    readonly ours: (buy: BookedBuy) => unknown;
    readonly tolerance: TotalsMargins;
  };
  /** The time for which a closed stream is kept. Ms. */
  readonly keepMs: number;
  readonly tolerance: Tolerance;
  readonly callMs: number;
  /** The time between two requests for the impairments of a media buy. Ms. */
  readonly snapshotMs: number;
  /** The time for which a stream is reserved while it is checked: longer than a call takes. Ms. */
  readonly leaseMs: number;
  readonly perSeller: number;
  /** The most streams that this process checks concurrently. */
  readonly concurrency: number;
  /**
   * The longest wait between two searches for due rows, because another process may have made a stream meanwhile. Ms.
   */
  readonly lookMs: number;
  /** Resolves early if the signal aborts. */
  readonly sleep: (ms: number, signal: AbortSignal) => Promise<void>;
}

/** A row that is reserved for this process until `dueAt`. */
export type Held = Pick<RegistrationRow, 'sender' | 'id' | 'dueAt'>;

/** Returns the reserved row; undefined if another process has taken it since, or it was deleted. */
export function heldRow(
  rows: RegistrationRows,
  kind: RegistrationRow['kind'],
  { id, dueAt }: Held,
): RegistrationRow | undefined {
  const row = rows.get(kind, id);
  return row?.dueAt === dueAt ? row : undefined;
}
