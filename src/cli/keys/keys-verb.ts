// The commands `proto-webhooks keys check` and `keys generate`.
import { type Command, Option } from 'commander';
import { writeFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import { materialOf } from '../../auth/rfc9421/revoked-at.ts';
import { quoted } from '../../codec/printable.ts';
import type { SignatureAlgorithm } from '../../crypto/algorithms.ts';
import { algorithmNamed, KEY_NAMES, type SellerKeyName } from '../../testing/seller-keys.ts';
import type { Jwk } from '../../crypto/engine.ts';
import { ConfigError } from '../../shared/errors.ts';
import { parseInstant } from '../../events/instant.ts';
import type { NameLookUp } from '../../keys/key-resolver.ts';
import { defaultFetch } from '../../keys/net/document-fetch.ts';
import { EDITION_NAMES, type EditionName } from '../../shared/editions.ts';
import { generateKey, type KeyPair } from '../../sender/sign.ts';
import { collect } from '../files.ts';
import {
  addVerb,
  type CliContext,
  inLines,
  type Paint,
  type Report,
  requireHttpUrl,
  type RunVerb,
  UsageError,
} from '../shell.ts';
import { type Chain, type ChainKey, isFit, walkChain } from './chain.ts';
import type { Link } from './documents.ts';

const kidsOf = ({ jwks }: Chain): ReadonlySet<string> => new Set(jwks.map((jwk) => String(jwk['kid'])));

const jwkOf = ({ jwks }: Chain, kid: string): Jwk => jwks.find((jwk) => jwk['kid'] === kid) ?? {};

/**
 * Returns the reasons why two sellers cannot share a URL yet. If the keys of one seller were never fetched, it is
 * unknown to which seller a key belongs.
 */
export function blockingFaults(chain: Chain, other: Chain): string[] {
  const blocks = (silent: Chain, stopped: Chain): string =>
    `The keys of ${silent.agentUrl} cannot be fetched. Until they can, deliveries of ${stopped.agentUrl} at the same URL by keys that never verified are answered 503.`;
  return [
    ...(other.isReachable ? [] : [blocks(other, chain)]),
    ...(chain.isReachable ? [] : [blocks(chain, other)]),
  ];
}

/**
 * Returns a note about key ids that both sellers publish. At one URL of a receiver, only one of the sellers can use
 * such a key id.
 */
export function sharedNotes(chain: Chain, other: Chain): string[] {
  const own = kidsOf(chain);
  const shared = [...kidsOf(other)].filter((kid) => own.has(kid));
  if (shared.length === 0) return [];
  const same = shared.filter((kid) => materialOf(jwkOf(chain, kid)) === materialOf(jwkOf(other, kid)));
  const one =
    same.length === 0
      ? ''
      : ` Under ${same.map((kid) => JSON.stringify(kid)).join(', ')} it is the same key: deliveries of both are answered 503, unless the key has verified for one of them before.`;
  return [
    `${other.agentUrl} publishes ${shared.map((kid) => JSON.stringify(kid)).join(', ')} too. At a shared URL of a receiver each can be only one seller's: give each seller a URL of its own, or have one of them publish another kid.${one}`,
  ];
}

/** The flags for a seller's documents, shared by `keys check` and `explain`. */
export interface ChainFlags {
  readonly brandJson?: string;
  readonly publisher?: readonly string[];
  readonly revocations?: string;
  readonly protocol?: string;
  readonly edition?: EditionName;
  readonly allowLoopback?: boolean;
  readonly dns?: NameLookUp;
}

/** Patterns that find a receiver's option in an error message, and the flag that replaces it in the message. */
const FLAG_NAMES: readonly (readonly [option: RegExp, flag: string])[] = [
  [/^senders\[0\]\.agentUrl\b/, 'agent URL'],
  [/^senders\[0\]\.brandJsonUrl\b/, '--brand-json'],
  [/^senders\[0\]\.publishers\b/, '--publisher'],
  [/^senders\[0\]\.revocation\.url\b/, '--revocations'],
  [/^protocol:/, '--protocol:'],
  [/e\.g\. protocol: '(\w+)'/, 'e.g. --protocol $1'],
  [/set allowLoopback: true/, 'give --allow-loopback'],
];

function inFlags(error: unknown): unknown {
  if (!(error instanceof ConfigError)) return error;
  const message = FLAG_NAMES.reduce((text, [option, flag]) => text.replace(option, flag), error.message);
  return new UsageError(message, { cause: error });
}

async function walked(
  agentUrl: string,
  flags: ChainFlags,
  context: CliContext,
  looksTwice: boolean,
): Promise<Chain> {
  requireHttpUrl('agent URL', agentUrl);
  const allowLoopback = flags.allowLoopback ?? false;
  const walking = walkChain({
    sender: {
      agentUrl,
      ...(flags.brandJson !== undefined && { brandJsonUrl: flags.brandJson }),
      ...(flags.publisher && { publishers: flags.publisher }),
      ...(flags.revocations !== undefined && { revocation: { url: flags.revocations } }),
    },
    protocol: flags.protocol,
    edition: flags.edition,
    allowLoopback,
    fetch: defaultFetch(allowLoopback, flags.dns),
    now: context.now,
    looksTwice,
  });
  return walking.catch((error: unknown) => {
    throw inFlags(error);
  });
}

/**
 * Fetches the documents from an agent URL to its keys, and judges them.
 * @throws UsageError if the first document, which is required, cannot be fetched at all.
 */
export async function chainOf(
  agentUrl: string,
  flags: ChainFlags,
  context: CliContext,
  looksTwice = false,
): Promise<Chain> {
  const chain = await walked(agentUrl, flags, context, looksTwice);
  const [first] = chain.links;
  if (first?.state === 'unreachable' && chain.keys.length === 0) {
    throw new UsageError(
      `${first.url}: cannot be reached (${first.fault}). Expected the brand.json of ${agentUrl} there; --brand-json names another place, --allow-loopback allows http and private addresses.`,
    );
  }
  return chain;
}

const MARKS = { good: 'good', absent: 'dim', faulty: 'bad', unreachable: 'bad' } as const;

function linkLines(link: Link, paint: Paint): string[] {
  const facts = [
    link.redirectedTo === undefined ? undefined : `redirected to ${link.redirectedTo}`,
    link.bytes === undefined ? undefined : `${link.bytes} bytes`,
    link.ageMs === undefined ? undefined : `held by caches for ${link.ageMs / 1000} s`,
    link.lastModified === undefined ? undefined : `last modified ${link.lastModified}`,
    link.cacheControl === undefined ? 'no Cache-Control' : `Cache-Control: ${link.cacheControl}`,
    link.freshMs === undefined ? undefined : `used for ${Math.round(link.freshMs / 1000)} s`,
  ].filter((fact) => fact !== undefined);
  const head = `${paint(MARKS[link.state], link.state.padEnd(11))} ${link.document.padEnd(15)} ${link.url}`;
  const detail = link.state === 'good' ? facts.join(', ') : (link.fault ?? 'not published, which is allowed');
  return [head, `${' '.repeat(12)}${paint('dim', detail)}`];
}

const revokedText = (at: string): string =>
  parseInstant(at) === undefined
    ? `its own revoked_at is not a timestamp: ${quoted(at)}`
    : `its own revoked_at revokes it from ${at} on`;

function keyLine(key: ChainKey, edition: EditionName | undefined, paint: Paint): string {
  const fit = isFit(key);
  const other = fit ? '' : `, not ${edition ?? 'without an edition'}`;
  const since = key.revokedAt === undefined ? '' : `; ${revokedText(key.revokedAt)}`;
  const why = key.revoked
    ? `revoked${since}`
    : key.editions.length === 0
      ? (key.invalidReason ?? '')
      : `signs webhooks in edition ${key.editions.join(', ')}${other}${since}`;
  return `${paint(fit ? 'good' : 'warn', (fit ? 'key' : 'no key').padEnd(11))} ${key.kid}  ${why} (${key.source})`;
}

function chainText(chain: Chain, paint: Paint): string {
  const faults = chain.faults.map((fault) => `${paint('bad', 'fault'.padEnd(11))} ${fault}`);
  const notes = chain.notes.map((note) => `${paint('warn', 'note'.padEnd(11))} ${note}`);
  const { state, nextUpdate, kids } = chain.revocation;
  const revocation =
    nextUpdate === undefined
      ? []
      : [`${'revocation'.padEnd(11)} ${state}, ${kids.length} revoked, next update ${nextUpdate}`];
  return [
    `Agent ${chain.agentUrl}`,
    '',
    ...chain.links.flatMap((link) => linkLines(link, paint)),
    ...chain.keys.map((key) => keyLine(key, chain.edition, paint)),
    ...revocation,
    ...notes,
    ...faults,
    '',
    faults.length === 0
      ? paint('good', 'A receiver would find the keys.')
      : paint('bad', `${faults.length} ${faults.length === 1 ? 'fault' : 'faults'}.`),
  ].join('\n');
}

interface CheckFlags extends ChainFlags {
  readonly beside?: readonly string[];
  readonly json?: boolean;
}

/**
 * Compares the keys of a seller with those of the sellers in `--beside`. Finds shared key ids, and reasons not to use
 * one URL for both.
 */
async function besides(
  chain: Chain,
  flags: CheckFlags,
  context: CliContext,
): Promise<{ readonly notes: string[]; readonly faults: string[] }> {
  const { beside = [], brandJson: _, publisher: _publisher, revocations: _list, ...others } = flags;
  const [notes, faults]: [string[], string[]] = [[], []];
  for (const agentUrl of beside) {
    const other = await walked(agentUrl, others, context, false);
    notes.push(...sharedNotes(chain, other));
    faults.push(...blockingFaults(chain, other));
  }
  return { notes, faults };
}

async function check(agentUrl: string, flags: CheckFlags, context: CliContext): Promise<Report> {
  const found = await chainOf(agentUrl, flags, context, true);
  const { jwks: _jwks, isReachable: _isReachable, ...said } = found;
  const beside = await besides(found, flags, context);
  const chain = {
    ...said,
    notes: [...said.notes, ...beside.notes],
    faults: [...said.faults, ...beside.faults],
  };
  return {
    ok: chain.faults.length === 0,
    json: chain,
    text: (paint) => chainText({ ...inLines(chain), jwks: [], isReachable: true }, paint),
  };
}

export function addKeysCheck(parent: Command, run: RunVerb): void {
  addChainFlags(
    addVerb(
      parent,
      'check',
      'walk brand.json, agents[], JWKS, pins and revocation list as a receiver would',
      [
        'keys check https://seller.example/mcp',
        'keys check https://seller.example/mcp --publisher publisher.example --json',
        'keys check https://seller.example/mcp --beside https://other.example/mcp',
        'keys check http://127.0.0.1:4555/mcp --allow-loopback',
      ],
    )
      .argument('<agent-url>', "the seller's agents[].url, byte for byte")
      .option('--beside <agent-url>', 'another seller at the same URL of a receiver; repeatable', collect)
      .addOption(
        new Option(
          '--edition <name>',
          'edition that the receiver has for this seller (default: none, which narrows nothing)',
        ).choices(EDITION_NAMES),
      ),
  ).action((agentUrl: string, flags: CheckFlags) => run(flags, (context) => check(agentUrl, flags, context)));
}

/** Adds the options of `ChainFlags`. */
export function addChainFlags(verb: Command): Command {
  return verb
    .option('--brand-json <url>', 'URL of brand.json, if not at the host of the agent URL')
    .option('--publisher <domain>', 'publisher whose adagents.json may pin keys; repeatable', collect)
    .option('--revocations <url>', 'revocation list, if not at the well-known path')
    .option('--protocol <name>', 'only this name in wire identifiers (default: proto and adcp)')
    .option('--allow-loopback', 'allow http and private addresses')
    .addOption(
      new Option('--dns <how>', "how names are looked up, as the receiver's dns (default: direct)").choices([
        'direct',
        'system',
      ]),
    );
}

/** A key in the key set for probes. */
export interface ProbeKey {
  readonly kid: string;
  readonly alg: SignatureAlgorithm;
  /** The purpose of the key, which is published as its member `<protocol>_use`. */
  readonly purpose: string;
}

/**
 * The keys for a probe: one for each algorithm, one for requests (refused in edition 3.0), one for another purpose, and
 * one that is revoked.
 */
export const PROBE_KEYS: readonly ProbeKey[] = [
  { kid: 'probe-ed25519', alg: 'ed25519', purpose: 'webhook-signing' },
  { kid: 'probe-p256', alg: 'ecdsa-p256-sha256', purpose: 'webhook-signing' },
  { kid: 'probe-request', alg: 'ed25519', purpose: 'request-signing' },
  { kid: 'probe-other', alg: 'ed25519', purpose: 'token-signing' },
  { kid: 'probe-revoked', alg: 'ed25519', purpose: 'webhook-signing' },
];

interface GenerateFlags {
  readonly alg: SellerKeyName;
  readonly kid?: string;
  readonly purpose: string;
  readonly protocol?: string;
  readonly out?: string;
  readonly probe?: boolean;
  readonly json?: boolean;
}

async function pairs(flags: GenerateFlags): Promise<KeyPair[]> {
  const named = flags.protocol === undefined ? {} : { protocol: flags.protocol };
  if (!flags.probe) {
    const kid = flags.kid === undefined ? {} : { kid: flags.kid };
    return [await generateKey(algorithmNamed(flags.alg), flags.purpose, { ...kid, ...named })];
  }
  const made: KeyPair[] = [];
  for (const { kid, alg, purpose } of PROBE_KEYS)
    made.push(await generateKey(alg, purpose, { kid, ...named }));
  return made;
}

const asText = (keys: readonly Jwk[]): string => JSON.stringify({ keys }, undefined, 2);

/** Writes private keys to a new file that only its owner can read. It never overwrites a file. */
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
  context.notice(`${flags.out} has the private keys. The JWKS to publish follows.`);
  return { ok: true, json: { keys: open }, text: () => asText(open) };
}

export function addKeysGenerate(parent: Command, run: RunVerb): void {
  addVerb(parent, 'generate', 'make a signing key, or the keys for `vectors probe`', [
    'keys generate --out seller.private.json > jwks.json',
    'keys generate --alg p256 --kid 2026-a --out seller.private.json',
    'keys generate --probe --out probe-keys.json > probe-jwks.json',
  ])
    .addOption(new Option('--alg <name>', 'algorithm').choices(Object.values(KEY_NAMES)).default('ed25519'))
    .option('--kid <kid>', 'key id (default: the RFC 7638 thumbprint)')
    .option('--purpose <name>', 'value of <protocol>_use', 'webhook-signing')
    .option('--protocol <name>', 'only this name in wire identifiers (default: proto and adcp)')
    .option('--probe', 'a set for `vectors probe`: both algorithms, wrong purposes, one to be revoked')
    .option(
      '--out <file>',
      'write the private keys there and print the public ones; without it the private ones are printed',
    )
    .action((flags: GenerateFlags) => run(flags, (context) => generate(flags, context)));
}
