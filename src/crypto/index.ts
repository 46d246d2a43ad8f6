import { ConfigError } from '../errors.ts';
import type { CryptoEngine } from './engine.ts';
import { nativeEngine } from './native.ts';
import { nodeCrypto } from './node-crypto.ts';
import { engineWorks } from './self-test.ts';
import { webcryptoEngine } from './webcrypto.ts';

type EngineName = CryptoEngine['name'];

/** Each gives undefined where the runtime lacks what it is built on. */
const MAKERS: Record<EngineName, () => CryptoEngine | undefined | Promise<CryptoEngine>> = {
  native: () => {
    const crypto = nodeCrypto();
    return crypto && nativeEngine(crypto);
  },
  webcrypto: () => {
    const subtle = globalThis.crypto?.subtle;
    return subtle && webcryptoEngine(subtle);
  },
  // Loaded only when it is chosen: most runtimes never need its 30 KB.
  noble: async () => (await import('./noble.ts')).nobleEngine(),
};

/** Fastest first: WebCrypto costs a third more a call, noble ten times as much. */
const ORDER: readonly EngineName[] = ['native', 'webcrypto', 'noble'];

/**
 * Chooses the engine that verifies signatures, once for a receiver: the first that the runtime has with both Ed25519
 * and P-256, or the one that `name` says. All give the same verdict on every input.
 * @throws ConfigError (rejects) where the engine named is not to be had on this runtime.
 */
export async function createEngine(name?: EngineName): Promise<CryptoEngine> {
  for (const candidate of name === undefined ? ORDER : [name]) {
    const engine = await MAKERS[candidate]();
    if (engine && (await engineWorks(engine))) return engine;
  }
  throw new ConfigError(
    `crypto: this runtime has no engine ${name ?? ''} with Ed25519 and P-256. Leave the name out, and one that works is chosen.`,
  );
}
