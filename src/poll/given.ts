// Checks that the receiver and the registrations of a poller or a reconciler belong together. `who` is the function
// that was given them, e.g. `createPoller`; messages name it.
import type { Receiver } from '../config/receiver-options.ts';
import type { ReceiverContext, WithContext } from '../receiver/context.ts';
import { CONTEXT } from '../receiver/instruments.ts';
import type { Registrations } from '../registrations/registrations.ts';
import { WATCHED_TASKS, type WithWatchedTasks } from '../registrations/watch-task.ts';
import { ConfigError } from '../shared/errors.ts';

interface Given {
  readonly receiver: Receiver;
  readonly registrations: Registrations;
}

/**
 * Returns the internal parts of the receiver. @throws ConfigError if the value is no receiver, or has other
 * registrations.
 */
export function partsOf(who: string, { receiver, registrations }: Given): ReceiverContext {
  const parts = (receiver as Partial<Receiver & WithContext> | undefined)?.[CONTEXT];
  if (!parts) {
    throw new ConfigError(`${who}: receiver is not a receiver. Give what createReceiver returned.`);
  }
  if (parts.registrations !== registrations) {
    throw new ConfigError(
      `${who}: the receiver has other registrations, or none. Give both the same: createReceiver({ …, registrations }).`,
    );
  }
  return parts;
}

/**
 * Returns the parts of the registrations that polling needs, e.g. rows and client. @throws ConfigError if
 * `createRegistrations` did not make the value.
 */
export function tasksOf(who: string, { registrations }: Given): WithWatchedTasks[typeof WATCHED_TASKS] {
  const tasks = (registrations as Partial<Registrations & WithWatchedTasks> | undefined)?.[WATCHED_TASKS];
  if (tasks) return tasks;
  throw new ConfigError(
    `${who}: registrations are not what createRegistrations returned. Give those of the receiver.`,
  );
}
