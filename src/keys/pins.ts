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
   * The pinned key under `kid`, undefined where none is pinned under it; one that cannot be imported says so itself
   * (check 8). A string says why the list is none.
   */
  key(sender: PinnedSender, kid: string): Promise<SenderKey | string | undefined>;
  /** The same without waiting: undefined where it was not asked for before, or only under other key ids. */
  imported(sender: PinnedSender, kid: string): SenderKey | undefined;
  /** Whether the list has been read and has nothing under `kid`. */
  lacks(sender: PinnedSender, kid: string): boolean;
  /**
   * Imports every pin.
   * @returns why some of them will never verify a delivery (check 8), for the owner: a set that is pinned as the seller
   *   publishes it may have keys of other purposes.
   * @throws ConfigError (rejects) where the list is none.
   */
  importAll(sender: PinnedSender): Promise<readonly string[]>;
}

export type PinnedSender = SenderEntry & { readonly pins: readonly Jwk[] };

/** By configuration; publishers may pin more keys. */
export function isPinned(sender: SenderEntry): sender is PinnedSender {
  return sender.pins !== undefined;
}

export function createPins(engine: EngineSource, protocols: Protocols): Pins {
  // By identity: a list of pins lives as long as the configuration that holds it.
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

/** Why check 8 will refuse a key under every algorithm and every name. */
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

/** A `senders` function can return a list that was not checked at construction. */
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
