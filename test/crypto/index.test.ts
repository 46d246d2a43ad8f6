import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { describe, expect, it } from 'vitest';
import { createEngine } from '../../src/auth/rfc9421/index.ts';

const run = promisify(execFile);
const ENGINES = JSON.stringify(new URL('../../src/auth/rfc9421/index.ts', import.meta.url).href);
const HASHES = JSON.stringify(new URL('../../src/crypto/for-tests.ts', import.meta.url).href);

/** Chooses in a process of its own, where the runtime can be made to lack things before the module is loaded. */
async function choose(lacking: string, name = ''): Promise<string> {
  const code = `
    ${lacking};
    const { createEngine } = await import(${ENGINES});
    const { loadHashes } = await import(${HASHES});
    (await loadHashes()).sha256(new Uint8Array());
    console.log(await createEngine(${name}).then((engine) => engine.name, (error) => error.name + ': ' + error.message));
  `;
  const { stdout } = await run(process.execPath, ['--no-warnings', '--input-type=module', '-e', code]);
  return stdout.trim();
}

const NO_MODULES = 'process.getBuiltinModule = undefined';
const NO_PROCESS = 'delete globalThis.process';
const NO_WEBCRYPTO = "Object.defineProperty(globalThis, 'crypto', { value: undefined })";
const NO_ED25519 = `
  const { importKey } = crypto.subtle;
  crypto.subtle.importKey = function (format, data, algorithm, ...rest) {
    if (algorithm.name === 'Ed25519') return Promise.reject(new DOMException('', 'NotSupportedError'));
    return importKey.call(this, format, data, algorithm, ...rest);
  }`;

describe('createEngine', () => {
  it('uses the native engine first, and each by its name', async () => {
    expect((await createEngine()).name).toBe('native');
    for (const name of ['native', 'webcrypto', 'noble'] as const) {
      expect((await createEngine(name)).name).toBe(name);
    }
  });

  it('takes WebCrypto where there is no node:crypto', async () => {
    expect(await choose(NO_MODULES)).toBe('webcrypto');
  });

  it('takes noble where there is neither', async () => {
    expect(await choose(`${NO_MODULES}; ${NO_WEBCRYPTO}`)).toBe('noble');
  });

  it('takes noble where WebCrypto lacks Ed25519', async () => {
    expect(await choose(`${NO_MODULES}; ${NO_ED25519}`)).toBe('noble');
  });

  it('works where there is no `process` at all', async () => {
    expect(await choose(`const { log } = console; console.log = log; ${NO_PROCESS}`)).toBe('webcrypto');
  });

  it('rejects with ConfigError for an engine that the runtime lacks', async () => {
    expect(await choose(NO_MODULES, "'native'")).toMatch(/^ConfigError: crypto: /);
    expect(await choose(NO_WEBCRYPTO, "'webcrypto'")).toMatch(/^ConfigError: crypto: /);
  });
});
