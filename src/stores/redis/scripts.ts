import { ConfigError } from '../../errors.ts';
import { ACCEPT } from './lua/accept.ts';
import { COMPLETE } from './lua/complete.ts';
import { DISCARD, DUE, INSPECT, LEASE, LIST, REDRIVE } from './lua/inbox.ts';
import { REGISTER, SENDERS } from './lua/registry.ts';
import { FAIL, PEEK, RENEW } from './lua/settle.ts';

/** A Lua script as Redis knows it. */
export interface Script {
  readonly source: string;
  /** SHA-1 of the source, lower-case hex: its name in the server's script cache. */
  readonly sha: string;
}

export type ScriptName =
  | 'accept'
  | 'complete'
  | 'fail'
  | 'renew'
  | 'peek'
  | 'due'
  | 'lease'
  | 'list'
  | 'inspect'
  | 'redrive'
  | 'discard'
  | 'register'
  | 'senders';

const SOURCES: Record<ScriptName, string> = {
  accept: ACCEPT,
  complete: COMPLETE,
  fail: FAIL,
  renew: RENEW,
  peek: PEEK,
  due: DUE,
  lease: LEASE,
  list: LIST,
  inspect: INSPECT,
  redrive: REDRIVE,
  discard: DISCARD,
  register: REGISTER,
  senders: SENDERS,
};

/** All scripts of the store. */
export type Scripts = Readonly<Record<ScriptName, Script>>;

/** Hashes that the store needs. Redis clients run on Node and what resembles it, and so does `node:crypto`. */
export interface Digests {
  readonly sha1Hex: (text: string) => string;
  /** 132 bits of SHA-256 of a text, in characters that mean nothing to Redis. */
  readonly tag: (text: string) => string;
}

interface Hash {
  update(text: string): Hash;
  digest(encoding: 'hex' | 'base64url'): string;
}

/** @throws ConfigError where the runtime has no `node:crypto`. */
export function nodeDigests(): Digests {
  const crypto = globalThis.process?.getBuiltinModule?.('node:crypto') as
    { createHash(name: 'sha1' | 'sha256'): Hash } | undefined;
  if (!crypto) throw new ConfigError('redisStore: this runtime has no node:crypto. Run it on Node >= 20.19.');
  return {
    sha1Hex: (text) => crypto.createHash('sha1').update(text).digest('hex'),
    tag: (text) => crypto.createHash('sha256').update(text).digest('base64url').slice(0, 22),
  };
}

export function scriptsOf({ sha1Hex }: Digests): Scripts {
  const entries = Object.entries(SOURCES).map(([name, source]) => [name, { source, sha: sha1Hex(source) }]);
  return Object.fromEntries(entries) as Scripts;
}
