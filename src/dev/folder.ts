// Opens the folder of dev, `.proto-webhooks`: keys, secrets, token and port (dev.md §1.2). dev.ts calls it when it
// starts and ends. It never replaces a file that it did not write.
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

/** Private keys of one seller, by their short names. */
export type SellerJwks = Readonly<Record<SellerKeyName, Jwk>>;

/** The content of the folder (dev.md §1.2). */
export interface DevFolder {
  readonly keys: Readonly<Record<DevScheme, SellerJwks>>;
  /** The secret of the HMAC seller. */
  readonly hmacSecret: string;
  /** The token of the bearer seller. */
  readonly bearerToken: string;
  /** The token of the API. */
  readonly token: string;
}

/** The names of the files in the folder. A hook of a receiver reads `token` and `port`. */
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

/** Refuses the folder, because nothing in it is ever replaced by itself. @throws UsageError, always. */
function refuse(path: string, why: string): never {
  throw new UsageError(
    `${path}: ${why}. Expected the folder of \`proto-webhooks dev\` as dev wrote it. Mend or remove it (its sellers then get new keys), or name another one by --dir.`,
  );
}

/** Writes a file whole, or leaves the file that another dev has written in between. */
async function writeNew(path: string, text: string): Promise<void> {
  const draft = `${path}.${randomBytes(6).toString('hex')}`;
  await writeFile(draft, text, { mode: 0o600, flag: 'wx' });
  try {
    await link(draft, path);
  } catch (error) {
    // Without hard links a file system has no better way than to rename.
    if (codeOf(error) !== 'EEXIST') await rename(draft, path);
  } finally {
    await rm(draft, { force: true });
  }
}

const MAX_FILE_BYTES = 65_536;

/** True if another user owns it, who could have put keys of their own there. Root may use anybody's. */
function isOthers(uid: number): boolean {
  const own = process.getuid?.();
  return own !== undefined && own !== 0 && uid !== own;
}

/** The text of a file of the folder. @returns undefined if there is none. @throws UsageError */
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

/** The text of a file, which is made first if there is none. */
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

/** True if a JWK can sign by the algorithm of that name. */
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

/** Makes the folder, or takes the one that is there. @throws UsageError */
async function makeFolder(path: string): Promise<void> {
  try {
    await mkdir(path, { mode: 0o700, recursive: true });
    const found = await lstat(path);
    if (!found.isDirectory()) return refuse(path, 'it is not a directory');
    if (isOthers(found.uid)) return refuse(path, 'it belongs to another user');
    // Something else has made it, or it was copied: its content is for its owner alone.
    if ((found.mode & 0o077) !== 0) await chmod(path, 0o700);
  } catch (error) {
    if (error instanceof UsageError) throw error;
    const code = codeOf(error);
    refuse(path, code === 'EEXIST' ? 'it is not a directory' : `it cannot be made or read (${code})`);
  }
}

/**
 * Opens the folder, and makes what is missing in it (dev.md §1.2).
 * @throws UsageError that names what cannot be read, or is not what dev wrote.
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
 * Writes the port at which dev listens, for hooks of receivers: of several devs, that of the last. @throws UsageError
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
 * Removes the port when dev ends, so that no hook gives the token to what listens there later. Another dev's port
 * stays. It never rejects.
 */
export async function removePort(path: string, port: number): Promise<void> {
  const file = join(path, FILES.port);
  try {
    if ((await readFile(file, 'utf8')) === `${port}\n`) await rm(file);
  } catch {
    // The file is gone, or no longer dev's.
  }
}
