import type { AuthRequest, VerifiesFor } from '../auth/contract.ts';
import { receivedAuthority } from '../auth/rfc9421/host-check.ts';
import { MAX_URL_BYTES, printableName } from '../codec/printable.ts';
import { formedUrl, URL_FORMS, type FormedUrl, type UrlEvidence, type UrlForm } from '../config/url-forms.ts';
import type { Candidate } from '../keys/contract.ts';
import type { Unavailability } from '../outcome.ts';
import { urlKnowledge, type SetUpContext, type UrlTrials } from './set-up.ts';

/** A sender's forms are tried once in this many ms, or whoever forges would have each of his signatures verified eight times. */
const EVERY_MS = 1_000;

/** The URL that was signed, and whose key says so. */
interface Signed {
  readonly form: UrlForm;
  readonly url: FormedUrl;
  readonly signer: Candidate;
}

interface UrlTrial {
  readonly context: SetUpContext;
  readonly request: AuthRequest;
  readonly evidence: UrlEvidence;
  readonly verifies: VerifiesFor;
}

/** The first of the forms for which a key verifies. Forms that come to one URL are tried once, the configured one never. */
async function firstSigned(
  { request, evidence, verifies }: UrlTrial,
  forms: readonly UrlForm[],
  candidates: readonly Candidate[],
): Promise<Signed | undefined> {
  const seen = new Set([request.target.targetUri]);
  for (const form of forms) {
    const url = formedUrl(form, evidence);
    if (!url || seen.has(url.target.targetUri)) continue;
    seen.add(url.target.targetUri);
    const signer = await verifies(url.target, candidates);
    if (signer) return { form, url, signer };
  }
  return undefined;
}

/** All forms, where it is the sender's turn again. Publishers may pin several keys under one `kid`: one a trial. */
async function tryForms(
  trial: UrlTrial,
  trials: UrlTrials,
  own: readonly Candidate[],
): Promise<Signed | undefined> {
  const { arrivedAt } = trial.request;
  const { triedAt, turn } = trials;
  if (triedAt !== undefined && Math.abs(arrivedAt - triedAt) < EVERY_MS) return undefined;
  trials.triedAt = arrivedAt;
  trials.turn = turn + 1;
  const at = turn % own.length;
  const work = firstSigned(trial, URL_FORMS, own.slice(at, at + 1));
  if (trial.context.shared) trials.running = work;
  const signed = await work;
  trials.running = undefined;
  trials.found = signed?.form;
  return signed;
}

async function trySender(
  trial: UrlTrial,
  agentUrl: string,
  own: readonly Candidate[],
): Promise<Signed | undefined> {
  const { urls } = trial.context;
  const known = urlKnowledge(urls, agentUrl);
  if (known === 'right') return undefined;
  // What comes with a burst is as good as its first.
  if (known.running) await known.running;
  return known.found ? firstSigned(trial, [known.found], own) : tryForms(trial, known, own);
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

/** Says which URL was signed. It may be another receiver's, too: only the owner knows which URL the seller was given. */
function mismatch({ context, request }: UrlTrial, { url, signer }: Signed): Unavailability {
  const sender = signer.sender.agentUrl;
  const signedUrl = printableName(url.target.targetUri, MAX_URL_BYTES);
  const meant = printableName(url.publicUrl, MAX_URL_BYTES);
  const message = `${sender} signed for ${signedUrl}. If ${signedUrl} is what you gave ${sender}, set publicUrl to ${meant}; if not, somebody replays another receiver's deliveries here: change nothing.`;
  const { targetUri } = request.target;
  context.raiseAlarm({ code: 'public_url_mismatch', sender, signedUrl, configuredUrl: targetUri, message });
  return { kind: 'unavailable', code: 'misconfigured', check: 10, detail: message };
}

/**
 * After check 10 failed under these keys: tries the signature for the URLs that the request gives evidence of
 * (verification.md §2.34). Accepts nothing and fetches nothing.
 */
export async function tryOtherUrls(
  context: SetUpContext,
  request: AuthRequest,
  candidates: readonly Candidate[],
  verifies: VerifiesFor,
): Promise<Unavailability | undefined> {
  const { delivery, target } = request;
  const evidence: UrlEvidence = {
    ...context.config,
    target,
    authority: receivedAuthority(delivery),
    requestTarget: delivery.url ?? '/',
  };
  const trial: UrlTrial = { context, request, evidence, verifies };
  for (const [agentUrl, own] of bySender(candidates)) {
    const signed = await trySender(trial, agentUrl, own);
    if (signed) return mismatch(trial, signed);
  }
  return undefined;
}
