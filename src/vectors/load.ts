// Reads vectors from disk, within limits: this package's own, a folder, or single files. `runVectors` calls it;
// `proto-webhooks explain` uses `keysBeside`.
import { closeSync, existsSync, openSync, readdirSync, readSync, statSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { readJson as parseJson } from '../codec/json-reader.ts';
import type { Jwk } from '../crypto/engine.ts';
import { DEFAULT_EDITION, editionFor, type EditionName } from '../shared/editions.ts';
import { protocolFor } from '../shared/wire-names.ts';
import { ConfigError, messageOf } from '../shared/errors.ts';
import type { ReadCase } from './vector-case.ts';
import { VectorError } from './vector-case.ts';
import { isKeySet, keysIn, readCases } from './shapes/index.ts';
import type { ShapeContext } from './shapes/read-shape.ts';
import type { Skipped } from './vector-case.ts';

/**
 * Options of `runVectors` that choose and read the conformance vectors: a folder or files (default: this package's
 * own), the protocol and the edition. `codeOf` translates the vectors' error codes, and `ignore` names members that are
 * only comments.
 */
export interface LoadOptions {
  /** A folder: each `.json` file in it and in its subfolders is read. Links to folders are not followed. */
  readonly dir?: string;
  /** Single files, in addition to `dir` or instead of it. */
  readonly files?: readonly string[];
  /**
   * The only protocol name that is accepted in tag, key purpose and header names. Default: both known names, `proto`
   * and `adcp`.
   */
  readonly protocol?: string | undefined;
  /** The protocol edition of vectors that name none. Default: `3.0`. */
  readonly edition?: EditionName;
  /** Translates the vectors' error codes, if these use other names, before they are compared. */
  readonly codeOf?: (code: string) => string;
  /**
   * The names of further members that are only comments. Members with usual names for comments are recognised anyway.
   */
  readonly ignore?: readonly string[];
  /** Called for each file, vector and member that was found but not judged. */
  readonly onSkipped?: (skipped: Skipped) => void;
}

/** The most bytes of one file. The largest sets of vectors have a few MiB, and a device like `/dev/zero` never ends. */
const MAX_BYTES = 64 * 1024 * 1024;

/** The number of bytes per read: a file of vectors needs few reads, and a small file wastes little memory. */
const CHUNK_BYTES = 64 * 1024;

/** Returns the message of an error in one line. */
const reason = (error: unknown): string => messageOf(error).replace(/\s+/g, ' ');

/** Reads a file. @throws Error if it has more than `MAX_BYTES`. */
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

/** Reads a JSON file. @throws VectorError with the name of the file. */
function readJson(file: string): unknown {
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
 * Requires a regular file, or a link to one. It is used for files that the caller did not name: opening a pipe could
 * block for ever.
 * @throws VectorError with the name of the file.
 */
function requireRegular(file: string): void {
  const stat = statSync(file, { throwIfNoEntry: false });
  // A file that is missing or not readable is reported when it is opened.
  if (stat && !stat.isFile()) {
    throw new VectorError(`${file}: cannot be read (not a regular file): expected a JSON file`);
  }
}

/** A file that was found in a folder. If `why` is set, the file is not read, for that reason. */
interface Found {
  readonly file: string;
  /** The file's path, relative to the folder. */
  readonly name: string;
  readonly why?: string;
}

/** Matches the names of files that may contain vectors, but in a format that is not read. */
const NOT_JSON = /\.(?:jsonl|ndjson|json5|jsonc|ya?ml|toml|cbor)$/i;

const isLinkToFolder = (file: string): boolean =>
  statSync(file, { throwIfNoEntry: false })?.isDirectory() === true;

/**
 * Returns the files in `dir` and its subfolders. Links to folders are not followed, because they could lead in circles.
 */
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

/**
 * Returns the JSON files of a folder, and those that look like vectors in another format, sorted by name.
 * @throws VectorError with the folder's name.
 */
function filesIn(dir: string): readonly Found[] {
  try {
    if (!statSync(dir).isDirectory()) throw new Error('not a folder');
    return filesBelow(dir).toSorted((a, b) => (a.name < b.name ? -1 : Number(a.name > b.name)));
  } catch (error) {
    throw new VectorError(`${dir}: cannot be read (${reason(error)}): expected a folder of vectors`);
  }
}

/** Returns the folder of the package's own vectors: beside `dist`, or two levels above this file. */
function ownVectors(): string {
  const places = ['../vectors/', '../../vectors/'].map((path) =>
    fileURLToPath(new URL(path, import.meta.url)),
  );
  const found = places.find((place) => existsSync(join(place, 'keys.json')));
  if (found === undefined) {
    throw new VectorError(
      `no vectors in ${places.join(' or ')}: expected the package's own; give dir or files`,
    );
  }
  return found;
}

/** Returns the keys for a file of vectors: those of `keys.json` in the same folder, or in the folder above it. */
export function keysBeside(file: string): readonly Jwk[] {
  const folder = dirname(file);
  const found = [folder, dirname(folder)]
    .map((place) => join(place, KEYS_FILE))
    .find((path) => existsSync(path));
  if (found === undefined) return [];
  requireRegular(found);
  const keys = keysIn(readJson(found));
  if (!keys) throw new VectorError(`${found}: is not a key set: expected {keys: [JWK, …]}`);
  return keys;
}

function contextOf(file: string, options: LoadOptions): ShapeContext {
  return {
    file,
    stem: basename(file, '.json'),
    protocol: options.protocol,
    edition: editionFor(options.edition ?? DEFAULT_EDITION).name,
    isEditionGiven: options.edition !== undefined,
    keys: () => keysBeside(file),
    codeOf: options.codeOf ?? ((code) => code),
    ignore: new Set(options.ignore),
    passOver: (name, why) => options.onSkipped?.({ what: 'member', name, file, why }),
  };
}

/** Returns the cases of a parsed file. @throws VectorError with the name of the file. */
function casesOf(json: unknown, file: string, options: LoadOptions): readonly ReadCase[] {
  try {
    return readCases(json, contextOf(file, options));
  } catch (error) {
    // An unknown edition in the file throws a ConfigError, which is reported like any error of the file.
    if (!(error instanceof VectorError) && !(error instanceof ConfigError)) throw error;
    throw new VectorError(error.message.startsWith(file) ? error.message : `${file}: ${error.message}`);
  }
}

const KEYS_FILE = 'keys.json';

/**
 * Reads a file of a folder. A file that cannot be read becomes a case that fails, so that the other files still run. A
 * key set is skipped.
 */
function loadFound(file: string, name: string, options: LoadOptions): readonly ReadCase[] {
  try {
    requireRegular(file);
    const json = readJson(file);
    if (!isKeySet(json)) return casesOf(json, file, options);
    if (basename(file) !== KEYS_FILE) options.onSkipped?.({ what: 'file', name, file, why: 'a key set' });
    return [];
  } catch (error) {
    if (!(error instanceof VectorError)) throw error;
    return [{ kind: 'unreadable', name: basename(file), file, reason: error.message }];
  }
}

/**
 * Reads the files that the caller names. Key sets, which a shell's `*.json` includes, are skipped unless no other file
 * is named.
 */
function loadNamed(files: readonly string[], options: LoadOptions): readonly ReadCase[] {
  const read = files.map((file) => ({ file, json: readJson(file) }));
  const vectors = read.filter(({ json }) => !isKeySet(json));
  return (vectors.length > 0 ? vectors : read).flatMap(({ file, json }) => casesOf(json, file, options));
}

/** Reads a folder. @throws VectorError if no file has vectors; the error says which files were skipped. */
function loadFolder(folder: string, options: LoadOptions): readonly ReadCase[] {
  const skipped: Skipped[] = [];
  const onSkipped = (one: Skipped): void => {
    skipped.push(one);
    options.onSkipped?.(one);
  };
  const found = filesIn(folder).flatMap(({ file, name, why }) => {
    if (why === undefined) return loadFound(file, name, { ...options, onSkipped });
    onSkipped({ what: 'file', name, file, why });
    return [];
  });
  if (found.length > 0) return found;
  const files = skipped.filter(({ what }) => what === 'file').map(({ name, why }) => `${name} (${why})`);
  const rest = files.length > 0 ? `; skipped: ${files.join(', ')}` : '';
  throw new VectorError(`${folder}: has no vectors: expected JSON files like positive/001.json${rest}`);
}

/**
 * Reads vectors from disk: this package's own, a folder, or single files. It is synchronous, because test suites
 * register their tests synchronously. In a folder, a file of unknown shape becomes a case that fails.
 * @throws VectorError for a folder or a named file that cannot be read or has no vectors; ConfigError for a wrong
 * `protocol` or `edition`.
 */
export function loadVectors(options: LoadOptions = {}): readonly ReadCase[] {
  const { dir, files } = options;
  protocolFor(options.protocol);
  editionFor(options.edition);
  if (files?.length === 0 && dir === undefined) {
    throw new VectorError('files is empty: expected at least one file, or a dir');
  }
  const folder = dir ?? (files === undefined ? ownVectors() : undefined);
  const found = folder === undefined ? [] : loadFolder(folder, options);
  return [...found, ...loadNamed(files ?? [], options)];
}
