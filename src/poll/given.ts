// Checks that the receiver and the registrations that a poller or a reconciler is given belong together. `who` is the
// function that they were given to, for messages.
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

/** Returns the parts of the receiver. @throws ConfigError if it is none, or has other registrations. */
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

/** Returns the rows and the client of the registrations. @throws ConfigError if they are none. */
export function tasksOf(who: string, { registrations }: Given): WithWatchedTasks[typeof WATCHED_TASKS] {
  const tasks = (registrations as Partial<Registrations & WithWatchedTasks> | undefined)?.[WATCHED_TASKS];
  if (tasks) return tasks;
  throw new ConfigError(
    `${who}: registrations are not what createRegistrations returned. Give those of the receiver.`,
  );
}
