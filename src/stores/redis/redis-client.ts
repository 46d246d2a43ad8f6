// The ioredis client: the store's own connection, and its errors (admission.md §9.5).
// Called by the other files of this folder.
import { ConfigError, Fault, messageOf } from '../../shared/errors.ts';

/**
 * A Redis client: `new Redis(…)` of ioredis 5 or later, also with Sentinels, or `new Redis.Cluster(…)`. It need not be
 * connected. The store works on a duplicate, and the caller closes the original.
 */
export interface RedisClient {
  readonly status: string;
  readonly options: object;
  /** Makes another connection with the same settings, as in ioredis. */
  readonly duplicate: (...args: never[]) => unknown;
}

/** An argument of a command; text is sent as UTF-8. */
export type Arg = string | number | Buffer;

type Send = (script: string, keys: number, ...args: Arg[]) => Promise<unknown>;

/** The methods of the client that the store calls, on its duplicate. */
export interface RedisConnection {
  readonly status: string;
  connect(): Promise<unknown>;
  disconnect(): void;
  on(event: string, listener: (error: unknown) => void): unknown;
  once(event: string, listener: () => void): unknown;
  removeListener(event: string, listener: () => void): unknown;
  call(command: string, ...args: string[]): Promise<unknown>;
  readonly evalBuffer: Send;
  readonly evalshaBuffer: Send;
  pipeline(): Pipeline;
  /** Returns the nodes of a Cluster that have the role. Present only in a Cluster. */
  nodes?(role: 'master'): RedisConnection[];
}

export interface Pipeline {
  readonly evalBuffer: (script: string, keys: number, ...args: Arg[]) => unknown;
  readonly evalshaBuffer: (script: string, keys: number, ...args: Arg[]) => unknown;
  info(section: 'replication'): unknown;
  wait(replicas: number, timeoutMs: number): unknown;
  exec(): Promise<readonly (readonly [Error | null, unknown?])[] | null>;
}

interface ClientOptions {
  readonly keyPrefix?: string;
  readonly redisOptions?: Readonly<Record<string, unknown>>;
}

/**
 * The longest pause between two tries to connect, and between two checks that a server has loaded its data. Ms: 1 s.
 */
const RECONNECT_MS = 1000;

const retryStrategy = (times: number): number => Math.min(times * 50, RECONNECT_MS);

/**
 * Options that the connection to a node must have, even if the caller's client has others.
 *
 * - The client sends nothing twice. A `WAIT` that is resent on a new connection would wait for nothing, and report
 *   confirmations for writes that replicas may lack. So all running calls fail with their connection, and the store
 *   sends script and WAIT again, together.
 * - The client reconnects for ever, also if its server is a primary that became a replica.
 * - A connection that does not answer is closed.
 * - A server that is loading its data is asked again soon, because sellers retry for only some 15 s.
 */
function nodeOptions(timeoutMs: number): Record<string, unknown> {
  return {
    autoResendUnfulfilledCommands: false,
    maxRetriesPerRequest: 0,
    reconnectOnError: (error: Error) => /^(READONLY|UNBLOCKED)/.test(error.message),
    socketTimeout: timeoutMs,
    maxLoadingRetryTime: RECONNECT_MS,
    enableAutoPipelining: false,
    commandTimeout: undefined,
    monitor: false,
    // With `protocol` and `stringNumbers`, replies have the same form for all versions and settings of the client.
    protocol: 2,
    stringNumbers: false,
  };
}

/**
 * Makes the store's own connection. The caller's connection may be blocked or subscribed, or may read from replicas.
 */
export function duplicateOf(client: RedisClient, timeoutMs: number): RedisConnection {
  const duplicate = client.duplicate as (...args: unknown[]) => unknown;
  const node = nodeOptions(timeoutMs);
  const { redisOptions } = client.options as ClientOptions;
  const connection = isCluster(client)
    ? duplicate.call(client, [], {
        redisOptions: { ...redisOptions, ...node },
        scaleReads: 'master',
        clusterRetryStrategy: retryStrategy,
        enableAutoPipelining: false,
        enableOfflineQueue: true,
        lazyConnect: true,
      })
    : duplicate.call(client, {
        ...node,
        retryStrategy,
        sentinelRetryStrategy: retryStrategy,
        readOnly: false,
        role: 'master',
        enableOfflineQueue: true,
        lazyConnect: true,
      });
  return connection as RedisConnection;
}

export function isCluster(client: object): boolean {
  return 'nodes' in client && typeof client.nodes === 'function';
}

/** Returns every primary that holds keys. */
export function primaries(connection: RedisConnection): readonly RedisConnection[] {
  return connection.nodes?.('master') ?? [connection];
}

/**
 * Checks the client that the user passed.
 *
 * @throws ConfigError for anything that is not an ioredis client. Also for a `keyPrefix` with braces, which would
 *   change the hash tag of keys.
 */
export function checkClient(client: RedisClient): void {
  const members = client as unknown as Partial<Record<string, unknown>> | undefined;
  const known = ['duplicate', 'evalshaBuffer', 'evalBuffer', 'pipeline', 'call', 'connect'];
  if (known.some((method) => typeof members?.[method] !== 'function')) {
    throw new ConfigError(
      'redisStore: client is not a client of ioredis. Pass new Redis(…) or new Redis.Cluster(…) of ioredis >= 5.',
    );
  }
  checkPrefix('keyPrefix of the client', (client.options as ClientOptions).keyPrefix ?? '');
}

/**
 * Checks that a prefix of keys has no braces. Redis Cluster finds a key's slot by its first `{…}`, which has to be the
 * sender's.
 */
export function checkPrefix(name: string, prefix: string): void {
  if (/[{}]/.test(prefix)) {
    throw new ConfigError(`redisStore: ${name} contains { or }. Take one without.`);
  }
}

/** Error replies after which the same command may succeed a moment later, or on another node. */
const PASSING =
  /^(READONLY|UNBLOCKED|LOADING|MOVED|ASK|TRYAGAIN|CLUSTERDOWN|MASTERDOWN|BUSY|Too many Cluster redirections)\b/;

/**
 * The error code, in capitals, at the beginning of an error that the server replied. Any other error is the
 * connection's.
 */
const ANSWERED = /^-?[A-Z]{2,}\b/;

export function isNoScript(error: unknown): boolean {
  return messageOf(error).startsWith('NOSCRIPT');
}

/** True for the reply that the key's slot is on another node. */
export function isMoved(error: unknown): boolean {
  return messageOf(error).startsWith('MOVED');
}

/** True for the reply that the keys of one script are in several slots. */
export function isCrossSlot(error: unknown): boolean {
  return messageOf(error instanceof Fault ? error.cause : error).startsWith('CROSSSLOT');
}

/** True for the error of a command that the server forbids to this user, or does not have. */
export function isForbidden(error: unknown): boolean {
  return /^(NOPERM|NOAUTH|WRONGPASS|ERR unknown command|ERR The user executing the script)/.test(
    messageOf(error),
  );
}

/**
 * True if the same call may succeed when it is repeated immediately. Every script may be repeated: a second run with
 * the same owner or `acceptId` has the same result.
 */
export function isPassing(error: unknown): boolean {
  if (error instanceof Fault) return false;
  const text = messageOf(error);
  return PASSING.test(text) || !ANSWERED.test(text);
}

/**
 * True if the rows of a single call of a batch may have caused the error, e.g. because they could not be converted.
 * Then each call is sent alone.
 */
export function isAboutOne(error: unknown): boolean {
  return !(error instanceof Fault) || /^(ERR|WRONGTYPE)\b/.test(messageOf(error.cause));
}

/**
 * Messages for errors that an operator can correct, by the beginning of the server's reply. `cause` has the client's
 * own error.
 */
const MENDED: readonly (readonly [RegExp, string])[] = [
  [/^OOM/, 'is out of memory: raise maxmemory, or lower the caps of senders'],
  [/^MISCONF/, 'refuses writes because it cannot write to its disk: free space, then look into its log'],
  [/^NOPERM|^NOAUTH|^WRONGPASS/, 'refuses this user'],
  [/^READONLY/, 'is a replica'],
  [/^LOADING/, 'is loading its data'],
  [/^(MOVED|ASK|TRYAGAIN|CLUSTERDOWN|MASTERDOWN|Too many)/, 'Cluster does not serve the slot now'],
];

/** Converts an error of the client to a `Fault`, the error that callers of the store get. */
export function asFault(error: unknown): Fault {
  if (error instanceof Fault) return error;
  const text = messageOf(error);
  if (text.startsWith('NOREPLICAS')) {
    return new Fault('not_durable', `Redis: too few replicas (min-replicas-to-write).`, { cause: error });
  }
  const known = MENDED.find(([pattern]) => pattern.test(text))?.[1];
  return new Fault('store_unavailable', known ? `Redis ${known}.` : `Redis: ${text}`, { cause: error });
}
