import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

/** Of `src/`: what is tested without a server and without a build. */
export const FOLDERS = [
  'auth',
  'calls',
  'codec',
  'config',
  'crypto',
  'events',
  'inbox',
  'keys',
  'poll',
  'receiver',
  'reconcile',
  'registrations',
  'sender',
  'shared',
  'stages',
  'states',
  'windows',
] as const;

/** A line with nothing on it that a mutation could change: a comment, an import, a lone bracket. */
const IDLE = /^\s*(?:$|\/\/|\/?\*|import |export \{|export type|[)\]}>;,]*\s*$)/;

export function sources(root: string): readonly string[] {
  return FOLDERS.flatMap((folder) =>
    readdirSync(join(root, 'src', folder), { recursive: true, encoding: 'utf8' })
      .filter((file) => file.endsWith('.ts') && !file.endsWith('for-tests.ts'))
      .map((file) => join('src', folder, file)),
  );
}

/**
 * So many lines, as ranges for Stryker's `mutate`, in the order of their hashes: the same for the same seed, whatever was
 * added elsewhere.
 */
export function sampledLines(root: string, files: readonly string[], lines: number, seed: string): string[] {
  const all = files.flatMap((file) =>
    readFileSync(join(root, file), 'utf8')
      .split('\n')
      .map((text, index) => ({ file, text, at: index + 1 }))
      .filter(({ text }) => !IDLE.test(text)),
  );
  const keyed = all.map(({ file, text, at }) => {
    const key = createHash('sha256').update(`${seed} ${file} ${at} ${text}`).digest('hex');
    return { key, range: `${file}:${at}:0-${at}:${text.length}` };
  });
  return keyed
    .toSorted((a, b) => (a.key < b.key ? -1 : 1))
    .slice(0, lines)
    .map(({ range }) => range);
}
