// Finds the URL that a seller signed, if a signature fails although its key is known. So a wrong `publicUrl` can be
// told from a forgery (verification.md §2.34).
// Called by `misconfiguration.ts`. These functions accept no delivery and fetch nothing; if they find the URL, the
// answer is 503, not 401.

import type { HeadRequest, SetUpWatch, VerifiesFor } from '../auth/auth-contract.ts';
import { receivedAuthority } from '../auth/rfc9421/host.ts';
import { putBounded } from '../shared/bounded.ts';
import { MAX_URL_BYTES, printableName } from '../codec/printable.ts';
import { canonicalOrUndefined, pathAndQuery } from '../config/public-url.ts';
import {
  formedUrl,
  type FormedUrl,
  sentTargets,
  URL_FORMS,
  type UrlEvidence,
  type UrlForm,
} from '../config/public-url-forms.ts';
import type { Candidate } from '../keys/key-resolver.ts';
import type { Unavailability } from '../shared/outcome.ts';
import { urlAt } from './selected.ts';
import type { BaseKnowledge, SetUpParts, TrialPace } from './trial-pace.ts';

/** The state of the trials (tries of other forms of the URL) for one sender. */
interface Trials {
  /** Index of the key to try next, if a sender has several keys with one `kid`. */
  nextKey: number;
  /**
   * The form of the URL for which a signature of the sender verified. It is used until a signature verifies for the
   * configured URL.
   */
  found: UrlForm | undefined;
}

/** The largest number of senders that are remembered. For a forgotten sender the trials begin again. */
const MAX_SENDERS = 10_000;

interface UrlTrialContext {
  readonly parts: SetUpParts;
  readonly known: BaseKnowledge;
  readonly pace: TrialPace;
  /** The trials of each sender, by agent URL. */
  readonly trials: Map<string, Trials>;
}

/** The URL that the seller signed, and the key that verified the signature. */
interface Signed {
  readonly form: UrlForm;
  readonly url: FormedUrl;
  readonly signer: Candidate;
}

interface Delivered {
  readonly request: HeadRequest;
  /** The configured URLs for which the delivery may be meant. */
  readonly known: readonly string[];
  readonly evidence: UrlEvidence;
  readonly verifies: VerifiesFor;
}

/**
 * Returns the first form of the URL for which a key verifies the signature. Forms that give the same URL are tried
 * once; configured URLs are not tried.
 */
async function firstSigned(
  { known, evidence, verifies }: Delivered,
  forms: readonly UrlForm[],
  candidates: readonly Candidate[],
): Promise<Signed | undefined> {
  const seen = new Set(known);
  for (const form of forms) {
    const url = formedUrl(form, evidence);
    if (!url || seen.has(url.target.targetUri)) continue;
    seen.add(url.target.targetUri);
    const signer = await verifies(url.target, candidates);
    if (signer) return { form, url, signer };
  }
  return undefined;
}

/**
 * Tries all forms of the URL with one key. Publishers may pin several keys with one `kid`; each trial takes the
 * next key.
 */
async function tryForms(
  delivered: Delivered,
  trials: Trials,
  own: readonly Candidate[],
): Promise<Signed | undefined> {
  const at = trials.nextKey % own.length;
  trials.nextKey += 1;
  const signed = await firstSigned(delivered, URL_FORMS, own.slice(at, at + 1));
  trials.found = signed?.form;
  return signed;
}

async function trySender(
  { known, pace, trials }: UrlTrialContext,
  delivered: Delivered,
  agentUrl: string,
  own: readonly Candidate[],
): Promise<Signed | undefined> {
  // Once a signature of the sender has verified for the configured URL, forms that were found earlier no longer count.
  if (known.urlRight.has(agentUrl)) return undefined;
  const its =
    trials.get(agentUrl) ?? putBounded(trials, agentUrl, { nextKey: 0, found: undefined }, MAX_SENDERS);
  if (!its.found) {
    // Another trial may have found the signed URL while this one waited.
    const find = (): Promise<Signed | undefined> =>
      its.found ? firstSigned(delivered, [its.found], own) : tryForms(delivered, its, own);
    const signed = await pace.once(agentUrl, delivered.request.arrivedAt, find);
    if (signed) return signed;
  }
  return its.found && firstSigned(delivered, [its.found], own);
}

function bySender(candidates: readonly Candidate[]): ReadonlyMap<string, readonly Candidate[]> {
  const groups = new Map<string, Candidate[]>();
  for (const candidate of candidates) {
    const { agentUrl } = candidate.sender;
    const own = groups.get(agentUrl);
    if (own) own.push(candidate);
    else groups.set(agentUrl, [candidate]);
  }
  return groups;
}

/**
 * Answers 503 with an alarm that names the URL that was signed. That URL may also be another receiver's: only the owner
 * knows the URL that the seller was given.
 */
function mismatch(
  { parts }: UrlTrialContext,
  { target }: HeadRequest,
  { url, signer }: Signed,
): Unavailability {
  const sender = signer.sender.agentUrl;
  const signedUrl = printableName(url.target.targetUri, MAX_URL_BYTES);
  const meant = printableName(url.publicUrl, MAX_URL_BYTES);
  const fix = parts.config.bases.length > 1 ? `add ${meant} to publicUrl` : `set publicUrl to ${meant}`;
  const message = `${sender} signed for ${signedUrl}. If ${signedUrl} is what you gave ${sender}, ${fix}; if not, somebody replays another receiver's deliveries here: change nothing.`;
  const configuredUrl = printableName(target.targetUri, MAX_URL_BYTES);
  parts.raiseAlarm({ code: 'public_url_mismatch', sender, signedUrl, configuredUrl, message });
  return { kind: 'unavailable', code: 'misconfigured', check: 10, detail: message };
}

/**
 * Makes the function that is called after check 10 (the signature) failed. It tries the signature for other URLs that
 * the request gives evidence of (verification.md §2.34). It accepts no delivery and fetches nothing.
 */
export function urlTrial(
  parts: SetUpParts,
  known: BaseKnowledge,
  pace: TrialPace,
): SetUpWatch['signedElsewhere'] {
  const context: UrlTrialContext = { parts, known, pace, trials: new Map() };
  return async (request, candidates, verifies) => {
    const { delivery, target } = request;
    const requestTarget = delivery.url ?? '/';
    const { allowLoopback } = parts.config;
    const authority = receivedAuthority(delivery);
    const evidence = { publicUrl: known.base, allowLoopback, target, authority, requestTarget };
    const urls = parts.config.bases.flatMap((base) => urlAt(base, delivery.url) ?? []);
    const delivered = { request, evidence, verifies, known: [target, ...urls].map((url) => url.targetUri) };
    for (const [agentUrl, own] of bySender(candidates)) {
      const signed = await trySender(context, delivered, agentUrl, own);
      if (signed) return mismatch(context, request, signed);
    }
    return undefined;
  };
}

/**
 * Tries the URL as it was before a platform percent-encoded it, after check 10 (the signature) failed with these keys
 * (verification.md §2.34). A request with a known key id costs at most seven verifications per key. There is no other
 * limit, because a sender that verified before may use such a URL at any time.
 */
export async function reencoded(
  { base, raiseAlarm }: Pick<SetUpParts, 'raiseAlarm'> & Pick<BaseKnowledge, 'base'>,
  { delivery, target }: HeadRequest,
  candidates: readonly Candidate[],
  verifies: VerifiesFor,
): Promise<Unavailability | undefined> {
  if (base.kind === 'exact' || !delivery.urlNormalised) return undefined;
  for (const sent of sentTargets(pathAndQuery(delivery.url ?? '/'))) {
    const signed = canonicalOrUndefined(base.origin + sent);
    const signer = signed && (await verifies(signed, candidates));
    if (!signer) continue;
    const sender = signer.sender.agentUrl;
    const [signedUrl, seenUrl] = [signed, target].map((url) => printableName(url.targetUri, MAX_URL_BYTES));
    const message = `${sender} signed for ${signedUrl}, which this platform reports as ${seenUrl}. Give ${sender} a URL without such characters, or use an adapter that sees the request target: proto-webhooks/node, express, fastify, or hono on Node.`;
    raiseAlarm({ code: 'public_url_mismatch', sender, signedUrl, configuredUrl: seenUrl, message });
    return { kind: 'unavailable', code: 'misconfigured', check: 10, detail: message };
  }
  return undefined;
}
