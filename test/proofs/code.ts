// The fingerprint of the code that a proof is about: equal as long as what runs is equal.
// Called when a row is written, and by `npm run check:figures`.
import { createHash } from 'node:crypto';
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { transformSync } from 'esbuild';

/** Code without its comments and spaces: prose may change, and a row stays true. */
function bare(file: string, text: string): string {
  if (!file.endsWith('.ts')) return text;
  return transformSync(text, { loader: 'ts', minifyWhitespace: true, legalComments: 'none' }).code;
}

function filesOf(root: string, path: string): readonly string[] {
  if (!statSync(join(root, path)).isDirectory()) return [path];
  return readdirSync(join(root, path), { recursive: true, encoding: 'utf8' })
    .map((name) => `${path}/${name}`)
    .filter((name) => /\.(ts|tsx|lua|sql)$/.test(name) && !name.endsWith('/for-tests.ts'));
}

/**
 * Returns a function that gives the fingerprint of paths in `root`: 12 hex digits of a SHA-256 over their code. It reads
 * each file once, however often it is asked.
 * @param root `src`, or a folder like it.
 * @throws Error (from the function) for a path that is not there.
 */
export function fingerprints(root: string): (paths: readonly string[]) => string {
  const known = new Map<string, string>();
  const codeOf = (file: string): string => {
    const code = known.get(file) ?? bare(file, readFileSync(join(root, file), 'utf8'));
    known.set(file, code);
    return code;
  };
  return (paths) => {
    const hash = createHash('sha256');
    const files = [...new Set(paths.flatMap((path) => filesOf(root, path)))].toSorted();
    for (const file of files) hash.update(`${file}\0${codeOf(file)}\0`);
    return hash.digest('hex').slice(0, 12);
  };
}
