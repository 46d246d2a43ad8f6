// The entry `proto-webhooks/otel`: records metrics and traces of a receiver by OpenTelemetry (docs/observability.md).
// Buyers and `serve` call it. `@opentelemetry/api` is a peer dependency; the caller brings the SDK.

import { metrics, trace, type MeterProvider, type TracerProvider } from '@opentelemetry/api';
import { flag, onlyKnown, wholeNumber } from '../config/validate.ts';
import { ConfigError } from '../shared/errors.ts';
import { type Instruments, CONTEXT } from '../receiver/instruments.ts';
import type { Receiver } from '../config/receiver-options.ts';
import type { WithContext, ReceiverContext } from '../receiver/context.ts';
import { observedBy } from '../stages/on-handled.ts';
import { createLabels, createMetrics, METER } from './metrics.ts';
import { createTraces } from './traces.ts';

export type { Poll, PollResult } from '../poll/poller.ts';
export { type PollMetricsOptions, pollMetrics } from './polls.ts';
export type { Reconciler } from '../reconcile/reconciler-options.ts';
export { type ReconcileMetricsOptions, reconcileMetrics } from './windows.ts';

/**
 * Options of `instrument`: the OpenTelemetry providers, the link to sellers' traces, and two limits. These are the
 * number of sellers that appear by name, and the number of events that a measurement of the queue counts.
 */
export interface InstrumentOptions {
  /** The provider of metrics. Default: the global one. */
  readonly meterProvider?: MeterProvider;
  /** The provider of traces. Default: the global one. */
  readonly tracerProvider?: TracerProvider;
  /**
   * If true, links a delivery's span to the trace in the seller's `traceparent`. That trace is never the parent,
   * because anyone can write the header. Default: false, and the header is not read.
   */
  readonly linkSellers?: boolean;
  /**
   * The number of senders that appear in metrics by agent URL, in the order of their first events. Later ones are
   * `_other`. Default: 100.
   */
  readonly maxSenders?: number;
  /**
   * The largest number of events per state that one measurement of the queue counts. Each 1 000 events cost one call of
   * the store. Default: 10 000.
   */
  readonly maxCounted?: number;
}

const OPTION_NAMES: Readonly<Record<keyof InstrumentOptions, true>> = {
  meterProvider: true,
  tracerProvider: true,
  linkSellers: true,
  maxSenders: true,
  maxCounted: true,
};

function partsOf(receiver: Receiver): ReceiverContext {
  const parts = (receiver as Partial<Receiver & WithContext> | undefined)?.[CONTEXT];
  if (parts) return parts;
  throw new ConfigError(
    'instrument: the first argument is not a receiver. Give what createReceiver returned: instrument(receiver).',
  );
}

/**
 * Records OpenTelemetry metrics and traces of a receiver in this process, from now on. An error in OpenTelemetry
 * affects no delivery and no handler. Log lines and alarms stay those of the receiver.
 * @returns a function that ends the recording.
 * @throws ConfigError for a value that is not a receiver, for a receiver that is already instrumented, or for an
 *   unknown option.
 * @example
 * ```ts
 * import type { Receiver } from 'proto-webhooks';
 * import { instrument } from 'proto-webhooks/otel';
 *
 * export function observed(receiver: Receiver): () => void {
 *   return instrument(receiver, { maxSenders: 50 });
 * }
 * ```
 */
export function instrument(receiver: Receiver, options: InstrumentOptions = {}): () => void {
  onlyKnown('instrument', options, OPTION_NAMES);
  const parts = partsOf(receiver);
  const { instruments } = parts;
  if (instruments.delivery) {
    throw new ConfigError(
      'instrument: the receiver is instrumented already. Do it once, or remove the first: const off = instrument(receiver); off().',
    );
  }
  const labelOf = createLabels(wholeNumber('instrument: maxSenders', options.maxSenders, 100, 0));
  const maxCounted = wholeNumber('instrument: maxCounted', options.maxCounted, 10_000);
  const linkSellers = flag('instrument: linkSellers', options.linkSellers);
  const meter = (options.meterProvider ?? metrics.getMeterProvider()).getMeter(METER);
  const tracer = (options.tracerProvider ?? trace.getTracerProvider()).getTracer(METER);
  const measured = createMetrics(meter, { receiver, parts, labelOf, maxCounted });
  const traces = createTraces(tracer, { parts, labelOf, linkSellers });

  const before = instruments.handled;
  const added: Required<Instruments> = {
    delivery: (run) => traces.delivery(run, measured.delivery()),
    handler: traces.handler,
    handled: (handled) => {
      before?.(handled);
      measured.handled(handled);
    },
    fetched: measured.fetched,
  };
  Object.assign(instruments, added);
  Object.assign(parts.observed, observedBy(parts));
  return () => {
    if (instruments.delivery !== added.delivery) return;
    delete instruments.delivery;
    delete instruments.handler;
    delete instruments.fetched;
    if (before) instruments.handled = before;
    else delete instruments.handled;
    measured.stop();
  };
}
