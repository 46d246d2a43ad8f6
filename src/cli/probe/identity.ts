// Makes the keys with which a command signs available to the receiver under test. Also explains answers that suggest
// that the receiver lacks the keys. `proto-webhooks vectors probe` and `send` call it.
import { ConfigError } from '../../shared/errors.ts';
import { protocolFor } from '../../shared/wire-names.ts';
import type { Jwk } from '../../sender/sign.ts';
import { createFakeSeller } from '../../testing/fake-seller.ts';
import { publicJwk } from '../files.ts';
import { type ChainFlags, chainOf } from '../keys/keys-verb.ts';
import { type CliContext, UsageError } from '../shell.ts';
import type { ProbeResult } from './probe-kit.ts';

/** The way in which a receiver gets the public keys of the command. */
export interface Identity {
  readonly how: 'pins' | 'agent-url' | 'fake-seller';
  /** The configuration that the receiver needs, ready to paste. */
  readonly config: string;
  /**
   * Returns the number of document requests that the receiver has sent to this process; absent if the documents are
   * elsewhere.
   */
  readonly fetches?: () => number;
  /** Returns true if the receiver has requested the revocation list. Absent: this process serves no list. */
  readonly askedForList?: () => boolean;
  readonly close: () => Promise<void>;
}

export interface IdentityFlags {
  readonly agentUrl?: string;
  readonly fakeSeller?: number;
  readonly protocol?: string;
}

const nothing = async (): Promise<void> => undefined;

const isRevoked = (jwk: Jwk): boolean => String(jwk['kid']).endsWith('-revoked');

function pinned(keys: readonly Jwk[]): string {
  const revokedKids = keys.filter(isRevoked).map((jwk) => jwk['kid']);
  const revocation = revokedKids.length === 0 ? '' : `, revocation: ${JSON.stringify({ revokedKids })}`;
  const pins = keys.map((jwk) => `    ${JSON.stringify(publicJwk(jwk))},`).join('\n');
  return `senders: [{ agentUrl: 'https://probe.invalid/mcp'${revocation}, pins: [\n${pins}\n  ] }],`;
}

/** Starts a seller on loopback that publishes these keys. Revoked keys are on its revocation list. */
async function served(port: number, keys: readonly Jwk[], protocol: string | undefined): Promise<Identity> {
  protocolFor(protocol);
  const seller = await createFakeSeller({ port, ...(protocol !== undefined && { protocol }) }).catch(
    (error: unknown) => {
      if (error instanceof ConfigError) throw error;
      throw new UsageError(
        `--fake-seller: port ${port} cannot be used (${(error as NodeJS.ErrnoException).code}). Expected a free port, the one in the receiver's agentUrl.`,
      );
    },
  );
  seller.documents.set('/.well-known/jwks.json', { keys: keys.map(publicJwk) });
  const listPath = new URL(seller.revocationsUrl).pathname;
  const revoked = keys.filter(isRevoked).map((jwk) => String(jwk['kid']));
  if (revoked.length > 0) seller.revoke(revoked);
  return {
    how: 'fake-seller',
    config: `senders: [{ agentUrl: '${seller.agentUrl}' }],\nallowLoopback: true,`,
    fetches: () => seller.fetches(),
    ...(revoked.length > 0 && { askedForList: () => seller.fetches(listPath) > 0 }),
    close: seller.close,
  };
}

/**
 * Makes the keys available to the receiver in the way that the flags choose: as pins, at an agent URL or by a fake
 * seller.
 * @param keys the private keys.
 * @throws UsageError if the port of the fake seller cannot be used.
 */
export async function identityOf(flags: IdentityFlags, keys: readonly Jwk[]): Promise<Identity> {
  if (flags.fakeSeller !== undefined) return served(flags.fakeSeller, keys, flags.protocol);
  if (flags.agentUrl === undefined) return { how: 'pins', config: pinned(keys), close: nothing };
  return { how: 'agent-url', config: `senders: [{ agentUrl: '${flags.agentUrl}' }],`, close: nothing };
}

const HOW: Readonly<Record<Identity['how'], string>> = {
  pins: 'The receiver needs these keys as pins. Paste into its configuration:',
  'agent-url':
    'The receiver needs this agent, whose brand.json has to lead to the public keys (proto-webhooks keys check):',
  'fake-seller':
    'The receiver needs this agent, whose brand.json is served here during the run, and allowLoopback:',
};

/** The names of the test cases whose answers stand for all deliveries with a good signature. */
const GOOD: readonly string[] = ['tool-completed', 'agent-completed', 'report'];

/** The longest time for which a receiver remembers a failed fetch (verification.md §5.19). Ms. */
const REMEMBERED_MS = 60_000;

const OUTSIDE = '401 webhook_signature_window_invalid';

/**
 * The faults to report, by the one answer that every good delivery got. For 503, the fault is reported only if the
 * receiver knows the keys.
 */
const WRONG: Readonly<Record<string, (url: string) => string>> = {
  '401 webhook_signature_invalid': (url) =>
    `the receiver verifies for another URL than ${url}, or a proxy in front of it changes a covered header (Content-Type). Its publicUrl has to be exactly that URL.`,
  '401 webhook_target_uri_malformed': (url) =>
    `this URL has another host than its publicUrl. Its publicUrl has to be exactly ${url}, and a proxy in front of it has to pass Host.`,
  '401 webhook_signature_tag_invalid': () =>
    'the receiver accepts another protocol name. Give it by --protocol.',
  [OUTSIDE]: () => `the clock of this machine or the receiver's is wrong by more than a minute (NTP).`,
  '503': (url) =>
    `the receiver answers an unpublished key id with 401, so it has the keys. Most likely its publicUrl is not exactly ${url} (alarm public_url_mismatch, which names the URL), its clock is wrong (alarm clock_skew), or its store is down; its log says which.`,
};

/** Returns the one answer that all deliveries with a good signature got; undefined if they got different ones. */
function answerToGood(results: readonly ProbeResult[]): string | undefined {
  const answers = new Set(results.filter(({ name }) => GOOD.includes(name)).map(({ answered }) => answered));
  // If its store has no clock, a receiver cannot tell if its own clock is wrong. It then answers the third delivery
  // outside the time window with 503 `clock_skew`, which is not counted here.
  if (answers.has(OUTSIDE)) answers.delete('503');
  const [only] = answers;
  return answers.size === 1 ? only : undefined;
}

/**
 * Explains a run in which all good deliveries got the same answer and none was accepted. The receiver may not have
 * found the keys, or has another URL or another time.
 * @param url the URL to which deliveries were sent.
 * @param waitedMs the longest time that the probe waits for a receiver that remembers a failed fetch.
 * @param firstAnswer the answer to the good delivery by which the protocol name was chosen; undefined if there is only
 *   one name. For 30 s after it, a receiver answers 503 instead, because it cannot say yet that a key is unknown.
 */
export function hintOf(
  results: readonly ProbeResult[],
  {
    url,
    identity,
    waitedMs,
    firstAnswer,
  }: {
    readonly url: string;
    readonly identity: Identity;
    readonly waitedMs: number;
    readonly firstAnswer?: string | undefined;
  },
): string[] {
  const sent = results.filter(({ answered }) => answered !== '-');
  const unknown = '401 webhook_signature_key_unknown';
  const common = answerToGood(sent);
  const answer = common === '503' && firstAnswer === unknown ? unknown : common;
  if (answer === undefined) return [];
  const hasKeys = sent.some(({ name, answered }) => name === 'unknown-key' && answered === unknown);
  const wrong = answer === '503' && !hasKeys ? undefined : WRONG[answer];
  if (wrong) return [`Every good delivery was answered ${answer}: ${wrong(url)}`];
  if (answer !== '503' && answer !== unknown) return [];
  const faults = sent.filter(({ answered }) => answered.startsWith('503'));
  const what =
    answer === unknown
      ? `Every good delivery was answered ${unknown}: the receiver does not know these keys.`
      : `${faults.length === sent.length ? 'Every answer' : 'The answer to every good delivery'} was 503: most likely the receiver cannot find the keys (or its publicUrl is not exactly ${url}, its clock is wrong, or its store is down; its log says which).`;
  return [what, ...fetchHint(identity.fetches?.(), waitedMs), HOW[identity.how], identity.config];
}

/**
 * Returns the hint about the receiver's requests for documents.
 * @param asked the number of these requests; undefined if it is unknown.
 */
function fetchHint(asked: number | undefined, waitedMs: number): string[] {
  if (asked === undefined) return [];
  if (asked > 0) return [`Documents were requested here ${asked} times.`];
  const remembers =
    waitedMs < REMEMBERED_MS ? ', or it remembers for up to 60 s that nothing was served here' : '';
  return [
    `Nothing was requested here: the receiver does not have this agentUrl, or not allowLoopback${remembers}.`,
  ];
}

/**
 * Fetches the documents that lead from the agent URL to its keys, as the receiver must. Returns the faults that this
 * machine sees.
 */
export async function chainHints(
  agentUrl: string,
  flags: Pick<ChainFlags, 'protocol' | 'edition'>,
  keys: readonly Jwk[],
  context: CliContext,
): Promise<string[]> {
  const allowLoopback = agentUrl.startsWith('http:');
  const { protocol, edition } = flags;
  const named = { ...(protocol !== undefined && { protocol }), ...(edition && { edition }) };
  try {
    const { faults, jwks } = await chainOf(agentUrl, { allowLoopback, ...named }, context);
    const published = new Set(jwks.map((jwk) => jwk['kid']));
    const missing = keys.map((jwk) => String(jwk['kid'])).filter((kid) => !published.has(kid));
    if (faults.length > 0) return [...faults];
    if (missing.length > 0) return [`Its JWKS lacks ${missing.join(', ')}.`];
    return ['From here its brand.json leads to these keys.'];
  } catch (error) {
    if (error instanceof UsageError) return [error.message];
    throw error;
  }
}
