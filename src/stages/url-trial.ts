// If a signature fails with a known key, finds the URL that was signed, to tell a wrong `publicUrl` from a forgery
// (verification.md §2.34).
// Made by `misconfiguration.ts`. It accepts no delivery and fetches nothing; with a finding the answer is 503, not
// 401.

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

/** Results of the trials for one sender. */
interface Trials {
  /** Index of the key to try next, if a sender has several keys with one `kid`. */
  nextKey: number;
  /**
   * The form of the URL for which a signature verified. It is used until a signature verifies for the configured
   * URL.
   */
  found: UrlForm | undefined;
}

/** Most senders remembered. For a forgotten sender the trial begins again. */
const MAX_SENDERS = 10_000;

interface UrlTrialContext {
  readonly parts: SetUpParts;
  readonly known: BaseKnowledge;
  readonly pace: TrialPace;
  /** Keyed by agent URL. */
  readonly trials: Map<string, Trials>;
}

/** The URL that was signed, and the key that verified it. */
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
 * Returns the first form of the URL for which a key verifies. Forms that give the same URL are tried once; the
 * configured URL is not tried.
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
  // An earlier finding is dropped once a signature has verified for the configured URL.
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
 * Reports the URL that was signed. It may also be another receiver's, because only the owner knows the URL that the
 * seller was given.
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
 * After check 10 failed with these keys, tries the signature for other URLs that the request gives evidence of
 * (verification.md §2.34). Accepts no delivery and fetches nothing.
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
 * After check 10 failed with these keys, tries the URL as it was before a platform percent-encoded it
 * (verification.md §2.34). A request with a known key id costs at most seven verifications per key. They are not
 * limited further, because a sender that verified before may use such a URL at any time.
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
