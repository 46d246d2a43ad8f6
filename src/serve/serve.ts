import { createServer, type Server } from 'node:http';
import { isDeepStrictEqual } from 'node:util';
import { ConfigError } from '../index.ts';
import { type ConfigSource, readConfig, type ServeConfig } from './config/read-config.ts';
import { healthServer } from './health-server.ts';
import { createInstance, type Instance, type InstanceParts } from './instance.ts';
import { jsonLog } from './json-log.ts';

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
async function listen(server: Server, member: string, { host, port }: ServeConfig['listen']): Promise<number> {
  await new Promise<void>((resolve, reject) => {
    const failed = (error: NodeJS.ErrnoException): void => {
      const { code = '' } = error;
      const why = REASONS[code] ?? (code || error.message);
      reject(new Error(`${member}: ${host}:${port} cannot be used: ${why}. Write another ${member}, or end the other process.`));
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
