import { existsSync, readFileSync, readdirSync, statSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';

interface Manifest {
  readonly name: string;
  readonly version: string;
  readonly files?: readonly string[];
  readonly dependencies?: Readonly<Record<string, string>>;
}

const manifestOf = (folder: string): Manifest =>
  JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as Manifest;

/** Folder of a package as `from` would find it. */
function packageFolder(name: string, from: string): string {
  for (let at = from; ; at = dirname(at)) {
    const folder = join(at, 'node_modules', name);
    if (existsSync(join(folder, 'package.json'))) return folder;
    if (at === dirname(at)) throw new Error(`${name} is not installed for ${from}`);
  }
}

/** Packages inside a package are packages of their own. */
function sizeOf(path: string): number {
  // What is left out of the package need not be there: an API reference that was not written.
  const stat = statSync(path, { throwIfNoEntry: false });
  if (!stat?.isDirectory()) return stat?.size ?? 0;
  const names = readdirSync(path).filter((name) => name !== 'node_modules');
  return names.reduce((sum, name) => sum + sizeOf(join(path, name)), 0);
}

export interface Installed {
  readonly packages: number;
  readonly bytes: number;
}

/** What `npm install` of the package in `folder` brings. @param files what of it is published, as in its manifest; all of it by default. */
export function installed(folder: string, files?: readonly string[]): Installed {
  const seen = new Map<string, number>();
  const visit = (at: string, parts: readonly string[]): void => {
    if (seen.has(at)) return;
    seen.set(
      at,
      parts.reduce(
        (sum, part) =>
          part.startsWith('!') ? sum - sizeOf(join(at, part.slice(1))) : sum + sizeOf(join(at, part)),
        0,
      ),
    );
    for (const name of Object.keys(manifestOf(at).dependencies ?? {})) visit(packageFolder(name, at), ['.']);
  };
  visit(folder, files ?? ['.']);
  return { packages: seen.size, bytes: [...seen.values()].reduce((sum, bytes) => sum + bytes, 0) };
}

/** Folder of a peer, and its version. */
export function peerFolder(name: string): string {
  return packageFolder(name, dirname(createRequire(import.meta.url).resolve('../package.json')));
}

export { manifestOf };
