// Searches the mistake that explains a wrong signature: another key, encoding, signature base or URL. `causes.ts` calls
// it for checks 7 (the key is known) and 10 (the signature verifies).
import type { Target } from '../../auth/auth-contract.ts';
import { readSignatureFields } from '../../auth/rfc9421/checks.ts';
import { compareHost, receivedAuthority } from '../../auth/rfc9421/host.ts';
import { signatureBase } from '../../auth/rfc9421/signature-base.ts';
import { canonicalOrUndefined } from '../../config/public-url.ts';
import { formedUrl, URL_FORMS } from '../../config/public-url-forms.ts';
import type { VerifyKey } from '../../crypto/engine.ts';
import { fieldValue } from '../../shared/delivery.ts';
import { adviceFor } from './advice.ts';
import { type Case, type Change, CUT_SHORT, type Finding, type Look, unknown } from './explain-case.ts';
import { byteForms, sequenceText } from './header-forms.ts';
import { partsOf, urlChoices } from './url-rewrites.ts';

/** A key that may have made the signature. */
interface NamedKey {
  readonly kid: string;
  readonly key: VerifyKey;
}

/** One guess about how the seller made the signature. For absent members, the receiver's own values are used. */
interface Trial {
  readonly base?: string;
  readonly signature?: Uint8Array;
  readonly key?: NamedKey;
  readonly changes: readonly Change[];
}

/**
 * A difference of the signed signature base from the receiver's: a mistake of the signer, or a part that was changed in
 * transit.
 */
type BaseSlip = Change & { readonly edit: (base: string) => string };

/** Mistakes in the lines of the signature base (RFC 9421 §2.5). */
const BASE_SLIPS: readonly BaseSlip[] = [
  {
    cause: 'base-trailing-newline',
    says: 'The signature base ends in a line feed.',
    fix: 'The seller has to sign the base without a line feed after its last line (RFC 9421 §2.5).',
    edit: (base) => `${base}\n`,
  },
  {
    cause: 'base-line-ends',
    says: 'The lines of the signature base end in CR LF.',
    fix: 'The seller has to join the lines of the base with LF alone (RFC 9421 §2.5).',
    edit: (base) => base.replaceAll('\n', '\r\n'),
  },
  {
    cause: 'method-case',
    says: 'The signature base has @method in lower case.',
    fix: 'The seller has to sign "POST" (RFC 9421 §2.2.1).',
    edit: (base) => base.replace(/^"@method": .*$/m, (line) => line.toLowerCase()),
  },
];

/** Values of `Content-Type` that the seller may have sent, before a proxy or framework wrote its own. */
const TYPES = [
  'application/json',
  'application/json; charset=utf-8',
  'application/json;charset=utf-8',
  'application/json;charset=UTF-8',
  'application/json; charset=UTF-8',
];

const typeSlips = (own: string | undefined): BaseSlip[] =>
  TYPES.map((type) => ({
    cause: 'content-type-changed',
    says: `Content-Type was signed as ${JSON.stringify(type)} and arrived as ${JSON.stringify(own)}.`,
    fix: 'Keep the proxy or gateway in front of the receiver from rewriting Content-Type.',
    edit: (base) => base.replace(/^"content-type": .*$/m, `"content-type": ${type}`),
  }));

/**
 * Mistakes of sellers that sign a URL that is not canonical (verification.md §4.1 to §4.8). They sign the URL as typed,
 * or with the default port of its scheme.
 */
function urlSlips({ target: { targetUri, authority }, input }: Case): BaseSlip[] {
  const [, origin = '', typed = '', rest = ''] = /^([^/]*\/\/)([^/?#]*)([^#]*)/.exec(input.url) ?? [];
  const ported = authority + (targetUri.startsWith('https:') ? ':443' : ':80');
  const uris = [targetUri, origin + typed + rest, targetUri.replace(authority, () => ported)];
  const pairs = uris.flatMap((uri) => [authority, typed, ported].map((name) => [uri, name] as const));
  return pairs.map(([uri, name]) => ({
    cause: 'not-canonical',
    says: `The seller signed @target-uri ${uri} and @authority ${name}, which are not canonical.`,
    fix: `The seller has to sign @target-uri ${targetUri} and @authority ${authority}; until then give it a canonical URL.`,
    edit: (base) =>
      base
        .replace(/^"@target-uri": .*$/m, () => `"@target-uri": ${uri}`)
        .replace(/^"@authority": .*$/m, () => `"@authority": ${name}`),
  }));
}

/** The text that says that the receiver itself reports such a wrong URL (verification.md §2.34). */
const FOUND_BY_RECEIVER =
  'Until a delivery of this sender has verified, the receiver reports this itself: 503 misconfigured, alarm public_url_mismatch.';
const FOUND_HERE_ALONE = 'The receiver cannot find this by itself: it answers 401.';

function* urlTrials(made: Case, baseOf: (target: Target) => string | undefined): Generator<Trial> {
  const { capture } = made.input;
  const parts = partsOf(made.target.targetUri);
  if (!parts) return;
  const captured = capture.url === undefined ? undefined : partsOf(capture.url)?.authority;
  const { headers } = made.request.delivery;
  const tried = receiverTries(made);
  for (const choices of urlChoices({ parts, headers, target: capture.target, captured })) {
    const [scheme, authority, path, query] = choices.map(({ text }) => text);
    const target = canonicalOrUndefined(`${scheme}://${authority}${path}${query}`);
    const base = target && baseOf(target);
    if (!target || base === undefined) continue;
    const mended =
      parts.scheme === 'https' && scheme === 'http'
        ? `publicUrl has to be https: no receiver has ${target.targetUri}. Give the seller the https URL.`
        : `Set publicUrl to exactly the URL that the seller was given: '${target.targetUri}'. Behind a router that cuts the path, with a publicUrl that ends in /*, pass the whole path (Express: req.originalUrl).`;
    const fix = `${mended} ${tried.has(target.targetUri) ? FOUND_BY_RECEIVER : FOUND_HERE_ALONE}`;
    const changes = choices.flatMap(({ change }) => (change ? [{ ...change, fix }] : []));
    yield { base, changes };
  }
}

/**
 * Returns the canonical URLs that a receiver also tries if a signature fails for its own URL (verification.md §2.34).
 */
function receiverTries({ request, target }: Case): ReadonlySet<string> {
  const { delivery } = request;
  // If this URL is http, the receiver accepts http, and it does so for all forms of the URL.
  const allowLoopback = target.targetUri.startsWith('http:');
  const evidence = {
    // The URL is not parsed like the option `publicUrl`, because the option may refuse a captured URL.
    publicUrl: { kind: 'exact', target } as const,
    target,
    authority: receivedAuthority(delivery),
    requestTarget: delivery.url ?? '/',
    allowLoopback,
  };
  const formed = URL_FORMS.map((form) => formedUrl(form, evidence)?.target.targetUri);
  return new Set(formed.filter((uri) => uri !== undefined));
}

async function namedKeys({ context, request }: Case): Promise<NamedKey[]> {
  const keys: NamedKey[] = [];
  for (const jwk of request.senders.flatMap(({ pins = [] }) => pins)) {
    const key = await context.engine.importKey(jwk);
    if (typeof key !== 'string') keys.push({ kid: String(jwk['kid']), key });
  }
  return keys;
}

/**
 * The longest signature base that is tried, including its URL and covered fields: twice the length that Node accepts
 * for all header fields. Characters.
 */
const MOST_BASE = 32_768;

/**
 * Tries the usual mistakes, one at a time, until the signature verifies.
 * @returns the findings; empty if no mistake explains the signature, undefined if the request is too large to try.
 */
async function searchSignature(made: Case, step: string): Promise<readonly Finding[] | undefined> {
  const { headers, method, url = '' } = made.request.delivery;
  const { engine } = made.context;
  const fields = readSignatureFields(headers);
  if (fields.kind === 'refused') return [];
  const { components, raw, parameters } = fields.input;
  const baseOf = (target: Target): string | undefined =>
    signatureBase(components, { method, target, headers }, raw);
  const own = baseOf(made.target) ?? '';
  if (own.length + url.length > MOST_BASE) return undefined;
  const keys = await namedKeys(made);
  const named = keys.find(({ kid }) => kid === parameters.keyid);

  function* trials(): Generator<Trial> {
    for (const key of keys.filter(({ kid }) => kid !== parameters.keyid)) {
      const says = `The key ${JSON.stringify(key.kid)} signed, and keyid names ${JSON.stringify(parameters.keyid)}.`;
      const fix = `The seller has to put keyid="${key.kid}", or sign with the key that it names.`;
      yield { key, changes: [{ cause: 'wrong-kid', says, fix }] };
    }
    const text = sequenceText(fieldValue(headers, 'signature') ?? '', 'sig1') ?? '';
    for (const { bytes, change } of byteForms(text, 'Signature'))
      yield { signature: bytes, changes: [change] };
    const slips = [...BASE_SLIPS, ...typeSlips(fieldValue(headers, 'content-type')), ...urlSlips(made)];
    for (const { edit, ...change } of slips) yield { base: edit(own), changes: [change] };
    yield* urlTrials(made, baseOf);
  }

  for (const { base = own, signature = fields.signature, key = named, changes } of trials()) {
    if (!key || base.length > MOST_BASE) continue;
    if (await engine.verify(key.key, new TextEncoder().encode(base), signature)) {
      return changes.map((change) => ({ step, proved: true, fix: '', ...change }));
    }
  }
  return [];
}

/**
 * Explains why check 7 (the key is known) or 10 (the signature verifies) failed: searches the mistake in the signature.
 */
export const lookAtSignature: Look = async (made, step) => {
  const { request, target, context } = made;
  // Without keys nothing can be tried, so no mistake can be found.
  if (step.code === 'keys_unavailable') return [];
  const host = compareHost(request.delivery, target, context.hostCheck);
  if (host.kind === 'contradiction')
    return [
      unknown(step, host.detail, 'The sender or a proxy sent two different hosts; send one Host header.'),
    ];
  if (host.kind === 'differs' && step.fault === true && step.id === '10') {
    return [
      {
        step: step.id,
        cause: 'host-rewritten',
        says: `The signature is right, but a proxy of yours rewrote Host to ${host.received}.`,
        fix: "Let the proxy pass Host unchanged, or set hostCheck: 'off'.",
        proved: true,
      },
    ];
  }
  const found = await searchSignature(made, step.id);
  if (found && found.length > 0) return found;
  const none = 'None of the usual mistakes explains the signature.';
  return [
    adviceFor(step) ??
      unknown(
        step,
        found ? none : `${none} ${CUT_SHORT}`,
        'Compare the URL that you gave the seller, letter by letter (--url), the keys (proto-webhooks keys check), and whether a covered header was changed in transit.',
      ),
  ];
};
