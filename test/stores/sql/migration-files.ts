import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';

/**
 * @param store whose folder of `src/stores` has them.
 * @param carried what the package has of them.
 * @param released SHA-256 of each file that was ever released. A line is added for a new file; none is ever changed.
 */
export function describeMigrationFiles(
  store: 'mysql' | 'postgres',
  carried: readonly string[],
  schemaVersion: number,
  released: Readonly<Record<string, string>>,
): void {
  const folder = join(import.meta.dirname, '../../../src/stores', store, 'migrations');
  const files = readdirSync(folder)
    .filter((name) => name.endsWith('.sql'))
    .toSorted();
  const texts = files.map((name) => readFileSync(join(folder, name), 'utf8'));

  describe('migration files', () => {
    it('are numbered without a gap up to SCHEMA_VERSION', () => {
      expect(files).toEqual(files.map((_, at) => `${String(at + 1).padStart(4, '0')}.sql`));
      expect(files).toHaveLength(schemaVersion);
    });

    it('are what the package carries (if not: npm run migrations)', () => {
      expect(carried).toEqual(texts);
    });

    it('are unchanged since their release', () => {
      const hashes = texts.map((text) => createHash('sha256').update(text).digest('hex'));
      expect(Object.fromEntries(files.map((name, at) => [name, hashes[at]]))).toEqual(released);
    });
  });
}
