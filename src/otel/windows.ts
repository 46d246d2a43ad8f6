// Measures a reconciler's report windows by OpenTelemetry each time metrics are collected (docs/observability.md).
// Buyers call it, in one process for each store.

import { type BatchObservableResult, type MeterProvider, metrics } from '@opentelemetry/api';
import { onlyKnown, wholeNumber } from '../config/validate.ts';
import type { StreamPage } from '../reconcile/account.ts';
import type { Reconciler } from '../reconcile/reconciler-options.ts';
import type { StreamAccount } from '../reconcile/stream-account.ts';
import { STREAM_PAGES, type WithStreamPages } from '../reconcile/stream-pages.ts';
import { ConfigError } from '../shared/errors.ts';
import { createLabels, METER } from './metrics.ts';

/** Options of `reconcileMetrics`: the reconciler, the OpenTelemetry meter provider, and limits for what is counted. */
export interface ReconcileMetricsOptions {
  /** The reconciler whose report windows are measured. It need not be started. */
  readonly reconciler: Reconciler;
  /** The provider of metrics. Default: the global one. */
  readonly meterProvider?: MeterProvider;
  /**
   * The number of sellers that appear in metrics by agent URL, in the order in which they are listed first. Later
   * ones are `_other`. Default: 100.
   */
  readonly maxSenders?: number;
  /** The largest number of media buys that one measurement reads. Default: 10 000. */
  readonly maxCounted?: number;
}

const OPTION_NAMES: Readonly<Record<keyof ReconcileMetricsOptions, true>> = {
  reconciler: true,
  meterProvider: true,
  maxSenders: true,
  maxCounted: true,
};

const STATES = ['due', 'missing', 'held'] as const;

/** The sums for one seller, over all its media buys. */
interface Sums extends Record<(typeof STATES)[number], number> {
  /** The time since the earliest missing report window was due. Ms. */
  oldestMs: number;
}

/** The largest number of media buys in one page. */
const PAGE = 1000;

/**
 * Records OpenTelemetry metrics of a reconciler's report windows each time metrics are collected. It counts windows
 * that are due, windows that are missing, and windows that are held because their event is DEAD. It also measures the
 * time since the earliest missing window was due.
 *
 * Call it in one process, because several would measure the same store. The gauges have no values while the store is
 * unreachable.
 * @returns a function that ends the recording.
 * @throws ConfigError for a value that is not a reconciler, or for an unknown option.
 * @example
 * ```ts
 * import { reconcileMetrics } from 'proto-webhooks/otel';
 * import type { Reconciler } from 'proto-webhooks/reconcile';
 *
 * export function measured(reconciler: Reconciler): () => void {
 *   return reconcileMetrics({ reconciler });
 * }
 * ```
 */
export function reconcileMetrics(options: ReconcileMetricsOptions): () => void {
  onlyKnown('reconcileMetrics', options, OPTION_NAMES);
  const pages = accountOf(options.reconciler);
  const labelOf = createLabels(wholeNumber('reconcileMetrics: maxSenders', options.maxSenders, 100, 0));
  const most = wholeNumber('reconcileMetrics: maxCounted', options.maxCounted, 10_000);
  const meter = (options.meterProvider ?? metrics.getMeterProvider()).getMeter(METER);
  const windows = meter.createObservableGauge('webhook.report_windows', {
    description: 'Report windows that are due, and of these missing ones and those whose event is DEAD',
    unit: '{window}',
  });
  const oldest = meter.createObservableGauge('webhook.report_windows.oldest_missing', {
    description: 'Time since the earliest missing report window was due; 0 if none is missing',
    unit: 's',
  });

  async function measure(result: BatchObservableResult): Promise<void> {
    const sums = new Map<string, Sums>();
    for await (const { streams, asOf } of pagesOf(pages, most)) {
      for (const stream of streams) add(sums, labelOf(stream.agentUrl), stream, asOf);
    }
    for (const [label, sum] of sums) {
      for (const state of STATES) {
        result.observe(windows, sum[state], { 'webhook.state': state, 'webhook.sender': label });
      }
      result.observe(oldest, sum.oldestMs / 1000, { 'webhook.sender': label });
    }
  }

  const gauges = [windows, oldest];
  // If the store is unreachable, its gauges are left out, because an old value would be wrong.
  const observe = (result: BatchObservableResult): Promise<void> => measure(result).catch(() => undefined);
  meter.addBatchObservableCallback(observe, gauges);
  return () => meter.removeBatchObservableCallback(observe, gauges);
}

function accountOf(reconciler: Reconciler): WithStreamPages[typeof STREAM_PAGES] {
  const pages = (reconciler as Partial<Reconciler & WithStreamPages> | undefined)?.[STREAM_PAGES];
  if (pages) return pages;
  throw new ConfigError(
    'reconcileMetrics: reconciler is not a reconciler. Give what createReconciler returned: reconcileMetrics({ reconciler }).',
  );
}

/**
 * Yields the pages of the reconciler's account, which lists its media buys. It stops after the page with which at least
 * `most` media buys are read.
 */
async function* pagesOf(
  pages: WithStreamPages[typeof STREAM_PAGES],
  most: number,
): AsyncGenerator<StreamPage> {
  let count = 0;
  let after: string | undefined;
  do {
    const page = await pages({ limit: Math.min(PAGE, most), after });
    yield page;
    count += page.streams.length;
    after = page.next;
  } while (after !== undefined && count < most);
}

function add(
  sums: Map<string, Sums>,
  label: string,
  { windows, missing, held }: StreamAccount,
  asOf: number,
): void {
  const known = sums.get(label) ?? { due: 0, missing: 0, held: 0, oldestMs: 0 };
  const ages = missing.map(({ dueAt }) => asOf - Date.parse(dueAt));
  sums.set(label, {
    due: known.due + windows.due,
    missing: known.missing + missing.length,
    held: known.held + held.length,
    oldestMs: ages.reduce((most, one) => Math.max(most, one), known.oldestMs),
  });
}
