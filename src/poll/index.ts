import { sleep } from '../shared/time-limits.ts';
import { type Poller, type PollerOptions, pollerOf } from './poller-options.ts';

export type { TaskStatus, Transport } from '../events/event.ts';
export type { Receiver } from '../config/receiver-options.ts';
export type { EditionName } from '../shared/editions.ts';
export type { Json, JsonObject } from '../registrations/answer-json.ts';
export type { CallSeller } from '../registrations/call-seller.ts';
export type { Registrations } from '../registrations/registrations.ts';
export type { Poller, PollerOptions } from './poller-options.ts';
export type { Poll, PollerStats, PollResult } from './poller.ts';
export type { PolledTask, TaskQuery } from './query.ts';

/**
 * Polls the tasks of `registrations`: each by one process at a time, less often where webhooks arrive, and until its end is known
 * by any channel. Changes go through `receiver.observe` to the receiver's handlers, lines and alarms to its `logger` and `onAlarm`.
 * @throws ConfigError where an option is missing or wrong; the message says what to change.
 */
export function createPoller(options: PollerOptions): Poller {
  return pollerOf(options, { clock: () => performance.now(), sleep, random: Math.random });
}
