// Pins that the owner configured for senders: read once, imported once (verification.md §5.5).
// Called by the resolver and by each sender's search.

import type { Jwk } from '../crypto/engine.ts';
import { unfitReason } from '../auth/rfc9421/key-policy.ts';
import { ConfigError } from '../shared/errors.ts';
import type { Protocols } from '../shared/wire-names.ts';
import type { SenderEntry } from '../config/sender-entry.ts';
import type { SenderKey } from './key-resolver.ts';
import { type EngineSource, importedKey, type KeySet, newKeySet } from './jwks.ts';
import { pinnedJwks } from './pinned-jwks.ts';

/** Pins of the senders in use; each list is read and each key imported once. */
export interface Pins {
  /**
   * The pinned key under `kid`; undefined if there is none. A key that cannot be imported says so itself
   * (check 8). A string says why the list is invalid.
   */
  key(sender: PinnedSender, kid: string): Promise<SenderKey | string | undefined>;
  /** As `key`, without waiting: undefined if the key was not imported before. */
  imported(sender: PinnedSender, kid: string): SenderKey | undefined;
  /** True if the list was read and has nothing under `kid`. */
  lacks(sender: PinnedSender, kid: string): boolean;
  /**
   * Imports every pin.
   * @returns reasons why some will never verify a delivery (check 8), for the owner: a set pinned as
   * published may have keys of other purposes.
   * @throws ConfigError (rejects) if the list is invalid.
   */
  importAll(sender: PinnedSender): Promise<readonly string[]>;
}

export type PinnedSender = SenderEntry & { readonly pins: readonly Jwk[] };

/** True if configuration pins the sender's keys; publishers may pin more. */
export function isPinned(sender: SenderEntry): sender is PinnedSender {
  return sender.pins !== undefined;
}

export function createPins(engine: EngineSource, protocols: Protocols): Pins {
  // Keyed by identity: a list of pins lives as long as the configuration that holds it.
  const sets = new WeakMap<readonly Jwk[], KeySet | string>();
  const setOf = (sender: PinnedSender): KeySet | string => {
    const known = sets.get(sender.pins);
    if (known !== undefined) return known;
    const set = readSet(sender);
    sets.set(sender.pins, set);
    return set;
  };
  return {
    key: async (sender, kid) => {
      const set = setOf(sender);
      return typeof set === 'string' ? set : await importedKey(set, kid, engine);
    },
    imported: (sender, kid) => {
      const set = sets.get(sender.pins);
      return typeof set === 'object' ? set.imported.get(kid) : undefined;
    },
    lacks: (sender, kid) => {
      const set = sets.get(sender.pins);
      return typeof set === 'object' && !set.jwks.has(kid);
    },
    importAll: async (sender) => {
      const set = pinnedSet(sender.agentUrl, sender.pins);
      const reasons: string[] = [];
      for (const kid of set.jwks.keys()) {
        const reason = unusableReason(await importedKey(set, kid, engine), sender, protocols);
        if (reason !== undefined) reasons.push(unusableMessage(sender.agentUrl, kid, reason));
      }
      sets.set(sender.pins, set);
      return reasons;
    },
  };
}

/** The reason why check 8 will refuse a key under every algorithm and every name. */
function unusableReason(
  key: SenderKey | undefined,
  { edition }: PinnedSender,
  protocols: Protocols,
): string | undefined {
  if (key === undefined) return undefined;
  if (typeof key.verifyKey === 'string') return key.verifyKey;
  return unfitReason(key.jwk, key.verifyKey, protocols, edition);
}

function unusableMessage(agentUrl: string, kid: string, reason: string): string {
  return `pins of ${agentUrl}: the key ${JSON.stringify(kid)} cannot be used: ${reason}. Pin the public JWK as the seller publishes it.`;
}

/** Reads a list that may be unchecked: a `senders` function returns lists after construction. */
function readSet(sender: PinnedSender): KeySet | string {
  try {
    return pinnedSet(sender.agentUrl, sender.pins);
  } catch (error) {
    if (error instanceof ConfigError) return error.message;
    throw error;
  }
}

function pinnedSet(agentUrl: string, pins: readonly unknown[]): KeySet {
  return newKeySet(pinnedJwks(agentUrl, pins));
}
