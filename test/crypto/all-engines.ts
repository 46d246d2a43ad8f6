import { createEngine, type CryptoEngine } from '../../src/auth/rfc9421/index.ts';
import { nodeCrypto, sodiumEngine } from '../../src/crypto/for-tests.ts';
import { sodiumNative } from './sodium-native.ts';

const withSodium = async (): Promise<CryptoEngine> => {
  const crypto = nodeCrypto();
  if (!crypto) throw new Error('this runtime has no node:crypto');
  return sodiumEngine(crypto, sodiumNative, undefined);
};

const MAKERS: Readonly<Record<string, () => Promise<CryptoEngine>>> = {
  native: () => createEngine('native'),
  webcrypto: () => createEngine('webcrypto'),
  noble: () => createEngine('noble'),
  'native, in the thread pool': () => createEngine('native', { useThreadPool: () => true }),
  'native with sodium-native': () => withSodium(),
};

/** Every way to a verdict, by name. */
export const ALL_ENGINES: readonly (readonly [name: string, engine: CryptoEngine])[] = await Promise.all(
  Object.entries(MAKERS).map(async ([name, make]) => [name, await make()] as const),
);
