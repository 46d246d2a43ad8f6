/**
 * `proto-webhooks/otel`: metrics and traces of a receiver by OpenTelemetry (docs/observability.md). `@opentelemetry/api`
 * is a peer dependency; the SDK, exporters and samplers are yours.
 */
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

/** `instrument`'s options. */
export interface InstrumentOptions {
  /** The global one. */
  readonly meterProvider?: MeterProvider;
  /** The global one. */
  readonly tracerProvider?: TracerProvider;
  /**
   * A delivery's span is linked to the trace that the seller names in `traceparent`, which anyone can write: never its
   * parent, and looked at only where asked for. `false`.
   */
  readonly linkSellers?: boolean;
  /** Senders that are attributes by their agent URL, the first that are seen; those after them are `_other`. 100. */
  readonly maxSenders?: number;
  /** Events of a state that a look at the queue counts: a call of the store for each 1 000. 10 000. */
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
 * Counts, measures and traces what a receiver does, in this process, from now on. What a provider throws changes no
 * delivery and no handler's run.
 * Lines and alarms are the receiver's: it has no `logger` and no `onAlarm` of its own.
 * @returns what takes it off again.
 * @throws ConfigError for what is not a receiver, for one that is instrumented, and for options that are not known.
 */
export function instrument(receiver: Receiver, options: InstrumentOptions = {}): () => void {
  onlyKnown('instrument', options, OPTION_NAMES);
  const parts = partsOf(receiver);
  const { instruments } = parts;
  if (instruments.delivery) {
    throw new ConfigError(
      'instrument: the receiver is instrumented already. Do it once, or take the first off: const off = instrument(receiver); off().',
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
