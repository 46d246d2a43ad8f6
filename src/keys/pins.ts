import type { Jwk } from '../crypto/engine.ts';
import { ConfigError } from '../errors.ts';
import type { Sender, SenderEntry } from '../senders.ts';
import type { SenderKey } from './contract.ts';
import { type EngineSource, importedKey, isJwk, type KeySet, publicPart } from './jwks.ts';

/**
 * Checks what can be seen of a sender's pins without importing them: each is an object with a `kid` of its own, and
 * there is at least one.
 * @throws ConfigError naming the sender and the `kid`.
 */
export function checkPins(sender: Pick<Sender, 'agentUrl' | 'pins'>): void {
  if (sender.pins !== undefined) pinnedSet(sender.agentUrl, sender.pins);
}

/** Pins of the senders in use; each list is read and each key imported once. */
export interface Pins {
  /** The pinned key under `kid`, undefined where none is pinned under it; a string says why a pin cannot be used. */
  key(sender: PinnedSender, kid: string): Promise<SenderKey | string | undefined>;
  /** Imports every pin. @throws ConfigError (rejects) naming the sender and the `kid` that cannot be imported. */
  importAll(sender: PinnedSender): Promise<void>;
}

export type PinnedSender = SenderEntry & { readonly pins: readonly Jwk[] };

/** By configuration; publishers may pin more keys. */
export function isPinned(sender: SenderEntry): sender is PinnedSender {
  return sender.pins !== undefined;
}

/** @param shared see `importedKey`. */
export function createPins(engine: EngineSource, shared = true): Pins {
  // By identity: a list of pins lives as long as the configuration that holds it.
  const sets = new WeakMap<readonly Jwk[], KeySet | string>();
  const setOf = (sender: PinnedSender): KeySet | string => {
    const known = sets.get(sender.pins);
    if (known !== undefined) return known;
    const set = setOrFlaw(sender);
    sets.set(sender.pins, set);
    return set;
  };
  return {
    key: async (sender, kid) => {
      const set = setOf(sender);
      const key = typeof set === 'string' ? set : await importedKey(set, kid, engine, shared);
      if (key === undefined || typeof key === 'string' || typeof key.verifyKey !== 'string') return key;
      // Our owner's slip, not the sender's: nothing that could be answered 4xx.
      return importFlaw(sender.agentUrl, kid, key.verifyKey);
    },
    importAll: async (sender) => {
      const set = pinnedSet(sender.agentUrl, sender.pins);
      for (const kid of set.jwks.keys()) {
        const key = await importedKey(set, kid, engine, shared);
        if (typeof key?.verifyKey !== 'string') continue;
        throw new ConfigError(importFlaw(sender.agentUrl, kid, key.verifyKey));
      }
      sets.set(sender.pins, set);
    },
  };
}

function importFlaw(agentUrl: string, kid: string, flaw: string): string {
  return `pins of ${agentUrl}: the key ${JSON.stringify(kid)} cannot be used: ${flaw}. Pin the public JWK as the seller publishes it.`;
}

/** A `senders` function can give what nobody has checked before. */
function setOrFlaw(sender: PinnedSender): KeySet | string {
  try {
    return pinnedSet(sender.agentUrl, sender.pins);
  } catch (error) {
    if (error instanceof ConfigError) return error.message;
    throw error;
  }
}

function pinnedSet(agentUrl: string, pins: readonly unknown[]): KeySet {
  const where = `pins of ${agentUrl}`;
  if (!Array.isArray(pins)) throw new ConfigError(`${where}: not an array. Pass an array of JWKs.`);
  if (pins.length === 0) {
    throw new ConfigError(
      `${where}: empty, so nothing would ever verify. Leave pins out to use the seller's JWKS.`,
    );
  }
  const jwks = new Map<string, Jwk>();
  for (const [index, jwk] of pins.entries()) {
    if (!isJwk(jwk)) throw new ConfigError(`${where}: entry ${index} is not a JWK. Pass JWK objects.`);
    const { kid } = jwk;
    if (typeof kid !== 'string' || kid === '') {
      throw new ConfigError(`${where}: entry ${index} has no kid. Add the kid under which the seller signs.`);
    }
    if (jwks.has(kid)) {
      throw new ConfigError(
        `${where}: the kid ${JSON.stringify(kid)} occurs twice. Keep one key for each kid.`,
      );
    }
    jwks.set(kid, publicPart(jwk));
  }
  return { jwks, imported: new Map() };
}
