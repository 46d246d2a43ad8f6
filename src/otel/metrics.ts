// Measures deliveries, handlers, fetches of key documents, the queue and tasks by OpenTelemetry, with the names in
// docs/observability.md. `instrument` calls it; `polls.ts` and `windows.ts` use its labels.

import {
  type Attributes,
  type BatchObservableResult,
  diag,
  type Histogram,
  type Meter,
} from '@opentelemetry/api';
import type { DeliveryWatch, Instruments } from '../receiver/instruments.ts';
import type { Handled, Receiver } from '../config/receiver-options.ts';
import type { Outcome } from '../shared/outcome.ts';
import type { ReceiverContext } from '../receiver/context.ts';
import type { WatchState } from '../registrations/watch-task.ts';
import type { StoreRegistrations } from '../stores/store.ts';

/** Runs work and ignores errors of telemetry, which must not affect a delivery. */
export function quietly<T>(work: () => T): T | undefined {
  try {
    return work();
  } catch (error) {
    try {
      diag.error('proto-webhooks/otel', error);
    } catch {
      // If reporting the error fails too, there is nobody left to inform.
    }
    return undefined;
  }
}

/** Name of the meter and the tracer. */
export const METER = 'proto-webhooks';

/**
 * Returns a function that makes the attribute for an agent URL. Each value costs a time series, and there may be
 * thousands of sellers. So only the first `most` are named, and all others are `_other`.
 */
export function createLabels(most: number): (sender: string) => string {
  const known = new Set<string>();
  return (sender) => {
    if (!known.has(sender)) {
      if (known.size >= most) return '_other';
      known.add(sender);
    }
    return sender;
  };
}

interface MetricsContext {
  readonly receiver: Receiver;
  readonly parts: ReceiverContext;
  readonly labelOf: (sender: string) => string;
  readonly maxCounted: number;
}

/** Functions that measure one delivery. */
export type DeliveryMeter = Pick<DeliveryWatch, 'passed'> & {
  readonly ended: (outcome: Outcome) => void;
};

interface Metrics {
  readonly delivery: () => DeliveryMeter;
  readonly handled: (handled: Handled) => void;
  readonly fetched: NonNullable<Instruments['fetched']>;
  readonly stop: () => void;
}

/**
 * The limits of histogram buckets. A verification takes a tenth of a millisecond, a handler up to a quarter of an hour.
 * Seconds.
 */
export const SECONDS: readonly number[] = [
  0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 900,
];

/** Creates the counters and histograms of a receiver. Their names and units are in docs/observability.md. */
export function createMetrics(meter: Meter, context: MetricsContext): Metrics {
  const { labelOf, parts } = context;
  const seconds = (name: string, description: string): Histogram =>
    meter.createHistogram(name, {
      description,
      unit: 's',
      advice: { explicitBucketBoundaries: [...SECONDS] },
    });
  const deliveries = meter.createCounter('webhook.deliveries', {
    description: 'Deliveries answered',
    unit: '{delivery}',
  });
  const fetches = meter.createCounter('webhook.key_documents.fetches', {
    description: 'Fetches of brand.json, key sets and revocation lists',
    unit: '{fetch}',
  });
  const verification = seconds(
    'webhook.verification.duration',
    'Checks 1 to 11, without the wait for a body',
  );
  const admission = seconds(
    'webhook.admission.duration',
    'Until the store decides, with the wait for a first copy',
  );
  const wait = seconds('webhook.handler.wait', 'From the arrival of an event to its first run');
  const run = seconds('messaging.process.duration', 'Runs of handlers');
  const system = { 'messaging.system': parts.protocols[0].name };
  const stop = observeState(meter, context);

  return {
    stop,
    delivery() {
      const marks = new Map<string, number>([['arrived', performance.now()]]);
      const since = (from: string, to: string): number | undefined => {
        const [began, ended] = [marks.get(from), marks.get(to)];
        return began === undefined || ended === undefined ? undefined : (ended - began) / 1000;
      };
      return {
        passed: (step) => void marks.set(step, performance.now()),
        ended(outcome) {
          const { kind, sender, code } = outcome;
          const attributes: Attributes = {
            'webhook.outcome': kind,
            ...(code !== undefined && { 'webhook.code': code }),
            ...(sender !== undefined && { 'webhook.sender': labelOf(sender) }),
          };
          quietly(() => deliveries.add(1, attributes));
          const headers = since('arrived', 'headers');
          const body = since('body', 'verified');
          const own = { 'webhook.outcome': kind };
          if (headers !== undefined && body !== undefined)
            quietly(() => verification.record(headers + body, own));
          const admitted = since('verified', 'admitted');
          if (admitted !== undefined) quietly(() => admission.record(admitted, own));
        },
      };
    },
    handled({ sender, state, kind, waitedMs, durationMs, run: runs }) {
      const attributes: Attributes = {
        ...system,
        'messaging.operation.name': 'process',
        'webhook.state': state,
        ...(kind !== undefined && { 'webhook.kind': kind }),
        'webhook.sender': labelOf(sender),
        ...((state === 'failed' || state === 'dead') && { 'error.type': state }),
      };
      quietly(() => run.record(durationMs / 1000, attributes));
      if (runs === 1) quietly(() => wait.record(waitedMs / 1000, { 'webhook.sender': labelOf(sender) }));
    },
    fetched(document, failure) {
      const attributes = {
        'webhook.document': document,
        ...(failure !== undefined && { 'error.type': failure }),
      };
      quietly(() => fetches.add(1, attributes));
    },
  };
}

/** Measures the store, the keys and the tasks each time metrics are collected. */
function observeState(meter: Meter, { receiver, parts, labelOf, maxCounted }: MetricsContext): () => void {
  const events = meter.createObservableGauge('webhook.events', {
    description: 'Unfinished events',
    unit: '{event}',
  });
  const overdue = meter.createObservableGauge('webhook.queue.overdue', {
    description: 'Time since the earliest due event came due; 0 if none is due',
    unit: 's',
  });
  const keys = meter.createObservableGauge('webhook.keys.fresh_for', {
    description: 'Remaining lifetime of a key set; negative after its end',
    unit: 's',
  });
  const keyIds = meter.createObservableGauge('webhook.keys.ids', {
    description: 'Key ids of sellers that came into use: in the last 5 minutes, and ever',
    unit: '{key}',
  });
  const tasks = meter.createObservableGauge('webhook.tasks', {
    description: 'Tasks being polled, and tasks given up',
    unit: '{task}',
  });
  const gauges = [events, overdue, keys, keyIds, tasks];
  const { store, now, closed } = parts;

  async function observeQueue(result: BatchObservableResult): Promise<void> {
    if (!store.inbox) return;
    const stats = await receiver.inbox.stats({ most: maxCounted });
    for (const state of ['queued', 'leased', 'dead'] as const) {
      result.observe(events, stats[state], { 'webhook.state': state });
    }
    const overdueMs = await store.inbox.overdueMs?.();
    if (store.inbox.overdueMs) result.observe(overdue, (overdueMs ?? 0) / 1000);
  }

  async function observeTasks(result: BatchObservableResult): Promise<void> {
    if (!store.registrations || !parts.registrations) return;
    for (const state of ['watched', 'unresolved'] as const) {
      const count = await countRows(store.registrations, state, maxCounted);
      result.observe(tasks, count, { 'webhook.state': state });
    }
  }

  async function observeKeys(result: BatchObservableResult): Promise<void> {
    const { senders, admissionPressure } = await receiver.health();
    if (admissionPressure) {
      result.observe(keyIds, admissionPressure.recent, { 'webhook.state': 'recent' });
      result.observe(keyIds, admissionPressure.known, { 'webhook.state': 'known' });
    }
    for (const { agentUrl, keysFreshUntil } of senders) {
      const label = labelOf(agentUrl);
      if (keysFreshUntil === undefined || label !== agentUrl) continue;
      result.observe(keys, (keysFreshUntil - now()) / 1000, { 'webhook.sender': label });
    }
  }

  // If the store is unreachable, its gauges are left out, because an old value would be wrong.
  const observe = async (result: BatchObservableResult): Promise<void> => {
    if (closed().aborted) return;
    await Promise.allSettled([observeQueue(result), observeKeys(result), observeTasks(result)]);
  };
  meter.addBatchObservableCallback(observe, gauges);
  return () => meter.removeBatchObservableCallback(observe, gauges);
}

/** The largest number of rows in one page. */
const PAGE = 1000;

/**
 * Returns the number of watches (tasks that are polled, or given up) in the state `list`. Counting ends with the page
 * in which `most` is reached.
 */
async function countRows(registrations: StoreRegistrations, list: WatchState, most: number): Promise<number> {
  let count = 0;
  let after: string | undefined;
  do {
    const of = { kind: 'watch', list, limit: PAGE, ...(after !== undefined && { after }) } as const;
    const page = await registrations.page(of);
    count += page.rows.length;
    after = page.next;
  } while (after !== undefined && count < most);
  return count;
}
