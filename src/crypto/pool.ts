// Decides on which thread a signature is verified, and moves work back from a stalled thread pool
// (verification.md §3.11).
// Called by the receiver for its rule, and by `index.ts` for the native engine. The verdict is the same on
// every thread.

import type { Verification } from './engine.ts';
import type { NodeCrypto } from './node-crypto.ts';

/** The state of the runtime's thread pool when a signature is about to be verified, passed to `UseThreadPool`. */
export interface PoolState {
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

/** Processors available to this process, with a container's share if the runtime knows it. */
function availableProcessors(): number {
  const os = globalThis.process?.getBuiltinModule?.('node:os') as
    { availableParallelism?: () => number } | undefined;
  return os?.availableParallelism?.() ?? 1;
}

/** Decides for each signature on which thread a receiver verifies it (verification.md §3.11). */
export interface ThreadRule {
  /** Undefined if the main thread always verifies. */
  readonly useThreadPool: UseThreadPool | undefined;
  /** Called when a request arrives at an adapter. */
  readonly requestCame: () => void;
}

const nothing = (): void => {};

/**
 * Makes the rule.
 * @param inFlight returns the number of deliveries between arrival and answer, including the current one.
 */
export function threadRule(
  verification: Verification,
  inFlight: () => number,
  processors: () => number = availableProcessors,
): ThreadRule {
  if (verification === 'pool') return { useThreadPool: () => true, requestCame: nothing };
  if (verification === 'main' || processors() === 1 || !hasThreadPool()) {
    return { useThreadPool: undefined, requestCame: nothing };
  }
  /** Number of requests that arrived in this turn of the event loop. */
  let requests = 0;
  const endTurn = (): void => {
    requests = 0;
  };
  return {
    useThreadPool: (waiting, { isStalled }) => !isStalled && (waiting > 0 || inFlight() > 1 || requests > 1),
    requestCame() {
      if (requests === 0) setImmediate(endTurn);
      requests += 1;
    },
  };
}

/**
 * True on Node and Bun. Deno takes the callback too, but verifies before it returns. workerd has no threads,
 * and `''` for libuv's version.
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

/** `crypto.verify`, on any thread. */
export type NodeVerify = (...what: VerifyArguments) => boolean | Promise<boolean>;

/**
 * If the pool gives no result for this time, which is that of 50 verifications, other work is assumed to fill it.
 * Ms.
 */
const STALL_MS = 5;

/**
 * If the pool is stalled, the main thread does at most this many verifications before it serves its sockets again:
 * about 2 ms.
 */
const MOST_A_TURN = 20;

/**
 * Returns a function that runs `crypto.verify` on the pool's threads if `useThreadPool` returns true, and otherwise
 * at once. The verdict is the same.
 */
export function pooledVerify(crypto: NodeCrypto, useThreadPool: UseThreadPool): NodeVerify {
  /** Verifications in the pool without a verdict, oldest first. Calling one verifies it on the main thread. */
  const waiting = new Set<() => void>();
  const state = { isStalled: false };
  let cameBack = 0;
  let watched = false;

  /**
   * After the timer, waits one more turn: a late timer may run before verdicts that have already arrived, and these
   * must be processed first.
   */
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

  /** Uses the callback form: OpenSSL works on a thread of the pool, on copies of data and signature. */
  function inPool([algorithm, data, key, signature]: VerifyArguments): Promise<boolean> {
    // Copied because the main thread may verify later, and the caller may change its bytes meanwhile.
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
          // An error means that the pool had no thread or memory; it says nothing about the signature.
          if (error) verifyHere();
          else resolve(verdict);
        }
        watch();
      };
      waiting.add(verifyHere);
      try {
        const verdict = crypto.verify(...what, done);
        // A runtime that ignores the callback has returned the verdict.
        if (typeof verdict === 'boolean') done(undefined, verdict);
      } catch (error) {
        done(error, false);
      }
      watch();
    });
  }

  return (algorithm, data, key, signature) =>
    useThreadPool(waiting.size, state)
      ? inPool([algorithm, data, key, signature])
      : crypto.verify(algorithm, data, key, signature);
}
