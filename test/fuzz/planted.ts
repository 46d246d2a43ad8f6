import { build, type Plugin } from 'esbuild';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { fuzz } from './fuzz.ts';

/** One expression of one file, and what it is in the variant. */
export interface Fault {
  readonly name: string;
  /** From `src/`. */
  readonly file: string;
  readonly from: string;
  readonly to: string;
}

export const FAULTS: readonly Fault[] = [
  {
    name: 'signatures do not expire',
    file: 'auth/rfc9421/checks.ts',
    from: 'expires * 1000 < nowMs - SKEW_S * 1000',
    to: 'false',
  },
  {
    name: 'digests are not compared',
    file: 'auth/rfc9421/content-digest.ts',
    from: 'isHexOf(actual, digest.sha256)',
    to: 'actual',
  },
  {
    name: 'names may stand twice',
    file: 'codec/strict-json.ts',
    from: '!== members',
    to: '> members',
  },
  {
    name: 'one engine passes every P-256 signature of a longer message',
    file: 'crypto/index.ts',
    from: 'subtle.verify(algorithm, key, copy(signature), copy(data))',
    to: 'data.length > 300 ? Promise.resolve(true) : subtle.verify(algorithm, key, copy(signature), copy(data))',
  },
];

const root = fileURLToPath(new URL('../..', import.meta.url));

function planting({ file, from, to }: Fault): Plugin {
  const path = join(root, 'src', file);
  return {
    name: 'planted fault',
    setup(plugged) {
      plugged.onLoad({ filter: /\.ts$/ }, async (loaded) => {
        if (loaded.path !== path) return undefined;
        const parts = (await readFile(path, 'utf8')).split(from);
        if (parts.length !== 2) throw new Error(`${file} has ${parts.length - 1} times: ${from}`);
        return { contents: parts.join(to), loader: 'ts' };
      });
    },
  };
}

/** The fuzzer on a build of the sources that has the fault. */
export async function fuzzWith(fault: Fault): Promise<typeof fuzz> {
  // Under node_modules, where its packages are found.
  const outfile = join(root, 'node_modules/.cache/fuzz', `${fault.name.replaceAll(' ', '-')}.mjs`);
  await build({
    entryPoints: [join(root, 'test/fuzz/fuzz.ts')],
    bundle: true,
    format: 'esm',
    platform: 'node',
    packages: 'external',
    plugins: [planting(fault)],
    logLevel: 'error',
    outfile,
  });
  const built = (await import(/* @vite-ignore */ outfile)) as { readonly fuzz: typeof fuzz };
  return built.fuzz;
}
