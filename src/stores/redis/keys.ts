import { columnText } from '../text.ts';
import type { Digests } from './scripts.ts';

/** Names of a store's keys: the `KEYS` of its scripts. */
export interface Keys {
  /** All of one sender's begin with the first, and are in one slot of a Cluster by its hash tag. */
  readonly of: (sender: string) => readonly [string, string];
  readonly registry: readonly [string, string];
  /** `schema.ts`. */
  readonly version: string;
  /** `identity.ts`: its own, then those by which a store is known that had none. */
  readonly identity: readonly [string, string, string];
}

/** Tags remembered at most; beyond, they are computed again. */
const MOST = 10_000;

/**
 * A sender's tag is a digest of its agent URL: of one length, and of characters that mean nothing in a key. Senders
 * are configured, not made up by callers. `2` is the schema's version: no two have a name in common.
 */
export function keysOf(prefix: string, { tag }: Digests): Keys {
  const known = new Map<string, readonly [string, string]>();
  return {
    of: (sender) => {
      const found = known.get(sender);
      if (found) return found;
      const base = `${prefix}{${tag(columnText(sender))}}:2:`;
      const names = [base, `${base}w`] as const;
      if (known.size < MOST) known.set(sender, names);
      return names;
    },
    registry: [`${prefix}{registry}:2:`, `${prefix}{registry}:2:s`],
    version: `${prefix}{registry}:v`,
    identity: [`${prefix}{registry}:id`, `${prefix}{registry}:v`, `${prefix}{registry}:s`],
  };
}
