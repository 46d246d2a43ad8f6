import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { inject } from 'vitest';
import { packed } from '../../support/packed.ts';
import type { Kind } from '../processes/stores.ts';

const ROOT = join(import.meta.dirname, '../../..');

/**
 * The release that the build under test is rolled out over.
 *
 * No release has another schema version than this one yet. So the build is rolled out over another copy of itself: both work
 * on one store at once, and both answer until the older copy stops.
 *
 * The next schema version puts the tarball of the last release with the version before (`npm pack`) beside this file, its path
 * in `tarball`, and the stores whose version is another one now in `raised`: old processes of those have to answer 503.
 */
export const BEFORE: { readonly tarball?: string; readonly raised: readonly Kind[] } = { raised: [] };

/** A build of the package, unpacked from a tarball of npm's. */
export interface UnpackedBuild {
  /** With the files of `dist`. */
  readonly dist: string;
  readonly remove: () => void;
}

/** @param tarball e.g. of `packed`. */
function unpacked(tarball: string): UnpackedBuild {
  const folder = mkdtempSync(join(tmpdir(), 'proto-webhooks-build-'));
  execFileSync('tar', ['-xzf', tarball, '-C', folder]);
  // What it depends on.
  symlinkSync(join(ROOT, 'node_modules'), join(folder, 'node_modules'));
  return {
    dist: join(folder, 'package/dist'),
    remove: () => rmSync(folder, { recursive: true, force: true }),
  };
}

/** The release before and the build under test, each in a folder of its own: nothing is shared but the store. */
export async function twoBuilds(): Promise<{
  readonly before: UnpackedBuild;
  readonly after: UnpackedBuild;
}> {
  const own = await packed(inject('shared'));
  return { before: unpacked(BEFORE.tarball ?? own), after: unpacked(own) };
}
