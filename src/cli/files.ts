import { createReadStream } from 'node:fs';
import { buffer } from 'node:stream/consumers';
import { resolve } from 'node:path';
import { parseStrictObject } from '../codec/strict-json.ts';
import type { CliContext } from './shell.ts';
import { UsageError } from './usage-error.ts';

const REASONS: Readonly<Record<string, string>> = {
  ENOENT: 'there is no such file',
  EISDIR: 'it is a directory',
  EACCES: 'it may not be read',
};

/** The longest that is read, bytes. Counted and not looked up: pipes and devices have no length beforehand. */
const MAX_BYTES = 64 * 1024 * 1024;

/** @throws UsageError for more than `MAX_BYTES`. */
async function readBounded(path: string, file: string, expected: string): Promise<Uint8Array> {
  const bytes = await buffer(createReadStream(path, { end: MAX_BYTES }));
  if (bytes.length <= MAX_BYTES) return bytes;
  throw new UsageError(`${file}: longer than ${MAX_BYTES} bytes. Expected ${expected}.`);
}

/**
 * The bytes of a file; `-` is standard input.
 * @param expected what should be in it, for the message.
 * @throws UsageError where it cannot be read.
 */
export async function readInput(file: string, expected: string, context: CliContext): Promise<Uint8Array> {
  if (file === '-') return context.stdin();
  try {
    return await readBounded(resolve(context.cwd, file), file, expected);
  } catch (error) {
    if (error instanceof UsageError) throw error;
    const code = (error as NodeJS.ErrnoException).code ?? '';
    throw new UsageError(`${file}: ${REASONS[code] ?? code}. Expected ${expected}, or - for standard input.`);
  }
}

/** @throws UsageError where the file is no JSON object. */
export async function readJsonObject(
  file: string,
  expected: string,
  context: CliContext,
): Promise<Readonly<Record<string, unknown>>> {
  const json = parseStrictObject(await readInput(file, expected, context));
  if (json.ok) return json.value;
  throw new UsageError(`${file}: no JSON object (${json.detail}). Expected ${expected}.`);
}

/**
 * A secret from a file or an environment variable, never from the command line alone, where every process sees it.
 * White space around it is no part of it.
 * @throws UsageError where there is none.
 */
export async function readSecret(
  given: { readonly file?: string | undefined; readonly env?: string | undefined },
  context: CliContext,
): Promise<string | undefined> {
  if (given.file !== undefined) {
    const bytes = await readInput(given.file, 'a file with the secret alone', context);
    return new TextDecoder().decode(bytes).trim();
  }
  if (given.env === undefined) return undefined;
  const value = context.env[given.env]?.trim() ?? '';
  if (value === '')
    throw new UsageError(`${given.env}: not set. Expected an environment variable with the secret.`);
  return value;
}
