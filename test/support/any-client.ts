import { AsyncLocalStorage } from 'node:async_hooks';
import { createPoller, type Poller, type PollerOptions } from '../../src/poll/index.ts';
import type { CallSeller, Registration, Registrations } from '../../src/registrations/index.ts';

/*
 * Registrations have one client; a test calls by another one each time. Whoever calls by `callBy`, `startBy` or `pollerBy` says
 * which, and `anyClient` is that one for as long as the call, or what it began, goes on.
 */

const current = new AsyncLocalStorage<CallSeller>();

function now(): CallSeller {
  const client = current.getStore();
  if (!client) throw new Error('nobody has said by which client: callBy, startBy or pollerBy');
  return client;
}

/** For `createRegistrations({ call: anyClient })`. */
export const anyClient: CallSeller = Object.defineProperties(
  (async (...given) => now()(...given)) satisfies CallSeller,
  {
    transport: { enumerable: true, get: () => current.getStore()?.transport },
    operations: { enumerable: true, get: () => current.getStore()?.operations },
  },
);

/** `registration.call()`, by this client. */
export const callBy = (
  registration: Pick<Registration, 'call'>,
  client: CallSeller,
  signal?: AbortSignal,
): Promise<unknown> => current.run(client, () => registration.call({ signal }));

/** `registrations.start()`, by this client. */
export const startBy = (registrations: Pick<Registrations, 'start'>, client: CallSeller): Promise<void> =>
  current.run(client, () => registrations.start());

/** A poller that asks by this client. */
export function pollerBy({ call, ...options }: PollerOptions & { readonly call: CallSeller }): Poller {
  const poller = current.run(call, () => createPoller(options));
  return { ...poller, start: () => current.run(call, poller.start) };
}
