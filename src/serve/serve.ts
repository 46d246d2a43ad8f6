// Runs the receiver as a process: starts the instance and its ports, reloads, and ends at a signal (serve.md §3.1).
// `proto-webhooks serve` calls it.
import { createServer } from 'node:http';
import type { ConfigSource, ServeConfig } from './config/read-config.ts';
import { healthServer } from './health-server.ts';
import { createInstance, ended, type Instance } from './instance.ts';
import { jsonLog } from './json-log.ts';
import { close, listen } from './listening.ts';
import { createReload } from './reload.ts';
import type { Sink } from './sink/sink.ts';
import { startTelemetry } from './telemetry.ts';
import { adviceOf } from './within.ts';

export { checkParts, migrateStore } from './check.ts';
export { readConfig } from './config/read-config.ts';

type SignalName = 'SIGTERM' | 'SIGINT' | 'SIGHUP';

/** The functions of Node's `process` that add and remove signal listeners. */
export interface Signals {
  on(name: SignalName, listener: () => void): unknown;
  off(name: SignalName, listener: () => void): unknown;
}

/** The options of the process that serves. */
export interface ServeOptions {
  readonly source: ConfigSource;
  /** The configuration that was read from `source`. */
  readonly config: ServeConfig;
  /** Writes a line of the log. */
  readonly write: (line: string) => void;
  readonly signals: Signals;
  /** Ends the process immediately. Called at the second signal to stop. */
  readonly exit: (code: number) => void;
  /** Unix ms. Default: `Date.now`. */
  readonly now?: () => number;
  /** The time within which the store of a new configuration must become ready, ms. Default: 30 000. */
  readonly readyMs?: number;
  /** The time for which running work may continue after a stop, ms. Default: 10 000. */
  readonly graceMs?: number;
}

/** The reason for which the process ended. */
export interface ServeEnd {
  readonly code: 0 | 1;
  /** One line for people, if the end was caused by a fault. */
  readonly message?: string;
}

/**
 * The default of `readyMs`, the time within which the store of a new configuration must become ready (serve.md §1.8).
 */
const READY_MS = 30_000;

/** The default of `graceMs`, the time for which running work may continue after a stop (serve.md §3.1). */
const GRACE_MS = 10_000;

/**
 * Serves until a signal or a fault ends it (serve.md §3.1).
 * @throws ConfigError (rejects) for a package that is not installed, or a file that is missing.
 */
export async function serve(options: ServeOptions): Promise<ServeEnd> {
  const { source, config, write, signals, exit, now = Date.now } = options;
  const { readyMs = READY_MS, graceMs = GRACE_MS } = options;
  const log = jsonLog(write, now);
  const { metrics } = config.health;
  const over = Promise.withResolvers<ServeEnd>();
  const failed = (error: unknown): void => over.resolve({ code: 1, message: adviceOf(error, source.file) });
  let isStopping = false;
  let reload: (() => Promise<void>) | undefined;
  const onEnd = (): void => {
    if (isStopping) return exit(1);
    isStopping = true;
    over.resolve({ code: 0 });
  };
  const listeners = { SIGTERM: onEnd, SIGINT: onEnd, SIGHUP: () => void reload?.() };
  const each = (act: 'on' | 'off'): void => {
    for (const [name, listener] of Object.entries(listeners)) signals[act](name as SignalName, listener);
  };

  // Listeners are added before anything that takes time, because a signal without a listener ends the process.
  each('on');
  const modules: Sink[] = [];
  const telemetry = await startTelemetry({ env: source.env, metrics, folders: [config.folder, source.cwd] });
  const parts = { log, telemetry, cwd: source.cwd, readyMs, graceMs, modules };
  let current = await createInstance(config, { ...parts, loads: 0 });
  let former = Promise.resolve();

  const server = createServer((req, res) => current.handler(req, res));
  const health = healthServer({ current: () => current, metrics: telemetry?.metrics });
  const begin = (instance: Instance): void => void instance.start().catch(failed);
  reload = createReload({
    ...parts,
    source,
    current: () => current,
    isStopping: () => isStopping,
    swap: (next) => {
      // The new sink (destination of events) begins without a pause, so no other log line would say that the pause is
      // over.
      if (current.sinkState().paused)
        log.logger.info({ sink: next.sink.name }, 'the pause of the sink ends: it is tried anew');
      former = ended(current.stop(), parts);
      current = next;
      begin(next);
      return former;
    },
  });
  try {
    const port = await listen(server, 'listen', config.listen);
    const healthAt = { host: config.health.host, port: await listen(health, 'health', config.health) };
    log.logger.info({ host: config.listen.host, port, health: healthAt }, 'listening');
    begin(current);
  } catch (error) {
    failed(error);
  }
  const end = await over.promise;
  isStopping = true;
  log.logger.info({}, 'stopping');
  server.close();
  await Promise.all([ended(current.stop(), parts), former]);
  await Promise.all(modules.map((sink) => ended(sink.close(), parts)));
  await Promise.all([close(server), close(health), telemetry?.end()]);
  log.logger.info({ code: end.code }, 'stopped');
  each('off');
  return end;
}
