// Reads the senders and keys with which `explain` verifies, from the command line or from a conformance vector (test
// case). `explain-verb.ts` calls it once for all captures.
import { resolve } from 'node:path';
import type { Jwk } from '../../crypto/engine.ts';
import { DEFAULT_EDITION, type EditionName } from '../../shared/editions.ts';
import type { JsonObject } from '../../codec/members.ts';
import type { ReportsAuth, Sender } from '../../config/sender-entry.ts';
import { VectorError } from '../../vectors/vector-case.ts';
import { revocationUrl, senderOf } from '../../vectors/library.ts';
import { keysBeside } from '../../vectors/load.ts';
import { editionOf, type ShapeContext } from '../../vectors/shapes/read-shape.ts';
import { setupOf } from '../../vectors/shapes/signature-shape.ts';
import type { Setup } from '../../vectors/subject.ts';
import type { Capture } from '../capture/capture.ts';
import { publicJwk, readKeys, readSecret, type SecretFlags, secretsOf } from '../files.ts';
import type { Chain } from '../keys/chain.ts';
import { chainOf, type ChainFlags } from '../keys/keys-verb.ts';
import { type CliContext, UsageError } from '../shell.ts';
import type { Known, KnownRevocations } from './explain-case.ts';

/** The senders to verify with, and the known facts about their keys. */
export interface Configured extends Known {
  readonly senders: readonly Sender[];
}

/** The flags that name the sender, its keys and its secrets. */
export interface SenderFlags extends ChainFlags, SecretFlags {
  readonly reportsSecretFile?: string;
  readonly reportsSecretEnv?: string;
  readonly keys?: readonly string[];
  readonly agentUrl?: string;
  readonly edition?: EditionName;
}

const NO_KEYS =
  'no key to verify with. Give --keys FILE (a JWK or JWKS), --agent-url URL (its JWKS is fetched), or --hmac-secret-file / --bearer-token-file for a legacy sender, --reports-secret-file for reports by HMAC.';

const NO_AGENT = 'https://seller.invalid/mcp';

/** Returns the public parts of the keys, one for each key id: the last one given. */
function distinct(keys: readonly Jwk[]): Jwk[] {
  return [...new Map(keys.map((jwk) => [jwk['kid'], publicJwk(jwk)])).values()];
}

const NO_LIST: KnownRevocations = { state: 'none', detail: 'there is no revocation list' };

/** Returns the state of the operator's revocation list, as a receiver would judge it. */
function revocationsOf({ revocation, faults }: Chain): KnownRevocations {
  if (revocation.state === 'fresh') return { state: 'fresh' };
  if (revocation.state === 'none') return NO_LIST;
  const fault = faults.find((text) => text.startsWith('revocation list'));
  const unusable = revocation.state === 'stale' || revocation.required === true;
  return { state: unusable ? 'unusable' : 'unknown', ...(fault !== undefined && { detail: fault }) };
}

/**
 * Returns the reason why it is unknown which keys publishers pin; otherwise undefined. A publisher's file that cannot
 * be fetched might pin other keys than those in the JWKS.
 */
function undecidedPins({ keys, faults }: Chain): string | undefined {
  const unpinned = keys.every(({ source }) => source === 'JWKS');
  return unpinned ? faults.find((text) => text.startsWith('adagents.json')) : undefined;
}

/** Fetches the documents of a seller, and returns the seller with its keys and the keys `fromFlags` as pins. */
async function ofAgent(
  agentUrl: string,
  fromFlags: readonly Jwk[],
  flags: SenderFlags,
  context: CliContext,
): Promise<Configured> {
  const chain = await chainOf(agentUrl, flags, context);
  const [fault] = chain.faults;
  if (chain.jwks.length === 0 && fault !== undefined) {
    throw new UsageError(`no keys of ${agentUrl}: ${fault} proto-webhooks keys check shows the whole chain.`);
  }
  const pins = distinct([...chain.jwks, ...fromFlags]);
  if (pins.length === 0) throw new UsageError(NO_KEYS);
  const keysFault = undecidedPins(chain);
  return {
    senders: [{ agentUrl, pins, revocation: { revokedKids: chain.revocation.kids } }],
    revocations: revocationsOf(chain),
    ...(keysFault !== undefined && { keysFault }),
  };
}

/**
 * True if a vector (test case) names no key. Then its keys come from the command line or from `keys.json` beside it.
 */
const isKeyless = (vector: JsonObject): boolean =>
  ['jwks_ref', 'jwks_override', 'senders', 'authentication'].every((name) => !(name in vector));

function vectorRevocations(setup: Setup): KnownRevocations {
  if (revocationUrl(setup) === undefined) return NO_LIST;
  const stale = setup.revocationStaleMs ?? 0;
  if (stale <= 0) return { state: 'fresh' };
  return { state: 'unusable', detail: `The revocation list is ${stale / 1000} s past its grace.` };
}

/**
 * Returns the senders of a vector (test case), and the state of the receiver's store that it requires.
 * @throws VectorError, ConfigError.
 */
function ofVector(vector: JsonObject, fromFlags: readonly Jwk[], context: ShapeContext): Configured {
  const keys = fromFlags.length > 0 ? fromFlags : context.keys();
  if (keys.length === 0 && isKeyless(vector)) throw new UsageError(NO_KEYS);
  // If the command line gives keys, all of them are used. `jwks_ref` is removed, because it selects keys of
  // `keys.json`.
  const json = fromFlags.length > 0 ? { ...vector, jwks_ref: undefined } : vector;
  const own = { ...context, keys: () => distinct(keys) };
  // Only the senders and the state are read from the result, so its URL and time may have any value.
  const setup = setupOf(json, { url: '', nowMs: 0 }, own);
  const { revokedKids, usedNonces, fullKids } = setup;
  return {
    senders: setup.senders.map((sender) => ({ ...senderOf(sender, setup), revocation: { revokedKids } })),
    revocations: vectorRevocations(setup),
    seen: { usedNonces, fullKids },
  };
}

function shapeContext(file: string, flags: SenderFlags, context: CliContext): ShapeContext {
  return {
    file,
    stem: file,
    protocol: flags.protocol,
    edition: flags.edition ?? DEFAULT_EDITION,
    keys: () => keysBeside(resolve(context.cwd, file)),
    codeOf: (code) => code,
  };
}

/**
 * Reads the configuration of a receiver, from the command line and, if the capture is a vector (test case), from the
 * vector. Secrets and agent of the command line replace the vector's senders. Files are read and documents fetched
 * once, for all captures.
 * @returns a function that returns the configuration for a capture. It throws UsageError if there is nothing to verify
 *   with, or if the vector cannot be read.
 */
export async function readConfigured(
  flags: SenderFlags,
  context: CliContext,
): Promise<(file: string, capture: Capture) => Configured> {
  const auth = await secretsOf(flags, context);
  const reports = await reportsOf(flags, auth, context);
  const fromFlags = auth ? [] : await readKeys(flags.keys ?? [], context);
  const { agentUrl } = flags;
  const agent =
    auth || agentUrl === undefined ? undefined : await ofAgent(agentUrl, fromFlags, flags, context);
  const fixed = auth ? { senders: [{ agentUrl: agentUrl ?? NO_AGENT, auth }] } : agent;
  return (file, capture) => {
    const shape = shapeContext(file, flags, context);
    try {
      const { senders, ...known } = fixed ?? ofCapture(capture, { fromFlags, reports }, shape);
      const edition = flags.edition ?? (capture.vector && editionOf(capture.vector, shape));
      const more = { ...(edition && { edition }), ...(reports && { auth: reports }) };
      return { senders: senders.map((sender) => ({ ...sender, ...more })), ...known };
    } catch (error) {
      if (error instanceof VectorError) throw new UsageError(`${file}: ${error.message}.`);
      throw error;
    }
  };
}

/**
 * Returns the HMAC secret with which a sender that signs may also send reports.
 * @throws UsageError if the flags give credentials of a legacy sender too.
 */
async function reportsOf(
  { reportsSecretFile: file, reportsSecretEnv: env }: SenderFlags,
  auth: Sender['auth'],
  context: CliContext,
): Promise<ReportsAuth | undefined> {
  const secret = await readSecret({ file, env }, context);
  if (secret !== undefined && auth) {
    throw new UsageError(
      '--reports-secret: this seller signs, and --hmac-secret or --bearer-token is for one that does not. Give one of them.',
    );
  }
  return secret === undefined ? undefined : { reports: { secret } };
}

const isSigned = ({ headers }: Capture): boolean =>
  headers.some(([name]) => /^signature(-input)?$/i.test(name));

function ofCapture(
  capture: Capture,
  { fromFlags, reports }: { readonly fromFlags: readonly Jwk[]; readonly reports: ReportsAuth | undefined },
  shape: ShapeContext,
): Configured {
  if (capture.vector) return ofVector(capture.vector, fromFlags, shape);
  if (fromFlags.length === 0 && reports && !isSigned(capture)) return { senders: [{ agentUrl: NO_AGENT }] };
  if (fromFlags.length === 0) throw new UsageError(NO_KEYS);
  return { senders: [{ agentUrl: NO_AGENT, pins: distinct(fromFlags) }] };
}
