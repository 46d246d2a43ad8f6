import { afterEach, beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest';
import {
  createEngine,
  type CryptoEngine,
  type PoolState,
  type VerifyKey,
} from '../../src/auth/rfc9421/index.ts';
import {
  hasThreadPool,
  type NodeCrypto,
  nodeCrypto,
  type NodeVerify,
  pooledVerify,
  threadRule,
} from '../../src/crypto/for-tests.ts';
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

const QUIET = { isStalled: false };

const turn = (): Promise<void> => new Promise((resolve) => void setImmediate(resolve));

describe('verification: the choice of the thread (verification.md §3.11)', () => {
  it('main: never the pool', () => {
    expect(threadRule('main', () => 1000).useThreadPool).toBeUndefined();
  });

  it('pool: always the pool', () => {
    const rule = threadRule('pool', () => 1).useThreadPool;
    expect([rule?.(0, QUIET), rule?.(1000, { isStalled: true })]).toEqual([true, true]);
  });

  it.each([
    { waiting: 0, requests: 0, inFlight: 1, pool: false },
    { waiting: 0, requests: 1, inFlight: 1, pool: false },
    { waiting: 0, requests: 2, inFlight: 1, pool: true },
    { waiting: 1, requests: 0, inFlight: 1, pool: true },
    { waiting: 0, requests: 0, inFlight: 2, pool: true },
    { waiting: 5000, requests: 5000, inFlight: 5001, pool: true },
  ])('auto: the pool when there is other work: $waiting, $requests, $inFlight', async (given) => {
    const { waiting, requests, inFlight, pool } = given;
    const { useThreadPool, requestCame } = threadRule(
      'auto',
      () => inFlight,
      () => 2,
    );
    for (let came = 0; came < requests; came += 1) requestCame();
    expect(useThreadPool?.(waiting, QUIET)).toBe(pool);
    expect(useThreadPool?.(waiting, { isStalled: true })).toBe(false);
    // Requests count in their turn of the event loop alone.
    await turn();
    requestCame();
    expect(useThreadPool?.(waiting, QUIET)).toBe(waiting > 0 || inFlight > 1);
  });

  it('auto: the main thread when this process has one processor', () => {
    const rule = (processors: number): unknown =>
      threadRule(
        'auto',
        () => 1000,
        () => processors,
      ).useThreadPool;
    expect([rule(1), typeof rule(2)]).toEqual([undefined, 'function']);
  });

  it('this runtime has a pool', () => {
    expect(hasThreadPool()).toBe(true);
  });

  it.each([
    ['workerd with nodejs_compat', { versions: { node: '22.23.4', uv: '' } }],
    ['Deno', { versions: { node: '24.2.0', uv: '1.51.0', deno: '2.7.0' } }],
    ['a runtime without `process`', undefined],
  ])('%s has none', (_runtime, process) => {
    vi.stubGlobal('process', process);
    onTestFinished(() => void vi.unstubAllGlobals());
    expect(hasThreadPool()).toBe(false);
  });
});

describe('verification in the pool', () => {
  it('ends after a turn of the event loop; on the main thread it ends at once', async () => {
    const [pooled, plain] = [
      await createEngine('native', { useThreadPool: () => true }),
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

  it('verifies the bytes as they were when it began', async () => {
    const engine = await createEngine('native', { useThreadPool: () => true });
    const key = await keyOf(engine);
    const [data, bytes] = [new Uint8Array(message), new Uint8Array(signature)];
    const verifying = engine.verify(key, data, bytes);
    data.fill(0);
    bytes.fill(0);
    expect(await verifying).toBe(true);
  });

  it('is chosen for each verification by the number of those that wait', async () => {
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

  it('accepts the result of a runtime without callbacks', async () => {
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

describe('a pool that is kept busy by other work', () => {
  beforeEach(() => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'setImmediate', 'clearImmediate'] });
  });
  afterEach(() => {
    vi.useRealTimers();
  });

  const AUTO = (): ((waiting: number, state: PoolState) => boolean) => {
    const { useThreadPool } = threadRule(
      'auto',
      () => 100,
      () => 2,
    );
    if (!useThreadPool) throw new Error('no rule');
    return useThreadPool;
  };

  /** Verifications by `useThreadPool`: the main thread says true, the pool what it is told, when it is told. */
  function busy(useThreadPool = AUTO()) {
    const pool: Done[] = [];
    const onMain: Uint8Array[] = [];
    const verdicts: unknown[] = [];
    const real = nodeCrypto();
    if (!real) throw new Error('no node:crypto');
    const verify = pooledVerify(
      {
        ...real,
        verify: (...given: readonly unknown[]) => {
          if (given.length > 4) return void pool.push(given[4] as Done);
          return onMain.push(given[1] as Uint8Array) > 0;
        },
      } as NodeCrypto,
      useThreadPool,
    );
    const begin = (count: number, data: Uint8Array = message): void => {
      for (let at = 0; at < count; at += 1) {
        const said = verify(null, data, {}, signature);
        if (typeof said === 'boolean') verdicts.push(said);
        else void said.then((verdict) => verdicts.push(verdict));
      }
    };
    return { pool, onMain, verdicts, begin };
  }

  /** So many ms, and then the turn of the event loop in which verdicts are heard. */
  async function after(ms: number): Promise<void> {
    await vi.advanceTimersByTimeAsync(ms);
    vi.advanceTimersToNextTimer();
    await vi.advanceTimersByTimeAsync(0);
  }

  it('is waited for at most 5 ms: then the main thread verifies, 20 a turn, and new ones at once', async () => {
    const { pool, onMain, verdicts, begin } = busy();
    begin(45);
    await vi.advanceTimersByTimeAsync(4);
    expect([pool.length, onMain.length]).toEqual([45, 0]);
    await vi.advanceTimersByTimeAsync(1);
    const turns: number[] = [];
    while (onMain.length < 45 && turns.length < 10) {
      vi.advanceTimersToNextTimer();
      turns.push(onMain.length);
    }
    expect(turns.filter((each) => each > 0)).toEqual([20, 40, 45]);
    await vi.advanceTimersByTimeAsync(0);
    expect(verdicts).toEqual(Array.from({ length: 45 }, () => true));
    begin(1);
    expect([pool.length, onMain.length]).toEqual([45, 46]);
  });

  it('gives no second verdict, and is used again once a result came back', async () => {
    const { pool, onMain, verdicts, begin } = busy();
    begin(2);
    await after(5);
    expect([onMain.length, verdicts]).toEqual([2, [true, true]]);
    for (const done of pool) done(null, false);
    await after(5);
    expect(verdicts).toEqual([true, true]);
    begin(2);
    expect([pool.length, onMain.length]).toEqual([4, 2]);
    for (const done of pool.slice(2)) done(null, false);
    await after(5);
    expect([onMain.length, verdicts]).toEqual([2, [true, true, false, false]]);
  });

  it('is not stalled while results come back, and is checked again', async () => {
    const { pool, onMain, verdicts, begin } = busy();
    begin(3);
    await vi.advanceTimersByTimeAsync(4);
    pool[0]?.(null, true);
    await after(1);
    expect([onMain.length, verdicts]).toEqual([0, [true]]);
    await after(5);
    expect([onMain.length, verdicts]).toEqual([2, [true, true, true]]);
  });

  it('is not stalled when the timer is late and verdicts are there', async () => {
    const { pool, onMain, verdicts, begin } = busy();
    begin(1);
    vi.advanceTimersByTime(5);
    pool[0]?.(null, false);
    await after(0);
    expect([onMain.length, verdicts]).toEqual([0, [false]]);
  });

  it("is waited for when verification is 'pool'", async () => {
    const { pool, onMain, verdicts, begin } = busy(() => true);
    begin(2);
    await after(60_000);
    begin(1);
    await after(60_000);
    expect([pool.length, onMain.length, verdicts]).toEqual([3, 0, []]);
    for (const done of pool) done(null, true);
    await after(5);
    expect(verdicts).toEqual([true, true, true]);
  });

  it('leaves the bytes as they were at the start to the main thread', async () => {
    const { onMain, begin } = busy();
    const data = new Uint8Array(message);
    begin(1, data);
    data.fill(0);
    await after(5);
    expect(onMain).toEqual([message]);
  });
});
