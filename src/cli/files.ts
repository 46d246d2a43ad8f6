// Reads the files, secrets and keys that flags or captures name, up to a size limit. All commands use these functions.
// No secret is given on the command line itself.
import { createReadStream } from 'node:fs';
import { realpath, stat } from 'node:fs/promises';
import { dirname, isAbsolute, join, normalize, resolve } from 'node:path';
import { buffer } from 'node:stream/consumers';
import type { Command } from 'commander';
import { parseStrictObject } from '../codec/strict-json.ts';
import type { Jwk } from '../crypto/engine.ts';
import { publicPart } from '../keys/pinned-jwks.ts';
import type { SenderAuth } from '../config/sender-entry.ts';
import { type CliContext, UsageError } from './shell.ts';

const REASONS: Readonly<Record<string, string>> = {
  ENOENT: 'there is no such file',
  EISDIR: 'it is a directory',
  EACCES: 'reading it is not permitted',
};

/**
 * The largest number of bytes that are read from a file. They are counted while reading, because pipes and devices
 * state no length.
 */
const MAX_BYTES = 64 * 1024 * 1024;

/** Reads a file. @throws UsageError if it has more than `MAX_BYTES`. */
async function readBounded(path: string, file: string, expected: string): Promise<Uint8Array> {
  const bytes = await buffer(createReadStream(path, { end: MAX_BYTES }));
  if (bytes.length <= MAX_BYTES) return bytes;
  throw new UsageError(`${file}: longer than ${MAX_BYTES} bytes. Expected ${expected}.`);
}

/**
 * Returns the bytes of a file; `-` is standard input.
 * @param expected a description of the expected content, for the error message.
 * @throws UsageError if the file cannot be read.
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

/**
 * Returns the bytes of a file that a capture names. A capture comes from another party, so it may only name files below
 * its own folder, without `..` or a link in the path.
 * @param capture the file of the capture; `-`, standard input, has no folder.
 * @throws UsageError for any other name, and if the file cannot be read.
 */
export async function readBeside(capture: string, name: string, context: CliContext): Promise<Uint8Array> {
  const refused = (why: string): UsageError =>
    new UsageError(
      `the curl command names the file ${JSON.stringify(name)}, which ${why}. Put the body into the command, as --data-raw '…', or the file beside the capture`,
    );
  if (capture === '-') throw refused('is not read: a capture on standard input has no folder');
  const inner = normalize(name);
  if (isAbsolute(inner) || inner === '-' || inner.split(/[\\/]/)[0] === '..') {
    throw refused("is not read: it is not below the capture's folder");
  }
  const folder = await realpath(dirname(resolve(context.cwd, capture)));
  const file = join(folder, inner);
  const found = await realpath(file).catch(() => undefined);
  if (found === undefined) throw refused('does not exist');
  if (found !== file) throw refused('is not read: a link leads to it');
  if (!(await stat(file)).isFile()) throw refused('is not a regular file');
  return readBounded(file, name, 'the body that the curl command names');
}

/** Reads a JSON object. @throws UsageError if the file contains anything else. */
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
 * Returns a secret from a file or an environment variable, without the white space around it. The command line itself
 * is not used, because every process of the machine can read it.
 * @returns undefined if neither source is named.
 * @throws UsageError if the file cannot be read, or the variable is not set.
 */
export async function readSecret(
  source: { readonly file?: string | undefined; readonly env?: string | undefined },
  context: CliContext,
): Promise<string | undefined> {
  if (source.file !== undefined) {
    const bytes = await readInput(source.file, 'a file with the secret alone', context);
    return new TextDecoder().decode(bytes).trim();
  }
  if (source.env === undefined) return undefined;
  const value = context.env[source.env]?.trim() ?? '';
  if (value === '')
    throw new UsageError(`${source.env}: not set. Expected an environment variable with the secret.`);
  return value;
}

/** The flags that name the sources of legacy credentials. */
export interface SecretFlags {
  readonly hmacSecretFile?: string;
  readonly hmacSecretEnv?: string;
  readonly bearerTokenFile?: string;
  readonly bearerTokenEnv?: string;
}

/** Adds the options of `SecretFlags`. */
export function addSecretFlags(verb: Command): Command {
  return verb
    .option('--hmac-secret-file <file>', 'legacy HMAC: file with the secret')
    .option('--hmac-secret-env <name>', 'legacy HMAC: environment variable with the secret')
    .option('--bearer-token-file <file>', 'legacy bearer: file with the token')
    .option('--bearer-token-env <name>', 'legacy bearer: environment variable with the token');
}

/** Returns the legacy credentials of a sender; undefined if the flags name none, because the sender then signs. */
export async function secretsOf(flags: SecretFlags, context: CliContext): Promise<SenderAuth | undefined> {
  const secret = await readSecret({ file: flags.hmacSecretFile, env: flags.hmacSecretEnv }, context);
  if (secret !== undefined) return { hmac: { secret } };
  const token = await readSecret({ file: flags.bearerTokenFile, env: flags.bearerTokenEnv }, context);
  return token === undefined ? undefined : { bearer: { token } };
}

const EXPECTED = 'a JWK, a JWKS ({"keys":[…]}) or the output of `proto-webhooks keys generate`';

function jwksOf(document: Readonly<Record<string, unknown>>): readonly unknown[] {
  if (Array.isArray(document['keys'])) return document['keys'] as unknown[];
  const pair = [document['privateJwk'], document['publicJwk']].find((half) => half !== undefined);
  return pair === undefined ? [document] : [pair];
}

function isJwk(value: unknown): value is Jwk {
  return typeof value === 'object' && value !== null && typeof (value as Jwk)['kty'] === 'string';
}

/**
 * Returns the keys in the files: each has a JWK, a JWKS, or a pair of `generateKey`.
 * @throws UsageError for a file without keys, or with a key that has no `kid`.
 */
export async function readKeys(files: readonly string[], context: CliContext): Promise<Jwk[]> {
  const keys: Jwk[] = [];
  for (const file of files) {
    const found = jwksOf(await readJsonObject(file, EXPECTED, context));
    if (found.length === 0 || !found.every(isJwk))
      throw new UsageError(`${file}: no keys. Expected ${EXPECTED}.`);
    const unnamed = found.some((jwk) => typeof jwk['kid'] !== 'string' || jwk['kid'] === '');
    if (unnamed) throw new UsageError(`${file}: a key has no kid. Add the one under which it is published.`);
    keys.push(...found);
  }
  return keys;
}

/** Returns the public part of a key. For a private key, `key_ops` becomes `verify`; a public key stays as it is. */
export function publicJwk(jwk: Jwk): Jwk {
  const shown = publicPart(jwk);
  return isPrivate(jwk) ? { ...shown, key_ops: ['verify'] } : shown;
}

/** True if the key can sign. */
export const isPrivate = (jwk: Jwk): boolean => typeof jwk['d'] === 'string';

/** Collects the values of an option that is given several times, for the command-line parser. */
export const collect = (value: string, before: readonly string[] = []): readonly string[] => [
  ...before,
  value,
];
