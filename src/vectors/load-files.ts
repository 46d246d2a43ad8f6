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

/** A file of a folder; `why` it is not read. */
export interface Found {
  readonly file: string;
  /** Its path in the folder. */
  readonly name: string;
  readonly why?: string;
}

/** What others keep vectors in, and is not read. */
const NOT_JSON = /\.(?:jsonl|ndjson|json5|jsonc|ya?ml|toml|cbor)$/i;

const isLinkToFolder = (file: string): boolean =>
  statSync(file, { throwIfNoEntry: false })?.isDirectory() === true;

/** Files below `dir`. Links to folders could lead round in circles: not followed. */
function filesBelow(dir: string, below = ''): readonly Found[] {
  return readdirSync(join(dir, below), { withFileTypes: true }).flatMap((entry): readonly Found[] => {
    const name = join(below, entry.name);
    if (entry.name === 'node_modules') return [];
    if (entry.isDirectory()) return filesBelow(dir, name);
    const file = join(dir, name);
    if (/\.json$/i.test(name)) return [{ file, name }];
    if (NOT_JSON.test(name)) return [{ file, name, why: 'not JSON' }];
    const isLink = entry.isSymbolicLink() && isLinkToFolder(file);
    return isLink ? [{ file, name, why: 'a link to a folder' }] : [];
  });
}

/** Every JSON file of a folder, and what looks like one, in a stable order. @throws VectorError naming the folder. */
export function filesIn(dir: string): readonly Found[] {
  try {
    if (!statSync(dir).isDirectory()) throw new Error('not a folder');
    return filesBelow(dir).toSorted((a, b) => (a.name < b.name ? -1 : Number(a.name > b.name)));
  } catch (error) {
    throw new VectorError(`${dir}: cannot be read (${reason(error)}): expected a folder of vectors`);
  }
}
