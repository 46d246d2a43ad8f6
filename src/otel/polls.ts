// Measures polls of tasks by OpenTelemetry: makes the function for the option `onPoll` of a poller
// (docs/observability.md). Buyers call it.

import { type MeterProvider, metrics } from '@opentelemetry/api';
import { onlyKnown, wholeNumber } from '../config/validate.ts';
import { ConfigError } from '../shared/errors.ts';
import type { Poll } from '../poll/poller.ts';
import { createLabels, METER, quietly, SECONDS } from './metrics.ts';

/** Options of `pollMetrics`: the OpenTelemetry meter provider, and the number of sellers that appear by name. */
export interface PollMetricsOptions {
  /** The provider of metrics. Default: the global one. */
  readonly meterProvider?: MeterProvider;
  /**
   * The number of senders that appear in metrics by agent URL, in the order of their first polls. Later ones are
   * `_other`. Default: 100.
   */
  readonly maxSenders?: number;
}

const OPTION_NAMES: Readonly<Record<keyof PollMetricsOptions, true>> = {
  meterProvider: true,
  maxSenders: true,
};

/**
 * Creates a function for the option `onPoll` of `createPoller` that records OpenTelemetry metrics of polls. An error
 * in OpenTelemetry affects no poll.
 * @throws ConfigError for an unknown option.
 * @example
 * ```ts
 * import type { PollerOptions } from 'proto-webhooks/poller';
 * import { pollMetrics } from 'proto-webhooks/otel';
 *
 * export const options: Pick<PollerOptions, 'onPoll'> = { onPoll: pollMetrics() };
 * ```
 */
export function pollMetrics(options: PollMetricsOptions = {}): (poll: Poll) => void {
  if (isPoll(options)) {
    throw new ConfigError('pollMetrics: was called as onPoll. Pass what it returns: onPoll: pollMetrics().');
  }
  onlyKnown('pollMetrics', options, OPTION_NAMES);
  const labelOf = createLabels(wholeNumber('pollMetrics: maxSenders', options.maxSenders, 100, 0));
  const meter = (options.meterProvider ?? metrics.getMeterProvider()).getMeter(METER);
  const polls = meter.createCounter('webhook.polls', { description: 'Polls of tasks', unit: '{poll}' });
  const duration = meter.createHistogram('webhook.poll.duration', {
    description: 'From the request about a task until its answer is stored',
    unit: 's',
    advice: { explicitBucketBoundaries: [...SECONDS] },
  });
  return ({ sender, result, status, durationMs }) => {
    const attributes = {
      'webhook.poll.result': result,
      'webhook.sender': labelOf(sender),
      ...(status !== undefined && { 'webhook.status': status }),
    };
    quietly(() => polls.add(1, attributes));
    quietly(() => duration.record(durationMs / 1000, { 'webhook.poll.result': result }));
  };
}

const isPoll = (options: object): boolean => 'taskId' in options && 'durationMs' in options;
