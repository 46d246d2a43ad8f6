import { ConfigError } from '../../errors.ts';
import { nodeCrypto } from '../node-crypto.ts';
import { LUA } from './lua.ts';

/** A Lua script as Redis knows it. */
export interface Script {
  readonly source: string;
  /** SHA-1 of the source, lower-case hex: its name in the server's script cache. */
  readonly sha: string;
}

/** On the rows of one sender. */
export type RowScript =
  'commit' | 'load' | 'due' | 'far' | 'take' | 'suspect' | 'page' | 'sweep' | 'takeover' | 'turns' | 'listed';

const ROWS: Record<RowScript, string> = {
  commit: LUA.commit,
  load: LUA.load,
  due: LUA.due,
  far: LUA.far,
  take: LUA.take,
  suspect: LUA.suspect,
  page: LUA.page,
  sweep: LUA.sweep,
  takeover: LUA.takeover,
  turns: LUA.turns,
  listed: LUA.listed,
};

type OtherScript = 'register' | 'senders' | 'oldsenders';

const OTHERS: Record<OtherScript, string> = {
  register: LUA.register,
  senders: LUA.senders,
  oldsenders: LUA.oldsenders,
};

/** All scripts of the store. */
export type Scripts = Readonly<Record<RowScript | OtherScript, Script>>;

/** Hashes that the store needs. Redis clients run on Node and what resembles it, and so does `node:crypto`. */
export interface Digests {
  readonly sha1Hex: (text: string) => string;
  /** 132 bits of SHA-256 of a text, in characters that mean nothing to Redis. */
  readonly tag: (text: string) => string;
}

/** @throws ConfigError where the runtime has no `node:crypto`. */
export function nodeDigests(): Digests {
  const crypto = nodeCrypto();
  if (!crypto) throw new ConfigError('redisStore: this runtime has no node:crypto. Run it on Node >= 20.19.');
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
