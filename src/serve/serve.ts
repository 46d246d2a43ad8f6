import { createServer, type Server } from 'node:http';
import { isDeepStrictEqual } from 'node:util';
import { type ConfigSource, readConfig, type ServeConfig } from './config/read-config.ts';
import { healthServer } from './health-server.ts';
import { createInstance, type Instance, type InstanceParts } from './instance.ts';
import { jsonLog } from './json-log.ts';

export { checkParts, migrateStore } from './check.ts';
export { readConfig } from './config/read-config.ts';

/** Signals of the process: `process` has these. */
export interface Signals {
  on(name: 'SIGTERM' | 'SIGINT' | 'SIGHUP', listener: () => void): unknown;
  off(name: 'SIGTERM' | 'SIGINT' | 'SIGHUP', listener: () => void): unknown;
}

/** The process that serves. */
export interface ServeOptions {
  readonly source: ConfigSource;
  /** What `source` was read to. */
  readonly config: ServeConfig;
  /** Writes a line of the log, with its end. */
  readonly write: (line: string) => void;
  readonly signals: Signals;
  /** Ends the process at once: a second signal. */
  readonly exit: (code: number) => void;
  /** Unix ms. Default: `Date.now`. */
  readonly now?: () => number;
  /** How long a new configuration's store may take to be ready, ms. Default: 30 000. */
  readonly readyMs?: number;
}

/** How it ended. */
export interface ServeEnd {
  readonly code: 0 | 1;
  /** One line for people, if it ended by a fault. */
  readonly message?: string;
}

/** serve.md §1.8. */
const READY_MS = 30_000;

const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));

const REASONS: Readonly<Record<string, string>> = {
  EADDRINUSE: 'another process listens there',
  EACCES: 'this user may not listen there',
  EADDRNOTAVAIL: 'this machine does not have that address',
};

/** @returns the port; rejects with what is wrong in one line. */
async function listen(
  server: Server,
  member: string,
  { host, port }: ServeConfig['listen'],
): Promise<number> {
  await new Promise<void>((resolve, reject) => {
    const failed = (error: NodeJS.ErrnoException): void => {
      const { code = '' } = error;
      const why = REASONS[code] ?? (code || error.message);
      reject(
        new Error(
          `${member}: ${host}:${port} cannot be used: ${why}. Write another ${member}, or end the other process.`,
        ),
      );
    };
    server.once('error', failed);
    server.listen(port, host, () => {
      server.off('error', failed);
      resolve();
    });
  });
  const address = server.address();
  return typeof address === 'object' && address !== null ? address.port : port;
}

async function close(server: Server): Promise<void> {
  if (!server.listening) return;
  const closed = new Promise<void>((resolve) => void server.close(() => resolve()));
  server.closeAllConnections();
  await closed;
}

interface Reloading extends Omit<InstanceParts, 'loads'> {
  readonly source: ConfigSource;
  readonly current: () => Instance;
  /** Deliveries come to the new one from now on. */
  readonly swap: (next: Instance) => void;
  readonly stopping: () => boolean;
}

/** What cannot be changed while it listens. */
const FIXED = ['listen', 'health'] as const;

/**
 * Reads the configuration again (serve.md §1.8), one time after the other. What is wrong with it is an alarm, and everything stays as
 * it was.
 */
function reloader({ source, current, swap, stopping, ...parts }: Reloading): () => Promise<void> {
  let loads = 0;

  /** @throws Error (rejects) with what is wrong. */
  async function load(): Promise<Instance> {
    const read = readConfig(source);
    if ('mistakes' in read) throw new Error(read.mistakes.join('; '));
    const changed = FIXED.find((name) => !isDeepStrictEqual(read.config[name], current().config[name]));
    if (changed !== undefined) {
      throw new Error(
        `${source.file}: ${changed} has changed. Start the process anew for that, or write what it was.`,
      );
    }
    loads += 1;
    const next = await createInstance(read.config, { ...parts, loads });
    try {
      await next.receiver.ready();
    } catch (error) {
      await next.stop();
      throw error;
    }
    return next;
  }

  async function reload(): Promise<void> {
    if (stopping()) return;
    try {
      const next = await load();
      const former = current();
      if (stopping()) return await next.stop();
      swap(next);
      parts.log.logger.info({}, 'the configuration was read again, and holds from now on');
      await former.stop();
    } catch (error) {
      const message = `the configuration was not taken, and the former one holds: ${messageOf(error)}`;
      parts.log.alarm({ code: 'config_rejected', message });
    }
  }

  let last = Promise.resolve();
  return () => (last = last.then(reload));
}

/** Logged as often as somebody cares for, and never an end of the process. */
function begin(instance: Instance, failed: (error: unknown) => void): void {
  instance.receiver.start().catch(failed);
}

/** Resolves when the process has ended (serve.md §3.1). @throws ConfigError (rejects) for what is not installed or not there. */
export async function serve(options: ServeOptions): Promise<ServeEnd> {
  const { source, config, write, signals, exit, now = Date.now, readyMs = READY_MS } = options;
  const log = jsonLog(write, now);
  const parts = { log, cwd: source.cwd, readyMs };
  let current = await createInstance(config, { ...parts, loads: 0 });
  let isStopping = false;
  const ended = Promise.withResolvers<ServeEnd>();
  const failed = (error: unknown): void => ended.resolve({ code: 1, message: messageOf(error) });

  const server = createServer((req, res) => current.handler(req, res));
  const health = healthServer({ current: () => current });
  try {
    const port = await listen(server, 'listen', config.listen);
    const healthPort = await listen(health, 'health', config.health);
    const { host } = config.listen;
    log.logger.info({ host, port, health: { host: config.health.host, port: healthPort } }, 'listening');
  } catch (error) {
    await Promise.all([current.stop(), close(server), close(health)]);
    return { code: 1, message: messageOf(error) };
  }

  const onEnd = (): void => {
    if (isStopping) return exit(1);
    isStopping = true;
    ended.resolve({ code: 0 });
  };
  const reload = reloader({
    ...parts,
    source,
    current: () => current,
    stopping: () => isStopping,
    swap: (next) => {
      current = next;
      begin(next, failed);
    },
  });
  const onReload = (): void => void reload();
  signals.on('SIGTERM', onEnd);
  signals.on('SIGINT', onEnd);
  signals.on('SIGHUP', onReload);
  begin(current, failed);

  const end = await ended.promise;
  isStopping = true;
  log.logger.info({}, 'stopping');
  const stopped = current.stop();
  server.close();
  await stopped;
  await Promise.all([close(server), close(health)]);
  log.logger.info({ code: end.code }, 'stopped');
  signals.off('SIGTERM', onEnd);
  signals.off('SIGINT', onEnd);
  signals.off('SIGHUP', onReload);
  return end;
}
