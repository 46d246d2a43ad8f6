import type { Verification } from './engine.ts';
import type { NodeCrypto } from './node-crypto.ts';

/** The state of the runtime's thread pool when a signature is about to be verified, passed to `UseThreadPool`. */
export interface PoolState {
  /** True if another verification began in this turn of the event loop, so the main thread has other work. */
  readonly hasBegun: boolean;
  /** True if the pool has returned nothing for 5 ms and nothing since, so others keep its threads busy. */
  readonly isStalled: boolean;
}

/**
 * A function that returns true if a signature is to be verified on the runtime's thread pool: the option
 * `useThreadPool` of `createEngine`. It is called before each verification, and again for running ones if the pool
 * stalls. If it then returns false, the main thread verifies too, and the first verdict counts.
 * @param waiting the number of other verifications of this engine on the pool.
 */
export type UseThreadPool = (waiting: number, state: PoolState) => boolean;

/** Available to this process; a container's share counts where the runtime knows it. */
function availableProcessors(): number {
  const os = globalThis.process?.getBuiltinModule?.('node:os') as
    { availableParallelism?: () => number } | undefined;
  return os?.availableParallelism?.() ?? 1;
}

/**
 * In the pool a verification takes little of the main thread's time, but one that comes alone takes a third longer to its answer:
 * so `auto` sends one there only where the main thread has others to get on with. How many arrived in one turn of the
 * event loop says so best: on a store that waits for nothing, one delivery is over before the next is read.
 */
const auto =
  (inFlight: () => number): UseThreadPool =>
  (waiting, { hasBegun, isStalled }) =>
    !isStalled && (hasBegun || waiting > 0 || inFlight() > 1);

/**
 * The rule of a receiver; undefined: always the main thread, where `auto` stays with one processor.
 * @param inFlight deliveries from arrival to answer, the one that asks among them.
 */
export function threadPoolRule(
  verification: Verification,
  inFlight: () => number,
  processors: () => number = availableProcessors,
): UseThreadPool | undefined {
  if (verification === 'pool') return () => true;
  return verification === 'auto' && processors() > 1 ? auto(inFlight) : undefined;
}

/**
 * Node and Bun. Deno takes the callback too, but verifies before it returns; workerd has no threads, and `''` for the
 * version of libuv.
 */
export function hasThreadPool(): boolean {
  const versions = globalThis.process?.versions;
  return Boolean(versions?.uv) && versions?.['deno'] === undefined;
}

type VerifyArguments = readonly [
  algorithm: string | null,
  data: Uint8Array,
  key: object,
  signature: Uint8Array,
];

/** `crypto.verify`, on whichever thread. */
export type NodeVerify = (...what: VerifyArguments) => boolean | Promise<boolean>;

/** Ms without anything back from the pool after which others are taken to fill it: 50 verifications' time. */
const STALL_MS = 5;

/** Verifications of a stalled pool that the main thread does before it looks at its sockets again: about 2 ms. */
const MOST_A_TURN = 20;

/** `crypto.verify` on the pool's threads where `useThreadPool` says so, else at once. The verdict is the same. */
export function pooledVerify(crypto: NodeCrypto, useThreadPool: UseThreadPool): NodeVerify {
  /** Those in the pool without a verdict yet, oldest first: each verifies its own on the main thread. */
  const waiting = new Set<() => void>();
  const state = { hasBegun: false, isStalled: false };
  let cameBack = 0;
  let watched = false;

  /** The timer may be late, with verdicts there already: they are heard before the look. */
  function watch(): void {
    if (watched || state.isStalled || waiting.size === 0) return;
    watched = true;
    const before = cameBack;
    setTimeout(() => {
      setImmediate(() => {
        watched = false;
        state.isStalled = cameBack === before && waiting.size > 0;
        if (state.isStalled) relieve();
        else watch();
      });
    }, STALL_MS);
  }

  function relieve(): void {
    if (!state.isStalled) return;
    let left = MOST_A_TURN;
    for (const verifyHere of waiting) {
      if (left === 0) {
        setImmediate(relieve);
        return;
      }
      if (useThreadPool(waiting.size - 1, state)) continue;
      left -= 1;
      verifyHere();
    }
  }

  /** The callback form: OpenSSL works on a thread of the pool, on copies of data and signature. */
  function inPool([algorithm, data, key, signature]: VerifyArguments): Promise<boolean> {
    // Copies for the main thread too: the caller may change its bytes meanwhile.
    const what: VerifyArguments = [algorithm, data.slice(), key, signature.slice()];
    return new Promise((resolve, reject) => {
      const verifyHere = (): void => {
        waiting.delete(verifyHere);
        try {
          resolve(crypto.verify(...what));
        } catch (error) {
          reject(error);
        }
      };
      const done = (error: unknown, verdict: boolean): void => {
        cameBack += 1;
        state.isStalled = false;
        if (waiting.delete(verifyHere)) {
          // No thread, no memory: that says nothing of the signature.
          if (error) verifyHere();
          else resolve(verdict);
        }
        watch();
      };
      waiting.add(verifyHere);
      try {
        const verdict = crypto.verify(...what, done);
        // A runtime that knows no callback has answered already.
        if (typeof verdict === 'boolean') done(undefined, verdict);
      } catch (error) {
        done(error, false);
      }
      watch();
    });
  }

  const endTurn = (): void => {
    state.hasBegun = false;
  };

  return (algorithm, data, key, signature) => {
    const off = useThreadPool(waiting.size, state);
    if (!state.hasBegun) {
      state.hasBegun = true;
      setImmediate(endTurn);
    }
    return off ? inPool([algorithm, data, key, signature]) : crypto.verify(algorithm, data, key, signature);
  };
}
