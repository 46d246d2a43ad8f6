import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** A folder that is removed at the end of the scope. */
export function tempFolder(): Disposable & {
  readonly path: string;
  readonly file: (name: string) => string;
} {
  const path = mkdtempSync(join(tmpdir(), 'proto-webhooks-cli-'));
  return {
    path,
    file: (name) => join(path, name),
    [Symbol.dispose]: () => rmSync(path, { recursive: true, force: true }),
  };
}
