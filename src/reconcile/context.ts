// Defines the parts that a reconciler works with, and a row that this process holds.
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
  /** Absent: the owner gave no function `ours`, so no totals are compared. */
  readonly totals?: {
    readonly ours: (buy: BookedBuy) => unknown;
    readonly tolerance: TotalsMargins;
  };
  /** The time for which a closed stream is kept. Ms. */
  readonly keepMs: number;
  readonly tolerance: Tolerance;
  readonly callMs: number;
  /** The time between two snapshots of a media buy. Ms. */
  readonly snapshotMs: number;
  /** The time for which a stream is held while it is looked at: longer than a call takes. Ms. */
  readonly leaseMs: number;
  readonly perSeller: number;
  /** The largest number of streams that this process looks at at once. */
  readonly concurrency: number;
  /** The longest wait between two looks, because another process may have made a stream meanwhile. Ms. */
  readonly lookMs: number;
  /** Resolves early if the signal aborts. */
  readonly sleep: (ms: number, signal: AbortSignal) => Promise<void>;
}

/** A row that was taken: it belongs to this process until `dueAt`. */
export type Held = Pick<RegistrationRow, 'sender' | 'id' | 'dueAt'>;

/** The row that was taken; undefined if it is another process's by now, or gone. */
export function heldRow(
  rows: RegistrationRows,
  kind: RegistrationRow['kind'],
  { id, dueAt }: Held,
): RegistrationRow | undefined {
  const row = rows.get(kind, id);
  return row?.dueAt === dueAt ? row : undefined;
}
