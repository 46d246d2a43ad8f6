import type { Verification } from './engine.ts';
import type { NodeCrypto } from './node-crypto.ts';

/**
 * Whether the verification that is about to begin goes to the thread pool.
 * @param waiting how many of this engine are there already.
 */
export type OffMain = (waiting: number) => boolean;

/**
 * As many as the pool gets from `auto` at once: a few ms of work for its four threads. The pool is the whole process's,
 * and where others keep it busy (password hashes, zlib) the rest of the deliveries must not queue behind them.
 */
const MOST_WAITING = 64;

/**
 * There a verification takes little of the main thread's time, but a lone one takes a third longer to its answer: so
 * `auto` sends one only where others are under way that get on meanwhile.
 */
const RULES: Readonly<Record<Verification, (inFlight: () => number) => OffMain | undefined>> = {
  main: () => undefined,
  pool: () => () => true,
  auto: (inFlight) => (waiting) => waiting < MOST_WAITING && inFlight() > 1,
};

/**
 * The rule of a receiver; undefined: always the main thread.
 * @param inFlight deliveries from arrival to answer, the one that asks among them.
 */
export function offMainRule(verification: Verification, inFlight: () => number): OffMain | undefined {
  return RULES[verification](inFlight);
}

/** Node and Bun. Deno takes the callback too, but verifies before it returns; workerd has no threads. */
export function hasThreadPool(): boolean {
  const versions = globalThis.process?.versions;
  return versions?.uv !== undefined && versions['deno'] === undefined;
}

type VerifyArguments = readonly [
  algorithm: string | null,
  data: Uint8Array,
  key: object,
  signature: Uint8Array,
];

/** `crypto.verify`, on whichever thread. */
export type NodeVerify = (...what: VerifyArguments) => boolean | Promise<boolean>;

/** The callback form: OpenSSL works on a thread of the pool, on copies of data and signature. */
function verifyInPool(crypto: NodeCrypto, what: VerifyArguments): Promise<boolean> {
  return new Promise((resolve, reject) => {
    const said = crypto.verify(...what, (error, verdict) => {
      if (error) reject(error);
      else resolve(verdict);
    });
    // A runtime that knows no callback has answered already.
    if (typeof said === 'boolean') resolve(said);
  });
}

/** `crypto.verify` on the pool's threads where `offMain` says so, else at once. The verdict is the same. */
export function pooledVerify(crypto: NodeCrypto, offMain: OffMain): NodeVerify {
  let waiting = 0;

  async function inPool(what: VerifyArguments): Promise<boolean> {
    waiting += 1;
    try {
      return await verifyInPool(crypto, what);
    } catch {
      // No thread, no memory: that says nothing of the signature.
      return crypto.verify(...what);
    } finally {
      waiting -= 1;
    }
  }

  return (algorithm, data, key, signature) =>
    offMain(waiting)
      ? inPool([algorithm, data, key, signature])
      : crypto.verify(algorithm, data, key, signature);
}
