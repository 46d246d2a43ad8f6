import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { build } from 'esbuild';
import { describe, expect, it } from 'vitest';

interface Budget {
  readonly name: string;
  /** Several files are measured as they are, and not bundled. */
  readonly path?: string | readonly string[];
  readonly import?: Readonly<Record<string, string>>;
  readonly ignore?: readonly string[];
}

const root = fileURLToPath(new URL('../..', import.meta.url));
const manifest = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as {
  readonly 'size-limit': readonly Budget[];
  readonly peerDependencies: Readonly<Record<string, string>>;
};
const budgets = manifest['size-limit'].flatMap(({ name, path, import: given = {}, ignore = [] }) =>
  Array.isArray(path)
    ? []
    : [{ name, ignore, entries: typeof path === 'string' ? [path] : Object.keys(given) }],
);

const PAGE = 'the page of dev';
const CORE = '. (at start)';
const CORE_AND_FETCH = '. and ./fetch (at start): it adds under 2 kB';

/** Bytes of each budget, minified and gzipped, as `npm run check` measures them. */
async function measured(): Promise<ReadonlyMap<string, number>> {
  const command = [join(root, 'node_modules/size-limit/bin.js'), '--json'];
  const { stdout } = await promisify(execFile)(process.execPath, command, { cwd: root });
  const sizes = JSON.parse(stdout) as readonly { readonly name: string; readonly size: number }[];
  return new Map(sizes.map(({ name, size }) => [name, size]));
}

interface Outside {
  readonly path: string;
  readonly kind: string;
}

/** What the bundle of `entries` leaves out. */
async function leftOut(entries: readonly string[], ignore: readonly string[]): Promise<Outside[]> {
  const { metafile } = await build({
    absWorkingDir: root,
    entryPoints: [...entries],
    external: [...ignore],
    bundle: true,
    format: 'esm',
    write: false,
    metafile: true,
    outdir: 'out',
    logLevel: 'error',
  });
  return Object.values(metafile.outputs).flatMap(({ imports }) =>
    imports.flatMap(({ path, kind, external }) => (external ? [{ path, kind }] : [])),
  );
}

/** Of what is imported: `@scope/name` or `name`. */
const packageOf = (path: string): string => /^(?:@[^/]+\/)?[^/]+/.exec(path)?.[0] ?? path;

describe('budget: sizes', () => {
  it('./fetch adds under 2 kB to the core', async () => {
    const sizes = await measured();
    const [core, both] = [sizes.get(CORE) ?? Number.NaN, sizes.get(CORE_AND_FETCH) ?? Number.NaN];
    expect(core).toBeGreaterThan(0);
    expect(both - core).toBeLessThan(2000);
  });

  it('the page of dev is at most 60 kB', async () => {
    const page = (await measured()).get(PAGE) ?? Number.NaN;
    expect(page).toBeGreaterThan(1_000);
    expect(page).toBeLessThan(60_000);
  });

  it.each(budgets)('$name: leaves out only what is loaded on demand', async ({ entries, ignore }) => {
    expect(entries.length).toBeGreaterThan(0);
    const outside = await leftOut(entries, ignore);
    const atStart = outside.filter(
      ({ path, kind }) =>
        kind !== 'dynamic-import' &&
        !path.startsWith('node:') &&
        !Object.hasOwn(manifest.peerDependencies, packageOf(path)),
    );
    expect(atStart).toEqual([]);
  });

  it('the core leaves something out: what the test before rests on', async () => {
    const core = budgets.find(({ name }) => name === CORE);
    const outside = core ? await leftOut(core.entries, core.ignore) : [];
    expect(outside.map(({ path }) => path)).toContainEqual(expect.stringMatching(/^\.\/crypto-/));
    // What a file asks for at start is told apart.
    const wrong = await leftOut(['src/stores/sqlite.ts'], ['node:*']);
    expect(wrong).toContainEqual({ path: 'node:fs', kind: 'import-statement' });
  });
});
