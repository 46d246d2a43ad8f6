import { createEngine, type CryptoEngine } from '../../src/auth/rfc9421/index.ts';
import { sodiumNative } from './sodium-native.ts';

const MAKERS: Readonly<Record<string, () => Promise<CryptoEngine>>> = {
  native: () => createEngine('native'),
  webcrypto: () => createEngine('webcrypto'),
  noble: () => createEngine('noble'),
  'native, in the thread pool': () => createEngine('native', { useThreadPool: () => true }),
  'native with sodium-native': () => createEngine('native', { sodium: sodiumNative }),
};

/** Every way to a verdict, by name. */
export const ALL_ENGINES: readonly (readonly [name: string, engine: CryptoEngine])[] = await Promise.all(
  Object.entries(MAKERS).map(async ([name, make]) => [name, await make()] as const),
);
