// Checks the options of `createPoller`, and builds the poller with its methods. The clock and the random numbers are
// passed in.
import { onlyKnown, wholeNumber } from '../config/validate.ts';
import { boundedCall } from '../calls/bounded-call.ts';
import { createSessions } from '../calls/sessions.ts';
import { createHashes } from '../crypto/hashes.ts';
import { printableValue } from '../codec/printable-value.ts';
import { ConfigError, messageOf } from '../shared/errors.ts';
import { createThinning, harmless } from '../shared/logging.ts';
import type { Receiver } from '../config/receiver-options.ts';
import type { ReceiverContext } from '../receiver/context.ts';
import { givenCaller, transportOf } from '../registrations/option-checks.ts';
import { CAPABILITIES, type WithCapabilities } from '../registrations/capabilities.ts';
import { LONGEST_LEASE_MS } from '../stores/constants.ts';
import { backgroundTimer, limited } from '../shared/time-limits.ts';
import type { Registrations } from '../registrations/registrations.ts';
import { startStop } from '../shared/start-stop.ts';
import { partsOf, tasksOf } from './given.ts';
import { type Poll, type PollerContext, pollerLoop, type PollerStats } from './poller.ts';
import { type Lists, listsOf, type PolledTask, type TaskQuery } from './query.ts';

/**
 * Options of `createPoller`: the receiver, its registrations, and the intervals and limits of polls. Mistakes throw
 * `ConfigError` at construction.
 */
export interface PollerOptions {
  /** The receiver, which must have `registrations`. Changes that polls find go to its handlers. */
  readonly receiver: Receiver;
  /** The receiver's registrations, created with the option `call`: the poller asks sellers with that function. */
  readonly registrations: Registrations;
  /** The interval between polls of a task that has no webhooks, ms, at most a day. Default: 30 000. */
  readonly fastMs?: number | undefined;
  /**
   * The interval between polls of a task whose seller is known to send webhooks, ms, at most a day. Default: 120 000.
   */
  readonly slowMs?: number | undefined;
  /**
   * The time after which a task that has not ended becomes `unresolved`, ms: it raises an alarm and is no longer
   * polled. Default: 30 days.
   */
  readonly giveUpMs?: number | undefined;
  /**
   * The time without a webhook after which a seller's tasks are polled at `fastMs` again, ms. It may be a function of
   * the agent URL, e.g. to return the retry horizon that the seller declares; undefined means the default. Default: 24
   * h.
   */
  readonly silentMs?: number | ((agentUrl: string) => number | undefined) | undefined;
  /**
   * The time limit of a request, ms, at most 300 000. If a process dies during a request, another process repeats the
   * request after twice this time. Default: 20 000.
   */
  readonly callMs?: number | undefined;
  /** The most concurrent requests to one seller, of all processes together. Default: 4. */
  readonly perSeller?: number | undefined;
  /** The most concurrent requests of this process. Default: 64. */
  readonly concurrency?: number | undefined;
  /**
   * Returns operation and arguments for a seller that must be asked differently from the standard; undefined for the
   * standard request.
   */
  readonly query?: ((task: PolledTask) => TaskQuery | undefined) | undefined;
  /** Called after each poll. If it throws, the poll is not affected, and the error is logged at most once a minute. */
  readonly onPoll?: ((poll: Poll) => void) | undefined;
}

/** Asks sellers for the status of your tasks, in case their webhooks are late or lost. `createPoller` makes it. */
export interface Poller {
  /** Checks the receiver's store, settings and keys, like the receiver's `ready`. */
  readonly ready: Receiver['ready'];
  /**
   * Starts polling in this process; several processes may poll. Resolves when polling has begun. If the poller already
   * runs, a further call has no effect. You may call it again after `stop`.
   */
  readonly start: () => Promise<void>;
  /**
   * Stops polling: begins no more requests, aborts the running ones, and resolves when they have ended. A further call
   * has no effect.
   */
  readonly stop: () => Promise<void>;
  /** Calls `stop`; for `await using`. */
  readonly [Symbol.asyncDispose]: () => Promise<void>;
  /** Returns the numbers of polls of this poller in this process. */
  readonly stats: () => PollerStats;
}

const KNOWN: Readonly<Record<keyof PollerOptions, true>> = {
  receiver: true,
  registrations: true,
  fastMs: true,
  slowMs: true,
  giveUpMs: true,
  silentMs: true,
  callMs: true,
  perSeller: true,
  concurrency: true,
  query: true,
  onPoll: true,
};

const DAY_MS = 86_400_000;

/** The clock, the timer and the random numbers of a poller. */
export type PollerParts = Pick<PollerContext, 'clock' | 'sleep'> & { readonly random: () => number };

/** Makes a poller. @throws ConfigError if an option is missing or wrong. */
export function pollerOf(options: PollerOptions, { clock, sleep: wait, random }: PollerParts): Poller {
  onlyKnown('createPoller', options, KNOWN);
  const { receiver, query } = options;
  const parts = partsOf('createPoller', options);
  const tasks = tasksOf('createPoller', options);
  const call = givenCaller('createPoller', tasks.call);
  if (query !== undefined) requireFunction('query', query, '(task) => ({ operation, arguments })');
  if (options.onPoll !== undefined) requireFunction('onPoll', options.onPoll, '(poll) => …');
  const callMs = wholeNumber('callMs', options.callMs, 20_000, 1, LONGEST_LEASE_MS / 2);
  const sessions = createSessions(backgroundTimer);
  const bounded = boundedCall(call);
  const lists = listsOf({ call: bounded, sessions });
  const loop = pollerLoop({
    parts,
    sessions,
    observe: receiver.observe,
    tasks,
    call: bounded,
    lists,
    transport: transportOf(call),
    query,
    pace: {
      fastMs: wholeNumber('fastMs', options.fastMs, 30_000, 1, DAY_MS),
      slowMs: wholeNumber('slowMs', options.slowMs, 120_000, 1, DAY_MS),
      giveUpMs: wholeNumber('giveUpMs', options.giveUpMs, 30 * DAY_MS),
      leaseMs: 2 * callMs,
      perSeller: wholeNumber('perSeller', options.perSeller, 4),
      random,
    },
    silentMs: silentOf(options.silentMs),
    concurrency: wholeNumber('concurrency', options.concurrency, 64),
    callMs,
    onPoll: hookOf(options.onPoll, parts),
    learn: learnerOf(options, { sessions, lists, callMs }),
    hashes: createHashes(),
    clock,
    sleep: wait,
  });
  let stopping = new AbortController();
  let polling: Promise<void> | undefined;
  const begin = async (): Promise<void> => {
    stopping = new AbortController();
    polling = loop.run(stopping.signal);
  };
  const end = async (): Promise<void> => {
    stopping.abort(new DOMException('The poller stops.', 'AbortError'));
    await polling;
    await sessions.end();
  };
  const { start, stop } = startStop(begin, end);
  return {
    ready: receiver.ready,
    start,
    stop,
    [Symbol.asyncDispose]: stop,
    stats: loop.stats,
  };
}

/**
 * Returns a function that asks a seller for its capabilities after a poll. A poll's lease is twice `callMs`: its
 * request may take half of that time, and this function a quarter.
 */
function learnerOf(
  { registrations }: PollerOptions,
  { sessions, lists, callMs }: Pick<PollerContext, 'sessions' | 'callMs'> & { readonly lists: Lists },
): NonNullable<PollerContext['learn']> {
  const { [CAPABILITIES]: capabilities } = registrations as Registrations & WithCapabilities;
  const limit = { ms: callMs / 2, reason: 'the poll has to end' };
  return async (agentUrl, ref, stopping) =>
    limited(limit, stopping, async (signal) => {
      const names = async () => lists.of({ sender: agentUrl, ...(ref !== undefined && { ref }) }, signal);
      await capabilities.ask({ agentUrl, ref, sessions, names }, signal);
    });
}

function requireFunction(name: string, value: unknown, example: string): void {
  if (typeof value === 'function') return;
  throw new ConfigError(`createPoller: ${name} is not a function. Give ${example}.`);
}

/** Wraps the option `onPoll`, so that its errors are logged and do not affect polls. */
function hookOf(onPoll: PollerOptions['onPoll'], { logger, now }: ReceiverContext): (poll: Poll) => void {
  const thinning = createThinning();
  const warn = (error: unknown): void => {
    if (thinning('onPoll', now()) === undefined) return;
    logger.warn({ err: error }, `onPoll failed: ${messageOf(error)}`);
  };
  const call = (poll: Poll): unknown => {
    const returned: unknown = onPoll?.(printableValue(poll));
    if (typeof returned !== 'function') return returned;
    throw new ConfigError(
      'it returned a function. Give what is called for each poll: onPoll: pollMetrics().',
    );
  };
  return harmless(onPoll && call, warn);
}

function silentOf(silentMs: PollerOptions['silentMs']): (agentUrl: string) => number {
  if (typeof silentMs === 'function') return (agentUrl) => silentMs(agentUrl) ?? DAY_MS;
  const ms = wholeNumber('silentMs', silentMs, DAY_MS);
  return () => ms;
}
