// The keys that the owner configured (pinned) for senders. Each list is parsed once, and each key imported once
// (verification.md §5.5).
// Called by the resolver and by each sender's search.

import type { Jwk } from '../crypto/engine.ts';
import { unfitReason } from '../auth/rfc9421/key-policy.ts';
import { ConfigError } from '../shared/errors.ts';
import type { Protocols } from '../shared/wire-names.ts';
import type { SenderEntry } from '../config/sender-entry.ts';
import type { SenderKey } from './key-resolver.ts';
import { type EngineSource, importedKey, type KeySet, newKeySet } from './jwks.ts';
import { pinnedJwks } from './pinned-jwks.ts';

/** The configured keys (pins) of senders. Each list is parsed once, and each key imported once. */
export interface Pins {
  /**
   * Returns the pinned key with this `kid`; undefined if there is none. If the key cannot be imported, its `verifyKey`
   * is the reason, for check 8 (key policy). If the list is invalid, returns the reason as a string.
   */
  key(sender: PinnedSender, kid: string): Promise<SenderKey | string | undefined>;
  /**
   * Returns the pinned key without waiting. Undefined if there is none or it was not imported before; then call `key`.
   */
  imported(sender: PinnedSender, kid: string): SenderKey | undefined;
  /** True if the sender's list of pins was parsed before and has no key with this `kid`. */
  lacks(sender: PinnedSender, kid: string): boolean;
  /**
   * Imports every pin.
   * @returns reasons, for the owner, why some pins will never verify a delivery (check 8, key policy). Such pins are
   * no error: a key set that was pinned as published may contain keys for other purposes.
   * @throws ConfigError (rejects) if the list is invalid.
   */
  importAll(sender: PinnedSender): Promise<readonly string[]>;
}

export type PinnedSender = SenderEntry & { readonly pins: readonly Jwk[] };

/** True if configuration pins the sender's keys, whether or not publishers pin keys too. */
export function isPinned(sender: SenderEntry): sender is PinnedSender {
  return sender.pins !== undefined;
}

export function createPins(engine: EngineSource, protocols: Protocols): Pins {
  // The map's key is the list itself, which lives as long as the configuration that contains the list.
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

/**
 * Returns the reason why check 8 (key policy) will refuse a key under every algorithm and protocol name; undefined if
 * it may pass.
 */
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

/**
 * Parses a list of pins; returns the reason if it is invalid. A list from a `senders` function was not checked at
 * construction.
 */
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
