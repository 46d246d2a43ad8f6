/** Ciphers of the runtime's own threads that have not ended: no time passes meanwhile, however slow the machine is. */
export const ciphers = { running: 0 };
const CIPHERS = ['importKey', 'encrypt', 'decrypt'] as const;

// Unit tests share a process, in which a module runs once: a hook here would belong to the first of the files that import it, and the
// others would count no cipher. So they are counted from now on, for every file that comes after, which harms none.
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
