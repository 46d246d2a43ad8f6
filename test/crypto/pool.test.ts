import { describe, expect, it } from 'vitest';
import type { CryptoEngine, VerifyKey } from '../../src/crypto/engine.ts';
import { createEngine } from '../../src/crypto/index.ts';
import { type NodeCrypto, nodeCrypto } from '../../src/crypto/node-crypto.ts';
import { hasThreadPool, type NodeVerify, offMainRule, pooledVerify } from '../../src/crypto/pool.ts';
import { edSign, okp, utf8 } from './make.ts';

const message = utf8('"@method": POST');
const { A, signature } = edSign({ a: 5n, r: 7n, message });

async function keyOf(engine: CryptoEngine): Promise<VerifyKey> {
  const key = await engine.importKey(okp(A));
  if (typeof key === 'string') throw new Error(key);
  return key;
}

type Done = (error: unknown, verdict: boolean) => void;

/** A node:crypto whose two forms of `verify` are made up. */
function made(onMain: () => boolean, inPool: (done: Done) => unknown): NodeCrypto {
  const crypto = nodeCrypto();
  if (!crypto) throw new Error('no node:crypto');
  const verify = (...given: readonly unknown[]): unknown =>
    given.length > 4 ? inPool(given[4] as Done) : onMain();
  return { ...crypto, verify: verify as NodeCrypto['verify'] };
}

const ask = (verify: NodeVerify): ReturnType<NodeVerify> => verify(null, message, {}, signature);

describe('verification: which thread', () => {
  it('main: never the pool', () => {
    expect(offMainRule('main', () => 1000)).toBeUndefined();
  });

  it('pool: always the pool', () => {
    const rule = offMainRule('pool', () => 1);
    expect([rule?.(0), rule?.(1000)]).toEqual([true, true]);
  });

  it('auto: the pool where another delivery is in flight, and not many wait for it', () => {
    let inFlight = 1;
    const rule = offMainRule('auto', () => inFlight);
    expect(rule?.(0)).toBe(false);
    inFlight = 2;
    expect([rule?.(0), rule?.(63), rule?.(64)]).toEqual([true, true, false]);
  });

  it('this runtime has a pool', () => {
    expect(hasThreadPool()).toBe(true);
  });
});

describe('verification in the pool', () => {
  it('is not over before the event loop turns; on the main thread it is over at once', async () => {
    const [pooled, plain] = [
      await createEngine('native', { offMain: () => true }),
      await createEngine('native'),
    ];
    expect(plain.verify(await keyOf(plain), message, signature)).toBe(true);
    let verdict: boolean | undefined;
    const verifying = pooled.verify(await keyOf(pooled), message, signature);
    const noted = (async () => {
      verdict = await verifying;
    })();
    // What needs no turn of the loop would be done after so many promises.
    for (let i = 0; i < 1000; i += 1) await Promise.resolve();
    expect(verdict).toBeUndefined();
    await noted;
    expect(verdict).toBe(true);
  });

  it('is of the bytes as they were when it began', async () => {
    const engine = await createEngine('native', { offMain: () => true });
    const key = await keyOf(engine);
    const [data, bytes] = [new Uint8Array(message), new Uint8Array(signature)];
    const verifying = engine.verify(key, data, bytes);
    data.fill(0);
    bytes.fill(0);
    expect(await verifying).toBe(true);
  });

  it('is asked about each verification, with the number of those that wait', async () => {
    const seen: number[] = [];
    const done: Done[] = [];
    const crypto = made(
      () => true,
      (each) => void done.push(each),
    );
    const verify = pooledVerify(crypto, (waiting) => seen.push(waiting) < 4);
    const first = [ask(verify), ask(verify), ask(verify)];
    expect(ask(verify)).toBe(true);
    for (const each of done) each(null, false);
    for (const each of first) expect(await each).toBe(false);
    expect(ask(verify)).toBe(true);
    expect(seen).toEqual([0, 1, 2, 3, 0]);
  });

  it('auto: a pool that others keep busy holds up no more than 64', () => {
    let onMain = 0;
    const crypto = made(
      () => (onMain += 1) > 0,
      () => undefined,
    );
    const verify = pooledVerify(crypto, offMainRule('auto', () => 100) ?? (() => false));
    const said = Array.from({ length: 70 }, () => ask(verify));
    expect(said.slice(64)).toEqual([true, true, true, true, true, true]);
    expect(said.slice(0, 64).every((each) => typeof each !== 'boolean')).toBe(true);
    expect(onMain).toBe(6);
  });

  it.each<[string, (done: Done) => unknown]>([
    ['fails', (done) => done(new Error('no memory'), false)],
    [
      'throws',
      () => {
        throw new Error('no callback here');
      },
    ],
  ])('says nothing of the signature where it %s: the main thread is asked', async (_, inPool) => {
    for (const verdict of [true, false]) {
      let waited = -1;
      const verify = pooledVerify(
        made(() => verdict, inPool),
        (waiting) => {
          waited = waiting;
          return true;
        },
      );
      expect(await ask(verify)).toBe(verdict);
      expect(await ask(verify)).toBe(verdict);
      expect(waited).toBe(0);
    }
  });

  it('takes the answer of a runtime that knows no callback', async () => {
    for (const verdict of [true, false]) {
      const verify = pooledVerify(
        made(
          () => !verdict,
          () => verdict,
        ),
        () => true,
      );
      expect(await ask(verify)).toBe(verdict);
    }
  });
});
