import { orLate } from '../shared/time-limits.ts';
import type { RaiseAlarm } from '../shared/alarms.ts';
import type { Target } from '../auth/auth-contract.ts';
import { canonicalOrUndefined, pathAndQuery, type PublicUrl } from '../config/public-url.ts';
import type { Config } from '../config/resolve-options.ts';
import { MAX_SENDERS } from '../config/sender-source.ts';
import type { Head } from '../shared/delivery.ts';
import { ConfigError, Fault, isOfKind, textOf } from '../shared/errors.ts';
import type { RefusedCode } from '../shared/codes.ts';
import { type Refusal, refused, type Unavailability, unavailable } from '../shared/outcome.ts';
import type { KeyResolver } from '../keys/key-resolver.ts';
import type { Protocols } from '../shared/wire-names.ts';
import type { SenderEntry } from '../config/sender-entry.ts';
import type { Guarded } from './guard.ts';
import { isThenable } from '../shared/realms.ts';
import { hmacSecretsOf } from '../auth/credentials.ts';
import { readSignatureFields } from '../auth/rfc9421/checks.ts';
import { MAX_URL_BYTES, printableName } from '../codec/printable.ts';

/** A delivery whose URL, possible senders and scheme are known: from configuration, never from headers or body. */
export interface Selected {
  readonly kind: 'selected';
  readonly delivery: Head;
  readonly target: Target;
  /** Not empty; all of one scheme. */
  readonly senders: readonly [SenderEntry, ...SenderEntry[]];
  /** What a refusal comes to where more senders were given than are considered. */
  readonly refused?: (refusal: Refusal) => Refusal | Unavailability;
}

function prefixedTarget(publicUrl: Extract<PublicUrl, { kind: 'prefix' }>, url: string): Target | Refusal {
  const target = canonicalOrUndefined(publicUrl.origin + pathAndQuery(url));
  if (!target) {
    return refused('webhook_target_uri_malformed', 'the request target has no canonical form', 10);
  }
  return target;
}

/** @throws ConfigError where `publicUrl` is a prefix and the caller gave no `url`. */
export function requireUrl(publicUrl: PublicUrl, url: string | undefined): void {
  if (publicUrl.kind === 'exact' || typeof url === 'string') return;
  throw new ConfigError(
    'publicUrl ends in /*, so path and query come from the request: pass them, as { url: request.url } after the headers.',
  );
}

interface SelectContext {
  readonly config: Pick<Config, 'publicUrl' | 'senders'>;
  readonly protocols: Protocols;
  readonly keys: KeyResolver;
  readonly raiseAlarm: RaiseAlarm;
  /** Unix ms. */
  readonly now: () => number;
}

/**
 * No promise where the senders are at hand.
 * @throws Fault (rejects) `misconfigured` where the owner's own parts do not fit or fail.
 */
export function select(
  { delivery }: Guarded,
  context: SelectContext,
): Selected | Refusal | Promise<Selected | Refusal> {
  const { publicUrl, senders } = context.config;
  const target =
    publicUrl.kind === 'exact' ? publicUrl.target : prefixedTarget(publicUrl, delivery.url ?? '/');
  if ('kind' in target) return target;
  if (publicUrl.kind === 'prefix' && !target.targetUri.startsWith(publicUrl.prefix)) {
    return refuseStray(delivery, publicUrl, context);
  }
  const found = senders.forUrl(target.targetUri);
  // A list is there at once; only a function's promise needs a timer.
  return isThenable(found)
    ? inTime(found).then(
        (senders) => selectedOf(delivery, target, senders, context),
        (error: unknown) => sendersFailed(error, target, context),
      )
    : selectedOf(delivery, target, found, context);
}

function isWithinLimit(senders: readonly SenderEntry[]): senders is Selected['senders'] {
  return senders.length > 0 && senders.length <= MAX_SENDERS;
}

/** A look-up that hangs would hold the delivery, and `stop()`, without end. Ms. */
const SENDERS_DEADLINE_MS = 5_000;

const inTime = <T>(work: Promise<T>): Promise<T> =>
  orLate(work, SENDERS_DEADLINE_MS, () => new Error(`no answer after ${SENDERS_DEADLINE_MS} ms`));

const nameOf = ({ targetUri }: Target): string => printableName(targetUri, MAX_URL_BYTES);

/** @throws Fault, always: `misconfigured`, or what the store of registrations says of itself. */
function sendersFailed(error: unknown, target: Target, { raiseAlarm }: SelectContext): never {
  if (isOfKind(error, Fault) && error.code !== 'misconfigured') throw error;
  const message = `the senders function failed for ${nameOf(target)}: ${textOf(error)}`;
  raiseAlarm({ code: 'senders_failed', message });
  throw new Fault('misconfigured', message, { cause: error });
}

function selectedOf(
  delivery: Head,
  target: Target,
  senders: readonly SenderEntry[],
  { raiseAlarm }: SelectContext,
): Selected | Refusal {
  if (isWithinLimit(senders)) return { kind: 'selected', delivery, target, senders };
  const [first, ...others] = senders.slice(0, MAX_SENDERS);
  if (!first) {
    return refused('webhook_signature_key_unknown', `no sender is registered for ${nameOf(target)}`, 7);
  }
  raiseAlarm({ code: 'misconfigured', message: TOO_MANY, url: nameOf(target) });
  return { kind: 'selected', delivery, target, senders: [first, ...others], refused: ofAnother };
}

const TOO_MANY = `the senders function returned more than ${MAX_SENDERS} senders for one URL: only the first ${MAX_SENDERS} are considered, and a delivery that none of them explains is answered 503. Give each seller its own path (publicUrl: '…/*').`;

/** Refusals that say of the senders that were considered that it is none of theirs. */
const UNEXPLAINED: ReadonlySet<RefusedCode> = new Set([
  'webhook_signature_key_unknown',
  'webhook_signature_key_purpose_invalid',
  'webhook_signature_key_revoked',
  'webhook_target_uri_malformed',
  'webhook_signature_invalid',
]);

/** What the first of them do not explain may be another's: our owner's fault, and not the seller's (verification.md §5.9). */
function ofAnother(refusal: Refusal): Refusal | Unavailability {
  if (!UNEXPLAINED.has(refusal.code)) return refusal;
  return unavailable('misconfigured', `${TOO_MANY} Here: ${refusal.detail}`);
}

type Prefix = Extract<PublicUrl, { kind: 'prefix' }>;

/** Whether it has the field of a legacy scheme that a sender is registered with. */
function hasLegacyField({ headers }: Head, senders: readonly SenderEntry[], protocols: Protocols): boolean {
  return senders.some(({ auth }) => {
    if (auth.scheme === 'bearer') return headers.has(auth.header ?? 'authorization');
    if (hmacSecretsOf(auth).length === 0) return false;
    return protocols.some(({ hmacSignatureHeader }) => headers.has(hmacSignatureHeader));
  });
}

/** Whether it names a key of a registered sender; looked for as for any delivery. */
async function hasKnownKey(
  { headers }: Head,
  senders: readonly SenderEntry[],
  { keys, now }: SelectContext,
): Promise<boolean> {
  const fields = readSignatureFields(headers);
  const keyid = fields.kind === 'parsed' ? fields.input.parameters.keyid : undefined;
  const signing = senders.filter(({ auth }) => auth.scheme === 'signature');
  if (keyid === undefined || signing.length === 0) return false;
  const { candidates } = await keys.find(keyid, { senders: signing, arrivedAt: now() });
  return candidates.length > 0;
}

/** What sellers can have been given: the path as received, or that with as much of the prefix as can have been cut off. */
function meantUrls({ url = '/' }: Head, { origin, prefix }: Prefix): ReadonlySet<string> {
  const received = pathAndQuery(url);
  const path = prefix.slice(origin.length);
  const cut = Array.from(path.matchAll(/\//g), ({ index }) => index)
    .filter((at) => received.startsWith(path.slice(at)))
    .map((at) => path.slice(0, at));
  const meant = ['', ...cut].map((lost) => canonicalOrUndefined(origin + lost + received)?.targetUri);
  return new Set(meant.filter((target) => target !== undefined));
}

/** Who may have sent it: a function of the owner's knows them by the URL that they were given. */
async function possibleSenders(
  delivery: Head,
  publicUrl: Prefix,
  { config }: SelectContext,
): Promise<readonly SenderEntry[]> {
  const { fixed, forUrl } = config.senders;
  if (fixed) return fixed;
  // One that throws for a path that it does not know says the same as one that gives nobody.
  const ask = async (targetUri: string): Promise<readonly SenderEntry[]> =>
    inTime((async () => forUrl(targetUri))()).catch(() => []);
  return (await Promise.all(Array.from(meantUrls(delivery, publicUrl), ask))).flat();
}

/**
 * A request whose path is not under `publicUrl` (verification.md §4.15). A router or proxy of ours cut or added one, and the seller must not lose
 * the event by it: 503. It is an alarm only where a registered sender may have sent it, so that strangers raise none.
 * @throws Fault (rejects) `misconfigured`, always.
 */
async function refuseStray(delivery: Head, publicUrl: Prefix, context: SelectContext): Promise<never> {
  const message = `the request target is not under publicUrl ${publicUrl.prefix}*: pass the whole path that sellers call (Express: req.originalUrl; nginx: proxy_pass without a path), or correct publicUrl`;
  const senders = await possibleSenders(delivery, publicUrl, context);
  if (
    hasLegacyField(delivery, senders, context.protocols) ||
    (await hasKnownKey(delivery, senders, context))
  ) {
    context.raiseAlarm({ code: 'misconfigured', message });
  }
  throw new Fault('misconfigured', message);
}
