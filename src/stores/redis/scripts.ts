// The Lua scripts with their hashes, and the names of keys (admission.md §9.5).
// Called by `src/stores/redis.ts`, which makes both once; `lua.ts` has the sources.
import { ConfigError } from '../../shared/errors.ts';
import { nodeCrypto } from '../optimistic/row-data.ts';
import { columnText } from '../text.ts';
import { LUA } from './lua.ts';

/**
 * The version of the keys: their names and types (`lua/rows.lua`, `lua/register.lua`), and the content of a row.
 * From the release of 0.1.0 on, every change of these is a new version, with new names for all keys
 * (`docs/operations.md`, "Upgrades").
 */
export const SCHEMA_VERSION = 4;

/** A Lua script: its source, and the hash by which Redis runs it. */
export interface Script {
  readonly source: string;
  /** The SHA-1 of the source, lower-case hex: its name in the server's script cache. */
  readonly sha: string;
}

/** The scripts that work on the rows of one sender. */
export type RowScript =
  'commit' | 'load' | 'due' | 'take' | 'suspect' | 'page' | 'counted' | 'sweep' | 'turns' | 'listed';

const ROWS: Record<RowScript, string> = {
  commit: LUA.commit,
  load: LUA.load,
  due: LUA.due,
  take: LUA.take,
  suspect: LUA.suspect,
  page: LUA.page,
  counted: LUA.counted,
  sweep: LUA.sweep,
  turns: LUA.turns,
  listed: LUA.listed,
};

type OtherScript = 'register' | 'senders';

const OTHERS: Record<OtherScript, string> = {
  register: LUA.register,
  senders: LUA.senders,
};

export type Scripts = Readonly<Record<RowScript | OtherScript, Script>>;

/**
 * The hash functions that the store needs. Redis clients run only on Node and similar runtimes, which have
 * `node:crypto`.
 */
export interface Digests {
  readonly sha1Hex: (text: string) => string;
  /** Returns 132 bits of a text's SHA-256, in characters without a special meaning in Redis. */
  readonly tag: (text: string) => string;
}

/**
 * Makes the hash functions.
 *
 * @throws ConfigError if the runtime has no `node:crypto`.
 */
export function nodeDigests(): Digests {
  const crypto = nodeCrypto();
  if (!crypto) throw new ConfigError('redisStore: this runtime has no node:crypto. Run it on Node >= 22.13.');
  return {
    sha1Hex: (text) => crypto.createHash('sha1').update(text).digest('hex'),
    tag: (text) => crypto.createHash('sha256').update(text).digest('base64url').slice(0, 22),
  };
}

export function scriptsOf({ sha1Hex }: Digests): Scripts {
  const sources = Object.entries(ROWS).map(([name, source]) => [name, LUA.rows + source] as const);
  const entries = [...sources, ...Object.entries(OTHERS)].map(([name, source]) => [
    name,
    { source, sha: sha1Hex(source) },
  ]);
  return Object.fromEntries(entries) as Scripts;
}

/** The names of a store's keys: the `KEYS` of its scripts. */
export interface Keys {
  /**
   * Returns the two key names that a script gets for a sender. All keys of the sender begin with the first name. Its
   * hash tag puts these keys into one slot of a Cluster.
   */
  readonly of: (sender: string) => readonly [string, string];
  readonly registry: readonly [string, string];
  /** The key that has the version of all keys (redis-schema.ts). */
  readonly version: string;
  /**
   * The keys for redis-schema.ts: identity, version, and the registry of version 1 of the keys, which had no version
   * key.
   */
  readonly identity: readonly [string, string, string];
}

/** The largest number of senders whose key names are remembered; the names of others are computed each time. */
const MOST = 10_000;

/**
 * Makes the names of keys. A sender's tag is a digest of its agent URL. It has a fixed length, and no character that
 * has a meaning in a key. Two versions of the schema never share a name.
 *
 * Names are remembered by sender; callers cannot invent senders, because these are configured.
 */
export function keysOf(prefix: string, { tag }: Digests): Keys {
  const known = new Map<string, readonly [string, string]>();
  const registry = `${prefix}{registry}:${SCHEMA_VERSION}:`;
  return {
    of: (sender) => {
      const found = known.get(sender);
      if (found) return found;
      const base = `${prefix}{${tag(columnText(sender))}}:${SCHEMA_VERSION}:`;
      const names = [base, `${base}w`] as const;
      if (known.size < MOST) known.set(sender, names);
      return names;
    },
    registry: [registry, `${registry}s`],
    version: `${prefix}{registry}:v`,
    identity: [`${prefix}{registry}:id`, `${prefix}{registry}:v`, `${prefix}{registry}:s`],
  };
}
