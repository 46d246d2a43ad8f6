// Chooses the crypto engine of a runtime: node:crypto, WebCrypto or JavaScript, with libsodium if it is
// installed (verification.md §3.5, §3.9).
// Loaded on demand by the receiver's startup; `createEngine` is also public.

import { ConfigError, messageOf } from '../shared/errors.ts';
import { type CryptoEngine, engineWorks, type Verification } from './engine.ts';
import { installedSodium } from './installed-sodium.ts';
import { nativeEngine } from './native.ts';
import { type NodeCrypto, nodeCrypto } from './node-crypto.ts';
import { hasThreadPool, type NodeVerify, type UseThreadPool, pooledVerify } from './pool.ts';
import { withPrechecks } from './public-key.ts';

type Subtle = typeof globalThis.crypto.subtle;

/** Copies bytes, because SubtleCrypto refuses bytes in shared memory, which the other engines accept. */
function copy(bytes: Uint8Array): Uint8Array<ArrayBuffer> {
  return new Uint8Array(bytes);
}

/**
 * Makes an engine on the Web Cryptography API. Its Ed25519 follows the Secure Curves draft; its ECDSA signatures are
 * r‖s, WebCrypto's own form.
 */
export function webcryptoEngine(subtle: Subtle): CryptoEngine {
  return withPrechecks('webcrypto', {
    ed25519: async ({ point }) => {
      const key = await subtle.importKey('raw', copy(point), { name: 'Ed25519' }, false, ['verify']);
      return (data, signature) => subtle.verify({ name: 'Ed25519' }, key, copy(signature), copy(data));
    },
    'ecdsa-p256-sha256': async ({ point }) => {
      const key = await subtle.importKey('raw', copy(point), { name: 'ECDSA', namedCurve: 'P-256' }, false, [
        'verify',
      ]);
      const algorithm = { name: 'ECDSA', hash: 'SHA-256' };
      return (data, signature) => subtle.verify(algorithm, key, copy(signature), copy(data));
    },
  });
}

type EngineName = CryptoEngine['name'];

/** Options of `createEngine`: the use of the thread pool. None of them changes a verdict. */
export interface EngineOptions {
  /**
   * Decides for each verification of the `native` engine if it runs on the thread pool (Node, Bun). Default: never.
   *
   * It is called again for running verifications if the pool has answered nothing for 5 ms. If it then returns
   * false, the main thread verifies too, and the first verdict counts.
   */
  readonly useThreadPool?: UseThreadPool | undefined;
}

type Maker = (options: EngineOptions) => CryptoEngine | undefined | Promise<CryptoEngine>;

function poolOf(crypto: NodeCrypto, { useThreadPool }: EngineOptions): NodeVerify | undefined {
  return useThreadPool && hasThreadPool() ? pooledVerify(crypto, useThreadPool) : undefined;
}

/** The function that makes each engine. It returns undefined if the runtime lacks what the engine needs. */
const MAKERS: Record<EngineName, Maker> = {
  native: (options) => {
    const crypto = nodeCrypto();
    return crypto && nativeEngine(crypto, { verify: poolOf(crypto, options) });
  },
  webcrypto: () => {
    const subtle = globalThis.crypto?.subtle;
    return subtle && webcryptoEngine(subtle);
  },
  // The module of 30 KB is loaded only when this engine is chosen, because most runtimes never need it.
  noble: async () => (await import('./noble.ts')).nobleEngine(),
};

/**
 * Engines from the fastest to the slowest. A verification by WebCrypto takes a third longer than by `native`, one by
 * `noble` ten times as long.
 */
const ORDER: readonly EngineName[] = ['native', 'webcrypto', 'noble'];

/**
 * Creates a crypto engine that verifies Ed25519 and P-256 signatures on this runtime: the engine with this name or,
 * without a name, the fastest. All engines give the same verdict on every input.
 * @throws ConfigError (rejects) if the named engine is not available on this runtime.
 * @example
 * ```ts
 * import { createEngine, type SignedMessage, verifySignature } from 'proto-webhooks/rfc9421';
 * import type { Jwk } from 'proto-webhooks';
 *
 * const engine = await createEngine();
 * export const verify = (message: SignedMessage, jwk: Jwk) => verifySignature(message, jwk, { engine });
 * ```
 */
export async function createEngine(name?: EngineName, options: EngineOptions = {}): Promise<CryptoEngine> {
  for (const candidate of name === undefined ? ORDER : [name]) {
    const engine = await MAKERS[candidate](options);
    if (engine && (await engineWorks(engine))) return engine;
  }
  throw new ConfigError(
    `crypto: this runtime has no engine ${name ?? ''} with Ed25519 and P-256. Leave the name out, and one that works is chosen.`,
  );
}

/** Options of a receiver's engine. */
interface ReceiverEngineOptions extends EngineOptions {
  readonly verification: Verification;
  /** Called with the reason if `sodium-native` is installed but cannot be used. */
  readonly unusable: (reason: string) => void;
}

/**
 * Creates the engine of a receiver. It verifies Ed25519 by `sodium-native` if that is installed (verification.md
 * §3.9).
 * @param name if given, exactly this engine is used, without `sodium-native`.
 */
export async function receiverEngine(
  name: EngineName | undefined,
  options: ReceiverEngineOptions,
): Promise<CryptoEngine> {
  const engine = await createEngine(name, options);
  const crypto = nodeCrypto();
  // libsodium runs on the main thread alone, so it is not used if the thread `pool` has to verify.
  const usesIt = name === undefined && engine.name === 'native' && options.verification !== 'pool';
  const load = usesIt ? installedSodium() : undefined;
  if (!crypto || !load) return engine;
  try {
    const { sodiumEngine } = await import('./sodium.ts');
    return await sodiumEngine(crypto, load(), poolOf(crypto, options));
  } catch (error) {
    options.unusable(messageOf(error));
    return engine;
  }
}

export { installedSodium } from './installed-sodium.ts';
