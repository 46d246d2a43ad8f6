// Public entry `proto-webhooks/poller`: `createPoller`, with the clock and the random numbers of the runtime.
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
 * Creates a poller, which asks sellers for the status of the tasks of `registrations`. Each task is polled by one
 * process at a time, and less often while webhooks arrive. Polling ends when a webhook or a poll has reported the
 * task's end.
 *
 * Changes go through `receiver.observe` to the receiver's handlers. Log lines and alarms go to its `logger` and
 * `onAlarm`.
 * @throws ConfigError if an option is missing or wrong; the message says what to change.
 * @example
 * ```ts
 * import type { Receiver } from 'proto-webhooks';
 * import { createPoller } from 'proto-webhooks/poller';
 * import type { Registrations } from 'proto-webhooks/registrations';
 *
 * export async function poll(receiver: Receiver, registrations: Registrations): Promise<() => Promise<void>> {
 *   const poller = createPoller({ receiver, registrations, fastMs: 15_000 });
 *   await poller.start();
 *   return poller.stop;
 * }
 * ```
 */
export function createPoller(options: PollerOptions): Poller {
  return pollerOf(options, { clock: () => performance.now(), sleep, random: Math.random });
}
