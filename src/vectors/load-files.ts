import { closeSync, openSync, readdirSync, readSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { readJson as parseJson } from '../codec/json-reader.ts';
import { VectorError } from './errors.ts';

/** Of one file: the largest sets of vectors have a few MiB, and `/dev/zero` has no end. */
const MAX_BYTES = 64 * 1024 * 1024;

const CHUNK_BYTES = 64 * 1024;

/** One line, whatever a message holds. */
const reason = (error: unknown): string =>
  (error instanceof Error ? error.message : String(error)).replace(/\s+/g, ' ');

/** @throws Error where there is more than `MAX_BYTES`. */
function readBounded(file: string): Buffer {
  const fd = openSync(file, 'r');
  try {
    const chunks: Buffer[] = [];
    for (let length = 0; length <= MAX_BYTES;) {
      const chunk = Buffer.allocUnsafe(CHUNK_BYTES);
      const count = readSync(fd, chunk);
      if (count === 0) return Buffer.concat(chunks);
      chunks.push(chunk.subarray(0, count));
      length += count;
    }
  } finally {
    closeSync(fd);
  }
  throw new Error(`more than ${MAX_BYTES} bytes`);
}

/** @throws VectorError naming the file. */
export function readJson(file: string): unknown {
  let text: string;
  try {
    text = readBounded(file).toString('utf8');
  } catch (error) {
    throw new VectorError(`${file}: cannot be read (${reason(error)}): expected a JSON file`);
  }
  try {
    return parseJson(text.replace(/^\uFEFF/, ''));
  } catch (error) {
    throw new VectorError(`${file}: is not JSON (${reason(error)}): expected a JSON file of vectors`);
  }
}

/**
 * For files that nobody named: to open a pipe could wait for ever. A link to a file is as good as the file.
 * @throws VectorError naming the file.
 */
export function requireRegular(file: string): void {
  const stat = statSync(file, { throwIfNoEntry: false });
  // What is not there, or may not be looked at, is told by whoever opens it.
  if (stat && !stat.isFile()) {
    throw new VectorError(`${file}: cannot be read (no regular file): expected a JSON file`);
  }
}

/** Names below `dir`, with the folders that lead to them. Links to folders could lead round in circles: not followed. */
function namesIn(dir: string, below = ''): readonly string[] {
  return readdirSync(join(dir, below), { withFileTypes: true }).flatMap((entry) => {
    const name = join(below, entry.name);
    if (entry.name === 'node_modules') return [];
    return entry.isDirectory() ? namesIn(dir, name) : [name];
  });
}

/** Every JSON file of a folder, in a stable order. @throws VectorError naming the folder. */
export function filesIn(dir: string): readonly string[] {
  let names: readonly string[];
  try {
    if (!statSync(dir).isDirectory()) throw new Error('not a folder');
    names = namesIn(dir);
  } catch (error) {
    throw new VectorError(`${dir}: cannot be read (${reason(error)}): expected a folder of vectors`);
  }
  return names
    .filter((name) => name.endsWith('.json'))
    .toSorted()
    .map((name) => join(dir, name));
}
