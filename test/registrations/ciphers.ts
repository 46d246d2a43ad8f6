import { afterAll, beforeAll } from 'vitest';

/** Ciphers of the runtime's own threads that have not ended: no time passes meanwhile, however slow the machine is. */
export const ciphers = { running: 0 };
const CIPHERS = ['importKey', 'encrypt', 'decrypt'] as const;

beforeAll(() => {
  const { subtle } = globalThis.crypto;
  for (const name of CIPHERS) {
    const real = subtle[name].bind(subtle) as (...given: unknown[]) => Promise<unknown>;
    const value = async (...given: unknown[]): Promise<unknown> => {
      ciphers.running += 1;
      try {
        return await real(...given);
      } finally {
        ciphers.running -= 1;
      }
    };
    Object.defineProperty(subtle, name, { configurable: true, value });
  }
});
afterAll(() => {
  for (const name of CIPHERS) Reflect.deleteProperty(globalThis.crypto.subtle, name);
});
