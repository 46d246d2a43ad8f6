import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { FIRST_VERSION, newest } from '../../../src/stores/for-tests.ts';

/** SHA-256 of a file, or of a step. Hex. */
export const hashOf = (text: string): string => createHash('sha256').update(text).digest('hex');

/**
 * @param store whose folder of `src/stores` has them.
 * @param carried what the package has of them.
 * @param hashes SHA-256 of each file. Until 0.1.0 is published the one file is edited in place, with its hash; from then on
 *   none is changed, and a line is added for a new file.
 */
export function describeMigrationFiles(
  store: 'mysql' | 'postgres',
  carried: readonly string[],
  schemaVersion: number,
  hashes: Readonly<Record<string, string>>,
): void {
  const folder = join(import.meta.dirname, '../../../src/stores', store, 'migrations');
  const files = readdirSync(folder)
    .filter((name) => name.endsWith('.sql'))
    .toSorted();
  const texts = files.map((name) => readFileSync(join(folder, name), 'utf8'));

  describe('migration files', () => {
    it('are numbered without a gap from the first version up to SCHEMA_VERSION', () => {
      expect(files).toEqual(files.map((_, at) => `${String(at + FIRST_VERSION).padStart(4, '0')}.sql`));
      expect(newest(files)).toBe(schemaVersion);
    });

    it('are what the package carries (if not: npm run migrations)', () => {
      expect(carried).toEqual(texts);
    });

    it('have the hashes that are noted', () => {
      expect(Object.fromEntries(files.map((name, at) => [name, hashOf(texts[at] ?? '')]))).toEqual(hashes);
    });
  });
}
