import type { Jwk } from '../crypto/engine.ts';
import { publicPart } from '../keys/jwk.ts';
import type { CliContext } from './shell.ts';
import { readJsonObject } from './files.ts';
import { UsageError } from './usage-error.ts';

const EXPECTED = 'a JWK, a JWKS ({"keys":[…]}) or what `proto-webhooks keys generate` writes';

function jwksOf(document: Readonly<Record<string, unknown>>): readonly unknown[] {
  if (Array.isArray(document['keys'])) return document['keys'] as unknown[];
  const pair = [document['privateJwk'], document['publicJwk']].find((half) => half !== undefined);
  return pair === undefined ? [document] : [pair];
}

function isJwk(value: unknown): value is Jwk {
  return typeof value === 'object' && value !== null && typeof (value as Jwk)['kty'] === 'string';
}

/**
 * The keys of files: a JWK, a JWKS, or a pair of `generateKey`.
 * @throws UsageError for a file that has none, and for one without `kid`.
 */
export async function readKeys(files: readonly string[], context: CliContext): Promise<Jwk[]> {
  const keys: Jwk[] = [];
  for (const file of files) {
    const found = jwksOf(await readJsonObject(file, EXPECTED, context));
    if (found.length === 0 || !found.every(isJwk))
      throw new UsageError(`${file}: no keys. Expected ${EXPECTED}.`);
    const unnamed = found.some((jwk) => typeof jwk['kid'] !== 'string' || jwk['kid'] === '');
    if (unnamed) throw new UsageError(`${file}: a key has no kid. Add the one under which it is published.`);
    keys.push(...found);
  }
  return keys;
}

/** What is published of a key: a private one is published as `verify`, a public one as it is. */
export function publicJwk(jwk: Jwk): Jwk {
  const shown = publicPart(jwk);
  return isPrivate(jwk) ? { ...shown, key_ops: ['verify'] } : shown;
}

/** Whether it can sign. */
export const isPrivate = (jwk: Jwk): boolean => typeof jwk['d'] === 'string';

/** For commander: collects what an option is given several times, or several values of it. */
export const collect = (value: string, before: readonly string[] = []): readonly string[] => [
  ...before,
  value,
];
