// The package entry `proto-webhooks/reconcile`: exports `createReconciler`, which uses the timers of the runtime.
import { sleep } from '../shared/time-limits.ts';
import { type Reconciler, type ReconcilerOptions, reconcilerOf } from './reconciler-options.ts';

/** The longest wait between two searches of the store for due rows. Ms. */
const LOOK_MS = 10_000;

export type { Receiver } from '../config/receiver-options.ts';
export type { Registrations } from '../registrations/registrations.ts';
export type { Adoption } from '../registrations/adopt.ts';
export type { Account, AccountQuery } from './account.ts';
export { CompareError, type CompareQuery } from './compare-totals.ts';
export type {
  DiscoveredMediaBuy,
  DiscoveredTask,
  DiscoverQuery,
  Discovery,
  DiscoveryError,
} from './discover-types.ts';
export type { Reconciler, ReconcilerOptions } from './reconciler-options.ts';
export type { ReportSchedule, ScheduledBuy } from './schedule-option.ts';
export type {
  HeldWindow,
  ImpairmentAccount,
  MissingWindow,
  StreamAccount,
  TotalsAccount,
} from './stream-account.ts';
export type { SnapshotQuery, SnapshotReader, SnapshotState } from './state-readers.ts';
export type { SellerBacklog, TaskAttention, TaskCounts } from './tasks-account.ts';
export type { BookedBuy, TotalsTolerance } from './totals.ts';
export type { BuyTotals, ComparedTotals } from '../registrations/streams.ts';

/**
 * Creates a reconciler. It tracks which delivery reports each registered media buy owes, and passes missing reports,
 * which it requests from sellers, to the receiver's `deliveryReport` handler. It reports those that it could not get.
 *
 * Log lines and alarms go to the receiver's `logger` and `onAlarm`.
 * @throws ConfigError if an option is missing or wrong; the message says what to change.
 * @example
 * ```ts
 * import type { Receiver } from 'proto-webhooks';
 * import { createReconciler } from 'proto-webhooks/reconcile';
 * import type { Registrations } from 'proto-webhooks/registrations';
 *
 * export async function reconcile(receiver: Receiver, registrations: Registrations): Promise<boolean> {
 *   const reconciler = createReconciler({ receiver, registrations });
 *   await reconciler.start();
 *   const page = await reconciler.account();
 *   return page.complete;
 * }
 * ```
 */
export function createReconciler(options: ReconcilerOptions): Reconciler {
  return reconcilerOf(options, { sleep, lookMs: LOOK_MS });
}
