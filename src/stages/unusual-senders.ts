import type { RaiseAlarm } from '../alarms.ts';
import type { Target } from '../auth/contract.ts';
import { hmacSecretsOf } from '../auth/credentials.ts';
import { readSignatureFields } from '../auth/rfc9421/checks.ts';
import { MAX_URL_BYTES, printableName } from '../codec/printable.ts';
import { canonicalOrUndefined, pathAndQuery, type PublicUrl } from '../config/public-url.ts';
import { MAX_SENDERS } from '../config/senders.ts';
import type { Head } from '../delivery.ts';
import { Fault, isOfKind, textOf } from '../errors.ts';
import { type Refusal, refused, type RefusedCode, type Unavailability, unavailable } from '../outcome.ts';
import type { Protocols } from '../protocol.ts';
import type { SenderEntry } from '../senders.ts';
import { inTime, type SelectContext, type Selected } from './selected.ts';

const nameOf = ({ targetUri }: Target): string => printableName(targetUri, MAX_URL_BYTES);

/** @throws Fault (rejects), always: `misconfigured`, or what the store of registrations says of itself. */
export async function sendersFailed(error: unknown, target: Target, raiseAlarm: RaiseAlarm): Promise<never> {
  if (isOfKind(error, Fault) && error.code !== 'misconfigured') throw error;
  const message = `the senders function failed for ${nameOf(target)}: ${textOf(error)}`;
  raiseAlarm({ code: 'senders_failed', message });
  throw new Fault('misconfigured', message, { cause: error });
}

/** No sender at a URL, or more than are considered. */
export function unusualSenders(
  delivery: Head,
  target: Target,
  senders: readonly SenderEntry[],
  { raiseAlarm }: { readonly raiseAlarm: RaiseAlarm },
): Selected | Refusal {
  const [first, ...others] = senders.slice(0, MAX_SENDERS);
  if (!first) {
    return refused('webhook_signature_key_unknown', `no sender is registered for ${nameOf(target)}`, 7);
  }
  raiseAlarm({ code: 'misconfigured', message: TOO_MANY, url: nameOf(target) });
  return { kind: 'selected', delivery, target, senders: [first, ...others], refused: ofAnother };
}

const TOO_MANY = `the senders function gave more than ${MAX_SENDERS} for one URL: the first ${MAX_SENDERS} are considered, and what none of them explains gets 503. Give each seller a path of its own (publicUrl: '…/*') and return the one whose path it is.`;

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
export async function refuseStray(delivery: Head, publicUrl: Prefix, context: SelectContext): Promise<never> {
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
