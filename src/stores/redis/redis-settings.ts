// Settings of Redis servers: version, eviction, append-only file and replicas, judged for durability (admission.md
// §7.2, §9.5).
// Called by redis-session.ts and redis-schema.ts; identity-check.ts repeats the check.
import { ConfigError, Fault } from '../../shared/errors.ts';
import type { Durability } from '../store.ts';
import { type RedisConnection, isCluster, primaries, isForbidden, isPassing } from './redis-client.ts';
import { type Attached, attachedIn } from './barrier.ts';
import { withTimeout } from './send-script.ts';

/** A primary and its settings. */
interface Server {
  readonly info: ReadonlyMap<string, string>;
  /** The number of replicas that are connected to this primary and report to it. */
  readonly attached: number;
  /** Reads a setting; undefined if CONFIG GET is not allowed. */
  readonly config: (name: string) => Promise<string | undefined>;
}

/** The oldest supported version: the first with `SET … PXAT`. */
const OLDEST = [6, 2] as const;

async function serverOf(node: RedisConnection): Promise<Server> {
  const text = String(await node.call('INFO'));
  const info = new Map<string, string>();
  for (const line of text.split('\r\n')) {
    const colon = line.indexOf(':');
    if (colon > 0) info.set(line.slice(0, colon), line.slice(colon + 1));
  }
  return { info, attached: attachedIn(text), config: (name) => configOf(node, name) };
}

/** Reads a setting; undefined if CONFIG is forbidden, as in many managed services. */
async function configOf(node: RedisConnection, name: string): Promise<string | undefined> {
  try {
    const reply = (await node.call('CONFIG', 'GET', name)) as readonly unknown[];
    return typeof reply[1] === 'string' ? reply[1] : undefined;
  } catch (error) {
    if (isForbidden(error)) return undefined;
    throw error;
  }
}

function serversOf(connection: RedisConnection): Promise<Server[]> {
  return Promise.all(primaries(connection).map(serverOf));
}

/**
 * Checks that every primary is suitable for the store.
 *
 * @throws ConfigError with the setting to change.
 */
export async function checkServers(connection: RedisConnection): Promise<void> {
  for (const server of await serversOf(connection)) {
    checkVersion(server);
    checkRole(server, connection);
    await checkEviction(server);
  }
}

function checkVersion({ info }: Server): void {
  const version = info.get('redis_version') ?? '';
  const [major = 0, minor = 0] = version.split('.').map(Number);
  if (major > OLDEST[0] || (major === OLDEST[0] && minor >= OLDEST[1])) return;
  throw new ConfigError(
    `redisStore: Redis ${version} is too old. Upgrade it to ${OLDEST.join('.')} or later.`,
  );
}

function checkRole({ info }: Server, connection: RedisConnection): void {
  if (info.get('role') === 'slave') {
    throw new ConfigError('redisStore: the client is connected to a replica. Connect it to the primary.');
  }
  if (info.get('cluster_enabled') === '1' && !isCluster(connection)) {
    throw new ConfigError('redisStore: the server is a node of a Cluster. Pass new Redis.Cluster([…]).');
  }
}

/** Checks the eviction policy. Unless it is `noeviction`, a full server deletes events that were answered 2xx. */
async function checkEviction({ info, config }: Server): Promise<void> {
  const policy = (await config('maxmemory-policy')) ?? info.get('maxmemory_policy');
  if (policy === undefined || policy === 'noeviction') return;
  throw new ConfigError(
    `redisStore: maxmemory-policy is ${policy}, which drops acknowledged events when memory is full. Set maxmemory-policy noeviction.`,
  );
}

/** The level of durability that the store had when it was opened, and the time limit for a server's answer. */
export interface KeptOptions {
  /** True if writes were on disk before their answer when the store was opened. */
  readonly onDisk: boolean;
  readonly timeoutMs: number;
}

/**
 * The share of a call's time limit that a check may take if there are several primaries. A primary that does not answer
 * in that time must not stop calls to the others.
 */
const SHARE = 1 / 4;

export function lookMs(connection: RedisConnection, timeoutMs: number): number {
  return primaries(connection).length > 1 ? timeoutMs * SHARE : timeoutMs;
}

/**
 * Checks that every primary is as durable as before. If there are several, a primary that does not answer is skipped.
 * Calls to its slots fail by themselves, and calls to other slots must not fail. The skipped primary is checked again
 * after it has reconnected, or by the next check.
 *
 * @throws ConfigError with the setting to change; the connection's error if no primary answers.
 */
export async function checkKept(connection: RedisConnection, options: KeptOptions): Promise<void> {
  const nodes = primaries(connection);
  const timeoutMs = lookMs(connection, options.timeoutMs);
  const looks = await Promise.allSettled(
    nodes.map((node) => withTimeout(checkNode(node, options.onDisk), timeoutMs)),
  );
  const failed = looks.filter(({ status }) => status === 'rejected') as PromiseRejectedResult[];
  const errors = failed.map(({ reason }): unknown => reason);
  const answered = errors.find((error) => !isSilence(error));
  if (answered !== undefined) throw answered;
  if (errors.length > 0 && errors.length === nodes.length) throw errors[0];
}

/**
 * True if an error of a check means that the server did not answer it. False if the server answered with wrong
 * settings.
 */
export function isSilence(error: unknown): boolean {
  return !(error instanceof ConfigError) && (error instanceof Fault || isPassing(error));
}

async function checkNode(node: RedisConnection, onDisk: boolean): Promise<void> {
  const server = await serverOf(node);
  await checkEviction(server);
  if (onDisk && (await isOnDisk(server)) === false) {
    throw new ConfigError(`redisStore: answers were on disk when the store was opened. ${ADVICE}`);
  }
}

function attachedOf(servers: readonly Server[]): Attached {
  const counts = servers.map(({ attached }) => attached);
  return { least: Math.min(...counts), most: Math.max(...counts) };
}

export async function attachedTo(connection: RedisConnection): Promise<Attached> {
  return attachedOf(await serversOf(connection));
}

/** The advice for reaching a higher durability, if writes are not on disk before their answer. */
export const ADVICE: string =
  "For 'disk' set appendonly yes, appendfsync always and no-appendfsync-on-rewrite no on every primary; for 'failover' attach replicas to every primary, too.";

/**
 * Returns the durability under the settings of all primaries.
 *
 * - `disk`: the append-only file is synced before a reply. Under `everysec` a power failure loses up to two seconds.
 *   With `no-appendfsync-on-rewrite` it loses all writes during a rewrite. Both are `process`.
 * - `failover`: on disk, and confirmed before a reply by all replicas that could take the primary's place. If fewer
 *   confirmed, one of the others may already be the new primary, while the confirming ones still follow the old one.
 *   Replicas alone are not enough: a primary that restarts from an older file would make its replicas forget too.
 */
export async function durabilityOf(
  connection: RedisConnection,
  replicasOf: (attached: Attached) => number,
): Promise<Durability | 'unknown'> {
  const servers = await serversOf(connection);
  const attached = attachedOf(servers);
  const replicas = replicasOf(attached);
  const disks = await Promise.all(servers.map(isOnDisk));
  if (disks.includes(false)) return 'process';
  if (disks.includes(undefined)) return 'unknown';
  return replicas > 0 && replicas <= attached.least && replicas >= attached.most ? 'failover' : 'disk';
}

async function isOnDisk({ info, config }: Server): Promise<boolean | undefined> {
  if (info.get('aof_enabled') === '0') return false;
  const [fsync, rewrite] = [await config('appendfsync'), await config('no-appendfsync-on-rewrite')];
  if (info.get('aof_enabled') === undefined || fsync === undefined || rewrite === undefined) return undefined;
  return fsync === 'always' && rewrite === 'no';
}
