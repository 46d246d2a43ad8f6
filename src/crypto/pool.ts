// Decides on which thread a signature is verified, and moves work back from a stalled thread pool (verification.md
// §3.11).
// Called by the receiver, and by `index.ts` for the native engine. The verdict is the same on every thread.

import type { Verification } from './engine.ts';
import type { NodeCrypto } from './node-crypto.ts';

/** The state of the runtime's thread pool when a signature is about to be verified, passed to `UseThreadPool`. */
export interface PoolState {
  /**
   * True if the pool returned nothing for 5 ms and still returns nothing, because other work keeps its threads busy.
   */
  readonly isStalled: boolean;
}

/**
 * A function that returns true if a signature is to be verified on the runtime's thread pool: the option
 * `useThreadPool` of `createEngine`. It is called before each verification. If the pool stalls, it is called again for
 * each waiting verification. If it then returns false, the main thread verifies too, and the first verdict counts.
 * @param waiting the number of other verifications of this engine on the pool.
 */
export type UseThreadPool = (waiting: number, state: PoolState) => boolean;

/**
 * Returns the number of processors available to this process. In a container it is the container's share, if the
 * runtime knows that.
 */
function availableProcessors(): number {
  const os = globalThis.process?.getBuiltinModule?.('node:os') as
    { availableParallelism?: () => number } | undefined;
  return os?.availableParallelism?.() ?? 1;
}

/** The rule by which a receiver chooses the thread for each signature (verification.md §3.11). */
export interface ThreadRule {
  /** Decides for each verification if it runs on the thread pool. Undefined if the main thread always verifies. */
  readonly useThreadPool: UseThreadPool | undefined;
  /** Called when a request arrives, so that several requests at the same time are noticed. */
  readonly requestCame: () => void;
}

const nothing = (): void => {};

/**
 * Makes the rule for the option `verification`.
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
 * True on Node and Bun. Deno accepts a callback in `crypto.verify`, but verifies on the main thread. workerd has no
 * threads; its `versions.uv` (libuv) is empty.
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

/** Verifies a signature with the arguments of Node's `crypto.verify`, on the main thread or on the thread pool. */
export type NodeVerify = (...what: VerifyArguments) => boolean | Promise<boolean>;

/**
 * The time in ms without a result after which the pool is assumed to be full of other work. 50 verifications take as
 * long.
 */
const STALL_MS = 5;

/**
 * The maximum number of verifications that the main thread does in a row for a stalled pool. They take about 2 ms;
 * then it serves its sockets again.
 */
const MOST_A_TURN = 20;

/**
 * Returns a function that runs `crypto.verify` on the pool's threads if `useThreadPool` returns true, and otherwise
 * synchronously.
 */
export function pooledVerify(crypto: NodeCrypto, useThreadPool: UseThreadPool): NodeVerify {
  /**
   * The verifications on the pool that have no verdict yet, oldest first. Each function verifies one of them on the
   * main thread instead.
   */
  const waiting = new Set<() => void>();
  const state = { isStalled: false };
  let cameBack = 0;
  let watched = false;

  /**
   * Lets the main thread help if the pool returns no verdict within `STALL_MS`. One more turn of the event loop is
   * waited first, so that verdicts that have already arrived count.
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

  /** Verifies on a thread of the pool, by passing a callback to `crypto.verify`. Data and signature are copied. */
  function inPool([algorithm, data, key, signature]: VerifyArguments): Promise<boolean> {
    // The bytes are copied, because the main thread may verify them later, and the caller may change its bytes
    // meanwhile.
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
        // A runtime that ignores the callback returns the verdict instead.
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
