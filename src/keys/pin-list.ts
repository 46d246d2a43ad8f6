import type { Jwk } from '../crypto/engine.ts';
import { ConfigError } from '../errors.ts';
import type { Sender } from '../senders.ts';
import { isJwk, publicPart } from './jwk.ts';

/**
 * Checks what can be seen of a sender's pins without importing them: each is an object with a `kid` of its own, and
 * there is at least one.
 * @throws ConfigError naming the sender and the `kid`.
 */
export function checkPins(sender: Pick<Sender, 'agentUrl' | 'pins'>): void {
  if (sender.pins !== undefined) pinnedJwks(sender.agentUrl, sender.pins);
}

/** Pins by `kid`, public members only. @throws ConfigError where the list is none. */
export function pinnedJwks(agentUrl: string, pins: readonly unknown[]): ReadonlyMap<string, Jwk> {
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
  return jwks;
}
