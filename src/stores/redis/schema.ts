import { lookAgain } from '../look-again.ts';
import { unknownVersion, whileRunning } from '../schema-version.ts';
import type { Connection } from './client.ts';
import { isCluster } from './client.ts';
import { withTimeout } from './send.ts';
import { isSilence, lookMs } from './settings.ts';
import type { Watch } from './watch.ts';
import { watchBy } from './watch.ts';

/**
 * The version of what the keys mean: their names (`lua/rows.ts`, `lua/registry.ts`), their types, and the fields of a
 * packed row in their order. It stands at `<prefix>{registry}:v`, without an expiry; where that is absent it is 1.
 *
 * What has a version is never changed within it: a test reads keys that an older release wrote. A release that means
 * something else by them has the next version. Its open sets the key first, with whatever replicas are waited for; then it
 * waits until every older process has looked (10 s, and as long as a call may take), for in a Cluster no script of theirs
 * can see the key; and only then it changes anything.
 */
const VERSION = 1;

/** @throws ConfigError where a newer package has changed what the keys mean. */
export async function checkSchema(connection: Connection, key: string): Promise<void> {
  const version = await connection.call('GET', key);
  if (version === null || version === String(VERSION)) return;
  const at = { store: 'redisStore', place: 'the keys have', own: 'a prefix', known: VERSION };
  throw unknownVersion(at, version);
}

export interface SchemaWatchOptions {
  readonly timeoutMs: number;
  readonly clockOffsetMs: () => number;
}

/** Every 10 s. @throws Fault `misconfigured` where `checkSchema` would throw ConfigError. */
export function schemaWatchOf(
  connection: Connection,
  key: string,
  { timeoutMs, clockOffsetMs }: SchemaWatchOptions,
): Watch {
  const look = async (): Promise<void> => {
    try {
      await withTimeout(checkSchema(connection, key), lookMs(connection, timeoutMs));
    } catch (error) {
      // The node of this one slot: calls of the others go on.
      if (isCluster(connection) && isSilence(error)) return;
      throw whileRunning(error);
    }
  };
  return watchBy(lookAgain(look, () => performance.now() + clockOffsetMs()));
}
