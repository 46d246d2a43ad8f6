import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const TEST = join(import.meta.dirname, '../..');

/**
 * The package as it was before the stores' rules stood once, built and packed then: the last one of schema version 1 of
 * Postgres and Redis. Without what no process of a receiver loads.
 */
export function versionBefore(): { readonly build: string; readonly remove: () => void } {
  const folder = mkdtempSync(join(tmpdir(), 'proto-webhooks-before-'));
  execFileSync('tar', ['-xzf', join(TEST, 'fixtures/version-before.tgz'), '-C', folder]);
  // What it depends on.
  symlinkSync(join(TEST, '../node_modules'), join(folder, 'node_modules'));
  return {
    build: join(folder, 'package/dist'),
    remove: () => rmSync(folder, { recursive: true, force: true }),
  };
}
