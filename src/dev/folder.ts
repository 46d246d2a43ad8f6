// Opens dev's folder `.proto-webhooks`, which has keys, secrets, the token and the port (dev.md §1.2). dev.ts calls it
// when dev starts and ends. A file that dev did not write is never replaced.
import { randomBytes } from 'node:crypto';
import { chmod, link, lstat, mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { isJsonObject, type JsonObject } from '../codec/members.ts';
import { parseStrictObject } from '../codec/strict-json.ts';
import { UsageError } from '../cli/shell.ts';
import type { Jwk } from '../crypto/engine.ts';
import { algorithmOf, generateKey } from '../sender/keys.ts';
import { algorithmNamed, type SellerKeyName } from '../testing/seller-keys.ts';
import { ConfigError } from '../shared/errors.ts';
import type { DevScheme } from './wire.ts';

/** The private keys of one seller by their short names, `ed25519` and `p256`. */
export type SellerJwks = Readonly<Record<SellerKeyName, Jwk>>;

/** The content of dev's folder: keys, secrets, and the token of the API (dev.md §1.2). */
export interface DevFolder {
  readonly keys: Readonly<Record<DevScheme, SellerJwks>>;
  /** The shared secret of the seller that authenticates by HMAC. */
  readonly hmacSecret: string;
  /** The token of the seller that authenticates by a bearer token. */
  readonly bearerToken: string;
  /** The token that every request to dev's API needs. */
  readonly token: string;
}

/** The names of the files in the folder. `devHooks` in a receiver reads `token` and `port`. */
export const FILES = { keys: 'keys.json', token: 'token', port: 'port', ignore: '.gitignore' } as const;

const SCHEMES: readonly DevScheme[] = ['signature', 'hmac', 'bearer'];
const KEY_NAMES: readonly SellerKeyName[] = ['ed25519', 'p256'];
const SECRET_BYTES = 32;
const SECRET = /^[A-Za-z0-9_-]{43}$/;

const newSecret = (): string => randomBytes(SECRET_BYTES).toString('base64url');

async function newKeys(): Promise<JsonObject> {
  const sellers: Record<string, unknown> = {};
  for (const scheme of SCHEMES) {
    const keys: Record<string, Jwk> = {};
    for (const name of KEY_NAMES) {
      keys[name] = (await generateKey(algorithmNamed(name), 'webhook-signing')).privateJwk;
    }
    sellers[scheme] = keys;
  }
  return { version: 1, sellers, hmacSecret: newSecret(), bearerToken: newSecret() };
}

const codeOf = (error: unknown): string => (error as NodeJS.ErrnoException).code ?? String(error);

/**
 * Refuses a folder that dev cannot use. Dev replaces nothing in the folder by itself, so the user has to mend it.
 * @throws UsageError, always.
 */
function refuse(path: string, why: string): never {
  throw new UsageError(
    `${path}: ${why}. Expected the folder of \`proto-webhooks dev\` as dev wrote it. Mend or remove it (its sellers then get new keys), or name another one by --dir.`,
  );
}

/**
 * Writes a file in one step, so that nobody reads a part of it. If another dev has created the file meanwhile, that
 * file stays.
 */
async function writeNew(path: string, text: string): Promise<void> {
  const draft = `${path}.${randomBytes(6).toString('hex')}`;
  await writeFile(draft, text, { mode: 0o600, flag: 'wx' });
  try {
    await link(draft, path);
  } catch (error) {
    // On a file system without hard links, only a rename writes the file as a whole.
    if (codeOf(error) !== 'EEXIST') await rename(draft, path);
  } finally {
    await rm(draft, { force: true });
  }
}

const MAX_FILE_BYTES = 65_536;

/** True if another user owns the file, and so may have put known keys into it. Always false for root. */
function isOthers(uid: number): boolean {
  const own = process.getuid?.();
  return own !== undefined && own !== 0 && uid !== own;
}

/** Returns the text of a file in the folder, or undefined if there is no such file. @throws UsageError */
async function textOf(path: string): Promise<string | undefined> {
  try {
    const found = await lstat(path);
    if (!found.isFile()) return refuse(path, 'it is not a regular file');
    if (isOthers(found.uid)) return refuse(path, 'it belongs to another user');
    if (found.size > MAX_FILE_BYTES) return refuse(path, 'it is too long');
    return await readFile(path, 'utf8');
  } catch (error) {
    if (error instanceof UsageError) throw error;
    return codeOf(error) === 'ENOENT' ? undefined : refuse(path, `it cannot be read (${codeOf(error)})`);
  }
}

/** Returns the text of a file. If there is no such file, it is written first, with the text that `made` returns. */
async function kept(path: string, made: () => string | Promise<string>): Promise<string> {
  const found = await textOf(path);
  if (found !== undefined) return found;
  try {
    await writeNew(path, await made());
  } catch (error) {
    refuse(path, `it cannot be written (${codeOf(error)})`);
  }
  return (await textOf(path)) ?? refuse(path, 'it is gone');
}

/** True if the value is a private JWK for the algorithm that `name` stands for. */
function isSigningKey(jwk: unknown, name: SellerKeyName): jwk is Jwk {
  if (!isJsonObject(jwk) || typeof jwk['kid'] !== 'string' || typeof jwk['d'] !== 'string') return false;
  try {
    return algorithmOf(jwk) === algorithmNamed(name);
  } catch (error) {
    if (error instanceof ConfigError) return false;
    throw error;
  }
}

function sellerKeys(path: string, sellers: unknown, scheme: DevScheme): SellerJwks {
  const keys = isJsonObject(sellers) ? sellers[scheme] : undefined;
  if (!isJsonObject(keys)) return refuse(path, `it has no keys of the seller ${scheme}`);
  const { ed25519, p256 } = keys;
  if (isSigningKey(ed25519, 'ed25519') && isSigningKey(p256, 'p256')) return { ed25519, p256 };
  return refuse(path, `a key of the seller ${scheme} is none`);
}

function readKeys(path: string, text: string): Omit<DevFolder, 'token'> {
  const json = parseStrictObject(new TextEncoder().encode(text));
  if (!json.ok) return refuse(path, `it is not what dev wrote (${json.detail})`);
  const { version, sellers, hmacSecret, bearerToken } = json.value;
  if (version !== 1) return refuse(path, 'it is not what dev wrote (version)');
  const isSecret = (value: unknown): value is string => typeof value === 'string' && SECRET.test(value);
  if (!isSecret(hmacSecret) || !isSecret(bearerToken)) return refuse(path, 'it has no secrets');
  const [signature, hmac, bearer] = SCHEMES.map((scheme) => sellerKeys(path, sellers, scheme));
  return { keys: { signature, hmac, bearer } as DevFolder['keys'], hmacSecret, bearerToken };
}

/** Creates the folder, or checks that the existing folder can be used. @throws UsageError */
async function makeFolder(path: string): Promise<void> {
  try {
    await mkdir(path, { mode: 0o700, recursive: true });
    const found = await lstat(path);
    if (!found.isDirectory()) return refuse(path, 'it is not a directory');
    if (isOthers(found.uid)) return refuse(path, 'it belongs to another user');
    // The folder was created or copied by another program, with wider rights. Dev lets only the owner read it.
    if ((found.mode & 0o077) !== 0) await chmod(path, 0o700);
  } catch (error) {
    if (error instanceof UsageError) throw error;
    const code = codeOf(error);
    refuse(path, code === 'EEXIST' ? 'it is not a directory' : `it cannot be made or read (${code})`);
  }
}

/**
 * Opens dev's folder, and creates the files that are missing (dev.md §1.2).
 * @throws UsageError that names a file that cannot be read, or that dev did not write.
 */
export async function openFolder(path: string): Promise<DevFolder> {
  await makeFolder(path);
  await kept(join(path, FILES.ignore), () => '*\n');
  const keysFile = join(path, FILES.keys);
  const keys = readKeys(
    keysFile,
    await kept(keysFile, async () => `${JSON.stringify(await newKeys(), undefined, 2)}\n`),
  );
  const tokenFile = join(path, FILES.token);
  const token = (await kept(tokenFile, () => `${newSecret()}\n`)).trim();
  if (!SECRET.test(token)) refuse(tokenFile, 'it is not what dev wrote');
  return { ...keys, token };
}

/**
 * Writes the port of dev into dev's folder, where `devHooks` in a receiver reads it. If several devs share the folder,
 * the file has the port of the last one started.
 * @throws UsageError if the file cannot be read or written, or was not written by dev.
 */
export async function writePort(path: string, port: number): Promise<void> {
  const file = join(path, FILES.port);
  const found = await textOf(file);
  if (found !== undefined && !/^\d{1,5}\n$/.test(found)) refuse(file, 'it is not what dev wrote');
  const draft = `${file}.${randomBytes(6).toString('hex')}`;
  try {
    await writeFile(draft, `${port}\n`, { mode: 0o600, flag: 'wx' });
    await rename(draft, file);
  } catch (error) {
    await rm(draft, { force: true }).catch(() => undefined);
    refuse(file, `it cannot be written (${codeOf(error)})`);
  }
}

/**
 * Removes the port file when dev ends, so that `devHooks` does not send the token to another program at this port. If
 * another dev has written its port, the file stays. Never rejects.
 */
export async function removePort(path: string, port: number): Promise<void> {
  const file = join(path, FILES.port);
  try {
    if ((await readFile(file, 'utf8')) === `${port}\n`) await rm(file);
  } catch {
    // The port file is gone already, or dev may no longer read or remove it.
  }
}
