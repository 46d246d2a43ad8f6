// Makes an instance: the sink, store and receiver of one configuration. `serve` makes the first instance, and each
// reload makes a new one.
import { pathToFileURL } from 'node:url';
import { webhookHandler } from '../adapters/node.ts';
import {
  ConfigError,
  createReceiver,
  type Event,
  type HandlerContext,
  type Logger,
  type Receiver,
  type ReceiverOptions,
} from '../index.ts';
import type { ServeConfig } from './config/read-config.ts';
import type { SinkConfig } from './config/store-and-sink.ts';
import { forwards } from './events-filter.ts';
import type { JsonLog } from './json-log.ts';
import { typeOf } from './sink/cloud-event.ts';
import { createForwarder, type Forwarder } from './sink/forwarder.ts';
import { httpSink } from './sink/http-sink.ts';
import { moduleSink } from './sink/module-sink.ts';
import { onAbort } from './sink/on-abort.ts';
import type { Sink } from './sink/sink.ts';
import { makeStore } from './store.ts';
import type { Telemetry } from './telemetry.ts';
import { endsWithin, messageOf } from './within.ts';

/** An instance: the sink, store and receiver that are made from one reading of the configuration. */
export interface Instance {
  readonly config: ServeConfig;
  readonly receiver: Receiver;
  readonly handler: ReturnType<typeof webhookHandler>;
  readonly sink: Sink;
  readonly sinkState: Forwarder['state'];
  /** Returns the identity of the store; undefined until the store was opened. */
  readonly storeId: () => string | undefined;
  /** Starts the receiver and its worker. @throws (rejects) as `receiver.start` does */
  readonly start: () => Promise<void>;
  /**
   * Waits for running handlers. After three quarters of `graceMs`, aborts them, so that their events return to the
   * queue. At the end, closes the store.
   */
  readonly stop: () => Promise<void>;
}

/** The settings and objects that the instances of one process share. */
export interface InstanceParts {
  readonly log: JsonLog;
  readonly telemetry: Telemetry | undefined;
  /** The folder in which packages are searched after the configuration's folder. */
  readonly cwd: string;
  /**
   * The number of earlier loads of the configuration. It becomes a part of a module's URL, so that Node loads the
   * module again.
   */
  readonly loads: number;
  /** The longest time that `receiver.ready()` waits for the store, ms. */
  readonly readyMs: number;
  /** The time for which running work may continue after a stop (serve.md §3.1). Ms. */
  readonly graceMs: number;
  /**
   * The sinks that are modules, of all instances so far. Such modules may share resources, so they are closed together
   * when the process ends.
   */
  readonly modules: Sink[];
}

/** The additional time for closing the store: a server that does not answer must not keep the process running. Ms. */
const CLOSE_MS = 3_000;

/**
 * Waits for a shutdown, at most for the grace time plus `CLOSE_MS`. Logs an error if the shutdown fails or takes
 * longer.
 */
export async function ended(
  over: Promise<unknown>,
  { graceMs, log: { logger } }: Pick<InstanceParts, 'graceMs' | 'log'>,
): Promise<void> {
  try {
    const inTime = await endsWithin(over, graceMs + CLOSE_MS);
    if (!inTime) logger.error({}, 'not all has ended in time: what was under way is due again later');
  } catch (error) {
    logger.error({ err: error }, 'the end failed');
  }
}

/**
 * Returns the time limit for a run of the handler. A run may wait for a paused sink for a minute, and make two
 * attempts. Ms.
 */
const deadlineMs = (timeoutMs: number): number => 120_000 + 2 * timeoutMs;

/** The longest lease, which is the time for which a process reserves an event (admission.md §4.11). Ms. */
const LONGEST_LEASE_MS = 600_000;
const SHORTEST_LEASE_MS = 10_000;
/** The longest back-off that the receiver allows (admission.md §4.3). Ms. */
const LONGEST_BACKOFF_MS = 3_600_000;

/**
 * Returns the lease of an event: the time for which a process reserves it. If the process is killed, the event is due
 * again when the lease ends.
 *
 * Running processes renew leases, so at least three quarters of a lease always remain. That is longer than the
 * `timeoutMs` of a request. So no other event of the same task runs while the sink may still work on the request
 * (serve.md §2.1).
 */
export const leaseMsFor = (timeoutMs: number): number =>
  Math.min(LONGEST_LEASE_MS, Math.max(SHORTEST_LEASE_MS, Math.ceil(1.5 * timeoutMs)));

const DAY_MS = 86_400_000;

/** The time limit for loading the owner's sink module, which may wait for something before it exports anything. Ms. */
const LOAD_MS = 30_000;

/**
 * Loads a module.
 * @throws ConfigError (rejects) if the module throws, or if its top-level `await` does not end within `LOAD_MS`
 */
async function loaded(url: URL, name: string): Promise<unknown> {
  const loading = import(url.href) as Promise<unknown>;
  try {
    if (await endsWithin(loading, LOAD_MS)) return await loading;
    throw new Error(`it is not loaded within ${LOAD_MS / 1000} s`);
  } catch (error) {
    const message = `${name}: cannot be loaded: ${messageOf(error)}. Correct it: it is loaded as Node loads any module.`;
    throw new ConfigError(message, { cause: error });
  }
}

/**
 * Makes the sink (destination of events).
 * @param loads the number of earlier loads of the configuration; above 0, Node loads the module of the sink again.
 * @throws ConfigError (rejects) for a module that cannot be loaded, or has no `send`
 */
export async function makeSink(config: SinkConfig, loads = 0): Promise<Sink> {
  const { timeoutMs } = config;
  if (config.kind === 'http') return httpSink(config);
  const url = pathToFileURL(config.path);
  // Node loads a module again only under another URL.
  if (loads > 0) url.searchParams.set('read', String(loads));
  return moduleSink(await loaded(url, config.name), { name: config.name, timeoutMs });
}

function receiverOptions(config: ServeConfig): Omit<ReceiverOptions, 'store' | 'handlers'> {
  const {
    publicUrl,
    senders,
    limits,
    hostCheck,
    allowLoopback,
    sink,
    durability = {},
    expectStoreId,
  } = config;
  const { require, declared } = durability;
  return {
    publicUrl,
    senders,
    ...limits,
    hostCheck,
    allowLoopback,
    ...(expectStoreId !== undefined && { expectStoreId }),
    durability: { ...(require && { require }), ...(declared && { declared }) },
    mode: 'inbox',
    worker: { concurrency: sink.concurrency },
    // A sink may accept some events while its database is away. The other events must not become DEAD then, so the
    // waits between attempts grow up to an hour.
    retry: { attempts: sink.attempts, maxMs: LONGEST_BACKOFF_MS },
    leaseMs: leaseMsFor(sink.timeoutMs),
    handlerDeadlineMs: deadlineMs(sink.timeoutMs),
  };
}

/**
 * Returns a logger that drops the warning `queue_unattended` while the sink is paused. Events then wait because of the
 * pause, which `sink_unavailable` reports.
 */
export function withoutQueue(logger: Logger, sinkState: Forwarder['state']): Logger {
  return {
    ...logger,
    warn: (fields, message) => {
      const { code } = fields as { readonly code?: unknown };
      if (code !== 'queue_unattended' || !sinkState().paused) logger.warn(fields, message);
    },
  };
}

/**
 * Wraps the handler so that `stop` aborts its running calls. Otherwise only the leases of their events limit these
 * calls.
 */
function stoppable(handle: Forwarder['handle']): {
  readonly handle: Forwarder['handle'];
  readonly stop: () => void;
} {
  const running = new Set<AbortController>();
  return {
    async handle(event, { deliveryId, run, log, signal }) {
      const own = new AbortController();
      const off = onAbort(signal, () => own.abort(signal.reason));
      running.add(own);
      try {
        await handle(event, { deliveryId, run, log, signal: own.signal });
      } finally {
        running.delete(own);
        off();
      }
    },
    stop: () => {
      for (const own of running) own.abort();
    },
  };
}

/**
 * Makes an instance, but opens nothing yet.
 * @throws ConfigError (rejects) for a package that is not installed, or a file that is missing.
 */
export async function createInstance(config: ServeConfig, parts: InstanceParts): Promise<Instance> {
  const { log, loads, readyMs, graceMs, telemetry, modules } = parts;
  const sink = await makeSink(config.sink, loads);
  if (config.sink.kind === 'module') modules.push(sink);
  const { store, end, sweep } = await makeStore(config.store, [config.folder, parts.cwd]);
  const { concurrency } = config.sink;
  const forwarder = createForwarder(sink, { onAlarm: log.alarm, logger: log.logger, concurrency });
  const runs = stoppable(forwarder.handle);
  const isForwarded = forwards(config.events);
  const handle = (event: Event, ctx: HandlerContext): Promise<void> | undefined => {
    if (isForwarded(event)) return runs.handle(event, ctx);
    ctx.log.info({ type: typeOf(event) }, '`events` does not name it: done without the sink');
    return undefined;
  };
  const receiver = createReceiver({
    ...receiverOptions(config),
    store,
    logger: withoutQueue(log.logger, forwarder.state),
    handlers: { other: handle },
    advanced: { startMs: readyMs },
  });
  const off = telemetry?.instrument(receiver);
  const sweeping = setInterval(() => {
    sweep?.().catch((error: unknown) => log.logger.warn({ err: error }, 'expired rows were not deleted'));
  }, DAY_MS).unref();
  let storeId: string | undefined;
  return {
    config,
    receiver,
    storeId: () => storeId,
    start: async () => {
      await receiver.start();
      // `receiver.start` has checked the store. If the store cannot be reached any more, `storeId` stays undefined, and
      // the next reload does not compare the stores.
      storeId = await store.identity?.().then(
        ({ id }) => id,
        () => undefined,
      );
    },
    handler: webhookHandler(receiver),
    sink,
    sinkState: forwarder.state,
    stop: async () => {
      clearInterval(sweeping);
      const late = setTimeout(runs.stop, (graceMs * 3) / 4);
      await receiver.stop();
      clearTimeout(late);
      off?.();
      await end();
      // The module of a sink is closed when the process ends, because the newly loaded module may share its resources.
      if (config.sink.kind === 'http') await sink.close();
    },
  };
}
