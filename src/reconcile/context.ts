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
  /** Absent: the owner has no function `ours`, and no totals are compared. */
  readonly totals?: {
    readonly ours: (buy: BookedBuy) => unknown;
    readonly tolerance: TotalsMargins;
  };
  /** A closed stream is kept for so long. Ms. */
  readonly keepMs: number;
  readonly tolerance: Tolerance;
  readonly callMs: number;
  /** Between two snapshots of a media buy. Ms. */
  readonly snapshotMs: number;
  /** The time for which a stream is held while it is looked at: longer than a call takes. Ms. */
  readonly leaseMs: number;
  readonly perSeller: number;
  /** Streams that are looked at at once, in this process. */
  readonly concurrency: number;
  /** The longest wait between two looks: another process may have made a stream meanwhile. Ms. */
  readonly lookMs: number;
  /** Resolves early where the signal aborts. */
  readonly sleep: (ms: number, signal: AbortSignal) => Promise<void>;
}

/** A row as it was taken: it is this process's until `dueAt`. */
export type Held = Pick<RegistrationRow, 'sender' | 'id' | 'dueAt'>;

/** The row that was taken; undefined where it is another process's by now, or gone. */
export function heldRow(
  rows: RegistrationRows,
  kind: RegistrationRow['kind'],
  { id, dueAt }: Held,
): RegistrationRow | undefined {
  const row = rows.get(kind, id);
  return row?.dueAt === dueAt ? row : undefined;
}
