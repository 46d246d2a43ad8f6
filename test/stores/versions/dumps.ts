import { readFileSync } from 'node:fs';
import { join } from 'node:path';

/** What an older version made (`fixtures/dump-version.ts`). */
export function dumped(version: number, name: string): string {
  return readFileSync(join(import.meta.dirname, String(version), name), 'utf8');
}

/** Of a store's clock: puts it to the time at which the history was written, as `made` says. Ms. */
export function clockOf(version: number, made = 'made.json'): () => number {
  const { at } = JSON.parse(dumped(version, made)) as { at: number };
  const offsetMs = at - Date.now();
  return () => offsetMs;
}
