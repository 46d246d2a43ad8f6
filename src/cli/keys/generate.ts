import { writeFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import { type Command, Option } from 'commander';
import type { Jwk, SignatureAlgorithm } from '../../crypto/engine.ts';
import { generateKey, type KeyPair } from '../../sender/sign.ts';
import { addVerb, type CliContext, type Report, type RunVerb, UsageError } from '../shell.ts';

/** A key of the set that probing needs. */
export interface ProbeKey {
  readonly kid: string;
  readonly alg: SignatureAlgorithm;
  /** Value of `<protocol>_use`. */
  readonly purpose: string;
}

/** Both algorithms, a key for requests (refused in edition 3.0), one for nothing here, and one to be revoked. */
export const PROBE_KEYS: readonly ProbeKey[] = [
  { kid: 'probe-ed25519', alg: 'ed25519', purpose: 'webhook-signing' },
  { kid: 'probe-p256', alg: 'ecdsa-p256-sha256', purpose: 'webhook-signing' },
  { kid: 'probe-request', alg: 'ed25519', purpose: 'request-signing' },
  { kid: 'probe-other', alg: 'ed25519', purpose: 'token-signing' },
  { kid: 'probe-revoked', alg: 'ed25519', purpose: 'webhook-signing' },
];

interface GenerateFlags {
  readonly alg: keyof typeof ALGORITHMS;
  readonly kid?: string;
  readonly purpose: string;
  readonly protocol?: string;
  readonly out?: string;
  readonly probe?: boolean;
  readonly json?: boolean;
}

const ALGORITHMS = { ed25519: 'ed25519', p256: 'ecdsa-p256-sha256' } as const satisfies Record<
  string,
  SignatureAlgorithm
>;

async function pairs(flags: GenerateFlags): Promise<KeyPair[]> {
  const named = flags.protocol === undefined ? {} : { protocol: flags.protocol };
  if (!flags.probe) {
    const kid = flags.kid === undefined ? {} : { kid: flags.kid };
    return [await generateKey(ALGORITHMS[flags.alg], flags.purpose, { ...kid, ...named })];
  }
  const made: KeyPair[] = [];
  for (const { kid, alg, purpose } of PROBE_KEYS)
    made.push(await generateKey(alg, purpose, { kid, ...named }));
  return made;
}

const asText = (keys: readonly Jwk[]): string => JSON.stringify({ keys }, undefined, 2);

/** For the owner's eyes only, and never over a key that is in use. */
async function writePrivate(file: string, keys: readonly Jwk[], context: CliContext): Promise<void> {
  try {
    await writeFile(resolve(context.cwd, file), `${asText(keys)}\n`, { mode: 0o600, flag: 'wx' });
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    const why =
      code === 'EEXIST' ? 'exists already, and a key is not overwritten' : `cannot be written (${code})`;
    throw new UsageError(`${file}: ${why}. Expected the name of a new file.`);
  }
}

async function generate(flags: GenerateFlags, context: CliContext): Promise<Report> {
  const made = await pairs(flags);
  const secret = made.map(({ privateJwk }) => privateJwk);
  const open = made.map(({ publicJwk }) => publicJwk);
  if (flags.out === undefined) return { ok: true, json: { keys: secret }, text: () => asText(secret) };
  await writePrivate(flags.out, secret, context);
  context.notice(`${flags.out} has the private keys. What follows is the JWKS to publish.`);
  return { ok: true, json: { keys: open }, text: () => asText(open) };
}

/** `keys generate`. */
export function addKeysGenerate(parent: Command, run: RunVerb): void {
  addVerb(parent, 'generate', 'make a signing key, or the keys for `vectors probe`', [
    'keys generate --out seller.private.json > jwks.json',
    'keys generate --alg p256 --kid 2026-a --out seller.private.json',
    'keys generate --probe --out probe-keys.json > probe-jwks.json',
  ])
    .addOption(new Option('--alg <name>', 'algorithm').choices(Object.keys(ALGORITHMS)).default('ed25519'))
    .option('--kid <kid>', 'key id (default: the RFC 7638 thumbprint)')
    .option('--purpose <name>', 'value of <protocol>_use', 'webhook-signing')
    .option('--protocol <name>', 'name in wire identifiers (default: proto)')
    .option('--probe', 'a set for `vectors probe`: both algorithms, wrong purposes, one to be revoked')
    .option(
      '--out <file>',
      'write the private keys there and print the public ones; without it the private ones are printed',
    )
    .action((flags: GenerateFlags) => run(flags, (context) => generate(flags, context)));
}
