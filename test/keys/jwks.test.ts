import { describe, expect, test } from 'vitest';
import { createEngine, type CryptoEngine } from '../../src/auth/rfc9421/index.ts';
import { allKeys, heldKeys, importedKey, JWKS, type KeySet, sameJwk } from '../../src/keys/for-tests.ts';
import { onWorkerd } from '../support/workerd.ts';
import { publicJwk } from './setup.ts';

const AT = 'https://seller.example/.well-known/jwks.json';

function parse(json: unknown): ReturnType<typeof JWKS.parse> {
  const text = typeof json === 'string' ? json : JSON.stringify(json);
  return JWKS.parse(new TextEncoder().encode(text), AT);
}

function keySet(...keys: readonly unknown[]): KeySet {
  const parsed = parse({ keys });
  if (!parsed.ok) throw new Error(parsed.reason);
  return parsed.value;
}

/** The real engine, counting imports. */
async function countingEngine(): Promise<{ engine: CryptoEngine; imports: () => number }> {
  const real = await createEngine();
  let count = 0;
  const engine: CryptoEngine = {
    ...real,
    importKey: async (jwk) => {
      count += 1;
      return await real.importKey(jwk);
    },
  };
  return { engine, imports: () => count };
}

test('keys are found by kid, byte for byte', () => {
  const set = keySet(publicJwk('a'), publicJwk('A'), publicJwk(''));
  expect([...set.jwks.keys()]).toEqual(['a', 'A', '']);
});

test('keys that differ under one kid take no other key along, and each of them is kept in view', () => {
  const [a, b, other, third] = [publicJwk('a'), publicJwk('b'), publicJwk('a'), publicJwk('a')];
  const parsed = parse({ keys: [a, b, other, third, a] });
  if (!parsed.ok) throw new Error(parsed.reason);
  expect([...parsed.value.jwks]).toEqual([['b', b]]);
  expect([...parsed.value.ambiguous]).toEqual([['a', [a, other, third]]]);
  expect(allKeys(parsed.value)).toEqual([['b', b], ...[a, other, third].map((key) => ['a', key])]);
  expect(parsed.warning).toMatch(/share the kid "a"\. None of them is used/);
});

test('a warning names four such key ids, printable and short', () => {
  const kids = ['\u202e', 'b'.repeat(300), 'c', 'd', 'e', 'f'];
  const parsed = parse({ keys: [...kids, ...kids].map((kid) => publicJwk(kid)) });
  expect(parsed.ok && parsed.warning).toContain(
    `"?", "${'b'.repeat(64)}…", "c", "d" and 2 more. None of them is used`,
  );
});

test('a key that is listed twice alike, members in any order, is one key', () => {
  const jwk = publicJwk('a');
  const parsed = parse({ keys: [jwk, Object.fromEntries(Object.entries(jwk).toReversed())] });
  expect(parsed).toEqual({
    ok: true,
    value: expect.objectContaining({ jwks: new Map([['a', jwk]]) }) as unknown,
  });
});

test('entries that are no object or have no kid are passed over', () => {
  const { kid: _kid, ...nameless } = publicJwk('x');
  expect([...keySet(null, 1, 'x', [], {}, { kid: 5 }, nameless, publicJwk('a')).jwks.keys()]).toEqual(['a']);
});

test.each([
  [{}, 'keys is not an array'],
  [{ keys: {} }, 'keys is not an array'],
  [{ keys: Array.from({ length: 1001 }, () => ({})) }, 'more than 1000 keys'],
  ['<!doctype html>', 'the body is not JSON'],
  ['{"keys":[],"keys":[]}', 'an object in the body has a name twice: "keys"'],
  ['{"keys":[{"kid":"a","kid":"b"}]}', 'an object in the body has a name twice: "kid"'],
])('a broken set is refused: %#', (json, reason) => {
  expect(parse(json)).toEqual({ ok: false, reason });
});

test.each(['d', 'p', 'q', 'dp', 'dq', 'qi', 'oth'])(
  'a set with a private key (%s) is refused, without showing any of it',
  (member) => {
    const parsed = parse({ keys: [publicJwk('b'), { ...publicJwk('a'), [member]: 'c2VjcmV0' }] });
    expect(parsed).toEqual({ ok: false, reason: 'a key is published with its private half' });
  },
);

test('also when that key has no kid; a null private member counts as absent', () => {
  const { kid: _kid, ...nameless } = publicJwk('x');
  expect(parse({ keys: [{ ...nameless, d: 'c2VjcmV0' }] })).toMatchObject({ ok: false });
  expect(parse({ keys: [{ ...publicJwk('a'), d: null }] })).toMatchObject({ ok: true });
});

test('the secret of a symmetric key is dropped, and check 8 refuses the key', () => {
  const parsed = parse({ keys: [{ kid: 'a', kty: 'oct', k: 'c2VjcmV0' }] });
  expect(parsed).toMatchObject({ ok: true });
  expect(parsed.ok && parsed.value.jwks.get('a')).toEqual({ kid: 'a', kty: 'oct' });
});

describe('a key of the set in force serves on where the new one has spoilt it', () => {
  const good = publicJwk('k');
  const OFF_CURVE = { kid: 'k', kty: 'EC', crv: 'P-256', x: 'A'.repeat(43), y: 'A'.repeat(43) };
  const held = (next: KeySet, before: KeySet, now = 0): ReturnType<typeof heldKeys> =>
    heldKeys(next, { value: before, hardUntil: 10 }, now);

  test.each([
    ['wrong kty', { ...good, kty: 'RSA' }],
    ['kty oct', { kid: 'k', kty: 'oct', k: 'AAAA' }],
    ['another curve', { ...good, crv: 'X25519' }],
    ['a point off the curve', OFF_CURVE],
    ['no x', { ...good, x: undefined }],
  ])('a key that could verify replaced by one that cannot: %s', (_what, bad) => {
    const { value, warning } = held(keySet(bad, publicJwk('new')), keySet(good, publicJwk('old'))) ?? {};
    expect([...(value?.jwks.keys() ?? [])]).toEqual(['k', 'new']);
    expect(value?.jwks.get('k')).toEqual(good);
    expect(value?.ambiguous.get('k')).toHaveLength(2);
    expect(warning).toContain('"k"');
  });

  test('a key that could verify replaced by several that differ', () => {
    const several = keySet(good, publicJwk('k'));
    expect(held(several, keySet(good))?.value.jwks.get('k')).toEqual(good);
    expect(held(keySet(good, { ...good }), keySet(good))).toBeUndefined();
    expect(held(keySet(OFF_CURVE, publicJwk('k')), keySet(OFF_CURVE))).toBeUndefined();
    expect(held(keySet(good, publicJwk('l'), publicJwk('l')), keySet(good))).toBeUndefined();
  });

  test('until the hard limit of the copy that had it last, however often the set is fetched', () => {
    let before = held(keySet(OFF_CURVE), keySet(good), 9)?.value;
    for (const now of [9, 9.5]) {
      before = before && heldKeys(keySet(OFF_CURVE), { value: before, hardUntil: now + 10 }, now)?.value;
      expect(before?.jwks.get('k')).toEqual(good);
    }
    expect(before && heldKeys(keySet(OFF_CURVE), { value: before, hardUntil: 20 }, 10)).toBeUndefined();
  });

  test('and no more of them than a document has, however the set moves', () => {
    let set = keySet({ ...good, pad: 'x'.repeat(40_000) });
    for (let round = 0; round < 5; round += 1) {
      const spoilt = [...set.jwks.keys()].map((kid) => ({ ...OFF_CURVE, kid }));
      const next = keySet(...spoilt, { ...publicJwk(`k${round}`), pad: 'x'.repeat(40_000) });
      set = held(next, set)?.value ?? next;
    }
    const characters = [...set.held.keys()].map((kid) => JSON.stringify(set.jwks.get(kid)).length);
    expect(characters.reduce((sum, one) => sum + one, 0)).toBeLessThan(65_536);
  });

  test('another key, a missing key or an unusable key is no problem', () => {
    expect(held(keySet(publicJwk('k')), keySet(good))).toBeUndefined();
    expect(held(keySet(), keySet(good))).toBeUndefined();
    expect(held(keySet(good, { ...OFF_CURVE, kid: 'l' }), keySet(good))).toBeUndefined();
    expect(held(keySet({ ...OFF_CURVE, use: 'sig' }), keySet(OFF_CURVE))).toBeUndefined();
  });
});

describe('import', () => {
  test('once per document, for any number of callers', async () => {
    const { engine, imports } = await countingEngine();
    const set = keySet(publicJwk('a'), publicJwk('b'));
    expect(imports()).toBe(0);
    const keys = await Promise.all(Array.from({ length: 20 }, () => importedKey(set, 'a', engine)));
    expect(imports()).toBe(1);
    expect(new Set(keys).size).toBe(1);
    expect(keys[0]).toMatchObject({ kid: 'a', verifyKey: { alg: 'ed25519' } });
    await importedKey(set, 'b', () => engine);
    expect(imports()).toBe(2);
  });

  test('on workerd each caller imports for itself, and the result is kept', async () => {
    onWorkerd();
    const { engine, imports } = await countingEngine();
    const set = keySet(publicJwk('a'));
    await Promise.all([1, 2, 3].map(() => importedKey(set, 'a', engine)));
    expect(imports()).toBe(3);
    expect(set.imported.has('a')).toBe(true);
    await importedKey(set, 'a', engine);
    expect(imports()).toBe(3);
  });

  test('gives undefined for a kid that the set lacks', async () => {
    const { engine, imports } = await countingEngine();
    expect(await importedKey(keySet(publicJwk('a')), 'b', engine)).toBeUndefined();
    expect(imports()).toBe(0);
  });

  test('gives the reason for a malformed key, for check 8', async () => {
    const { engine } = await countingEngine();
    const set = keySet(
      { kid: 'hmac', kty: 'oct', k: 'AAAA' },
      { kid: 'rsa', kty: 'RSA', n: 'AQAB', e: 'AQAB' },
    );
    for (const kid of ['hmac', 'rsa']) {
      expect(typeof (await importedKey(set, kid, engine))?.verifyKey).toBe('string');
    }
  });

  test('does not cache that the engine is unavailable', async () => {
    const { engine } = await countingEngine();
    const set = keySet(publicJwk('a'));
    const down = (): CryptoEngine => {
      throw new Error('no engine');
    };
    await expect(importedKey(set, 'a', down)).rejects.toThrow('no engine');
    expect(await importedKey(set, 'a', engine)).toMatchObject({ kid: 'a' });
  });
});

test('treats a JWK with its members in another order as the same', () => {
  const jwk = publicJwk('a');
  expect(sameJwk(jwk, Object.fromEntries(Object.entries(jwk).toReversed()))).toBe(true);
  expect(sameJwk(jwk, publicJwk('a'))).toBe(false);
  expect(sameJwk(jwk, { ...jwk, use: 'enc' })).toBe(false);
});
