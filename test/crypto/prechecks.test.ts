import { describe, expect, it } from 'vitest';
import { type Verifier, withPrechecks } from '../../src/crypto/for-tests.ts';
import { ec, ed, edSign, okp, p, utf8 } from './make.ts';

const { A, signature } = edSign({ a: 5n, r: 7n, message: utf8('m') });
const { x, y } = p.G.toAffine();

const engineWith = (verifier: () => Verifier): ReturnType<typeof withPrechecks> =>
  withPrechecks('noble', { ed25519: verifier, 'ecdsa-p256-sha256': verifier });

async function verdict(
  engine: ReturnType<typeof withPrechecks>,
  bytes: Uint8Array,
  jwk = okp(A),
): Promise<unknown> {
  const key = await engine.importKey(jwk);
  return typeof key === 'string' ? key : engine.verify(key, utf8('m'), bytes);
}

describe('withPrechecks', () => {
  it('passes to the engine only keys and signatures that passed the common checks', async () => {
    const asked: string[] = [];
    const eager = engineWith(() => {
      asked.push('import');
      return () => {
        asked.push('verify');
        return true;
      };
    });
    expect(await verdict(eager, new Uint8Array(63))).toBe(false);
    expect(await verdict(eager, new Uint8Array(64))).toBe(false);
    expect(await verdict(eager, new Uint8Array(64), ec(x, y))).toBe(false);
    expect(asked).toEqual(['import', 'import', 'import']);
    expect(await verdict(eager, signature, okp(ed.Point.ZERO.toBytes()))).toBeTypeOf('string');
    expect(await verdict(eager, signature, ec(x, y + 1n))).toBeTypeOf('string');
    expect(asked).toHaveLength(3);
    expect(await verdict(eager, signature)).toBe(true);
    expect(asked.at(-1)).toBe('verify');
  });

  it('passes on what an engine throws, which says nothing of the signature; a key that it does not take is named', async () => {
    const fail = (): never => {
      throw new Error('engine');
    };
    await expect(
      verdict(
        engineWith(() => fail),
        signature,
      ),
    ).rejects.toThrow('engine');
    await expect(
      verdict(
        engineWith(() => async () => fail()),
        signature,
      ),
    ).rejects.toThrow('engine');
    expect(await verdict(engineWith(fail), signature)).toBe('the crypto engine does not take the key');
  });
});
