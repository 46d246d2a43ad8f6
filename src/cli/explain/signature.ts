import type { Target } from '../../auth/contract.ts';
import { readSignatureFields } from '../../auth/rfc9421/checks.ts';
import { compareHost, receivedAuthority } from '../../auth/rfc9421/host.ts';
import { signatureBase } from '../../auth/rfc9421/signature-base.ts';
import { canonicalOrUndefined, publicUrlOf } from '../../config/public-url.ts';
import { formedUrl, URL_FORMS } from '../../config/url-forms.ts';
import type { CryptoEngine, VerifyKey } from '../../crypto/engine.ts';
import { fieldValue, type HeaderFields } from '../../delivery.ts';
import { adviceFor } from './advice.ts';
import {
  type Budget,
  type Case,
  type Change,
  createBudget,
  type Finding,
  type Look,
  unknown,
  withNote,
} from './case.ts';
import { byteForms, sequenceText } from './header-forms.ts';
import { partsOf, urlChoices, type UrlEvidence } from './url-forms.ts';

/** A key that may have signed. */
interface NamedKey {
  readonly kid: string;
  readonly key: VerifyKey;
}

/** A delivery whose signature does not verify, with everything that can be told about it. */
interface Scene {
  readonly method: string;
  readonly headers: HeaderFields;
  /** As configured, canonical. */
  readonly target: Target;
  /** As configured, as typed. */
  readonly url: string;
  readonly evidence: UrlEvidence;
  /** URLs that a receiver finds by itself (verification.md §2.34). */
  readonly tried: ReadonlySet<string>;
  readonly components: readonly string[];
  /** `@signature-params` as received. */
  readonly params: string;
  readonly signature: Uint8Array;
  /** As received, between its colons. */
  readonly signatureText: string;
  readonly keyid: string;
  readonly keys: readonly NamedKey[];
  readonly engine: CryptoEngine;
}

/** One way in which the seller may have made the signature. */
interface Trial {
  readonly target: Target;
  readonly headers: HeaderFields;
  readonly signature: Uint8Array;
  readonly key: NamedKey;
  readonly edit: (base: string) => string;
  readonly changes: readonly Change[];
}

function keyTrials(scene: Scene, plain: Trial): Trial[] {
  return scene.keys
    .filter(({ kid }) => kid !== scene.keyid)
    .map((key) => ({
      ...plain,
      key,
      changes: [
        {
          cause: 'wrong-kid',
          says: `The key ${JSON.stringify(key.kid)} signed, and keyid names ${JSON.stringify(scene.keyid)}.`,
          fix: `The seller has to put keyid="${key.kid}", or sign with the key that it names.`,
        },
      ],
    }));
}

/** RFC 9421 §2.5, slips of signers. */
const BASE_EDITS: readonly (readonly [(base: string) => string, Change])[] = [
  [
    (base) => `${base}\n`,
    {
      cause: 'base-trailing-newline',
      says: 'The signature base ends in a line feed.',
      fix: 'The seller has to sign the base without a line feed after its last line (RFC 9421 §2.5).',
    },
  ],
  [
    (base) => base.replaceAll('\n', '\r\n'),
    {
      cause: 'base-line-ends',
      says: 'The lines of the signature base end in CR LF.',
      fix: 'The seller has to join the lines of the base with LF alone (RFC 9421 §2.5).',
    },
  ],
  [
    (base) =>
      base.replace(/^("@method": )(.*)$/m, (_, name: string, method: string) => name + method.toLowerCase()),
    {
      cause: 'method-case',
      says: 'The signature base has @method in lower case.',
      fix: 'The seller has to sign "POST" (RFC 9421 §2.2.1).',
    },
  ],
];

/** `Content-Type` as the seller may have had it, before a proxy or framework wrote its own. */
const TYPES = [
  'application/json',
  'application/json; charset=utf-8',
  'application/json;charset=utf-8',
  'application/json;charset=UTF-8',
  'application/json; charset=UTF-8',
];

function typeTrials(scene: Scene, plain: Trial): Trial[] {
  const own = fieldValue(scene.headers, 'content-type');
  return TYPES.filter((type) => type !== own).map((type) => ({
    ...plain,
    headers: new Map([...scene.headers, ['content-type', [type]]]),
    changes: [
      {
        cause: 'content-type-changed',
        says: `Content-Type was signed as ${JSON.stringify(type)} and arrived as ${JSON.stringify(own)}.`,
        fix: 'Keep the proxy or gateway in front of the receiver from rewriting Content-Type.',
      },
    ],
  }));
}

/** URLs that the seller signed without making them canonical (verification.md §4.1 to §4.8). */
function rawTargets({ url, target }: Scene): Target[] {
  const port = target.targetUri.startsWith('https:') ? ':443' : ':80';
  const { authority } = target;
  const [, scheme = '', typed = '', rest = ''] = /^([^/]*\/\/)([^/?#]*)([^#]*)/.exec(url) ?? [];
  const canonicalRest = target.targetUri.slice(target.targetUri.indexOf(authority) + authority.length);
  const raw = { targetUri: scheme + typed + rest, authority: typed };
  const ported = { targetUri: `${scheme}${authority}${port}${canonicalRest}`, authority: authority + port };
  return [
    raw,
    { ...target, authority: typed },
    { ...target, targetUri: raw.targetUri },
    ported,
    { ...target, authority: ported.authority },
    { ...target, targetUri: ported.targetUri },
    { ...target, authority: authority.replace(/:\d+$/, '') },
    { ...target, targetUri: target.targetUri.replace(/\/$/, '') },
  ].filter((made) => made.targetUri !== target.targetUri || made.authority !== authority);
}

/** @returns trials with URLs that are not canonical. */
function rawTrials(scene: Scene, plain: Trial): Trial[] {
  return rawTargets(scene).map((target) => ({
    ...plain,
    target,
    changes: [
      {
        cause: 'not-canonical',
        says: `The seller signed @target-uri ${target.targetUri} and @authority ${target.authority}, which are not canonical.`,
        fix: `The seller has to sign @target-uri ${scene.target.targetUri} and @authority ${scene.target.authority}; until then give it a URL that is canonical as it stands.`,
      },
    ],
  }));
}

/** Slips that have nothing to do with the URL. */
function* otherTrials(scene: Scene, plain: Trial): Generator<Trial> {
  yield* keyTrials(scene, plain);
  for (const { bytes, change } of byteForms(scene.signatureText, 'Signature')) {
    yield { ...plain, signature: bytes, changes: [change] };
  }
  for (const [edit, change] of BASE_EDITS) yield { ...plain, edit, changes: [change] };
  yield* typeTrials(scene, plain);
}

/** What the receiver itself says of such a URL: verification.md §2.34. */
const FOUND_BY_RECEIVER =
  'Until a delivery of this sender has verified, the receiver says so itself: 503 misconfigured, alarm public_url_mismatch.';
const FOUND_HERE_ALONE = 'The receiver cannot find this by itself: it answers 401.';

const asIs = (base: string): string => base;

/** Bounds the search: about two seconds of Ed25519 on a slow machine. */
const MOST_TRIALS = 8_000;
/** What a trial costs, in bytes hashed: for itself, and for each character of its URL and base. */
const TRIAL_COST = 1_024;
const CHAR_COST = 8;
/** Of the URL, at once: a proxy that ends TLS, renames the host and cuts a prefix. */
const MOST_URL_CHANGES = 3;

async function verifies(
  { method, components, params, engine }: Scene,
  trial: Trial,
  budget: Budget,
): Promise<boolean> {
  const facts = { method, target: trial.target, headers: trial.headers };
  const base = signatureBase(components, facts, params);
  if (base === undefined || !budget.take(CHAR_COST * base.length)) return false;
  return engine.verify(trial.key.key, new TextEncoder().encode(trial.edit(base)), trial.signature);
}

function* urlTrials(scene: Scene, plain: Trial, budget: Budget): Generator<Trial> {
  for (const choices of urlChoices(scene.evidence, MOST_URL_CHANGES)) {
    const [scheme, authority, path, query] = choices.map(({ text }) => text);
    const length = choices.reduce((sum, { text }) => sum + text.length, 0);
    if (!budget.take(TRIAL_COST + CHAR_COST * length)) return;
    const target = canonicalOrUndefined(`${scheme}://${authority}${path}${query}`);
    const known = target && scene.tried.has(target.targetUri) ? FOUND_BY_RECEIVER : FOUND_HERE_ALONE;
    const mended =
      scene.target.targetUri.startsWith('https:') && scheme === 'http'
        ? `publicUrl has to be https: no receiver has ${target?.targetUri}. Give the seller the https URL.`
        : `Set publicUrl to exactly the URL that the seller was given: '${target?.targetUri}'. Behind a router that cuts the path, with a publicUrl that ends in /*, pass the whole one (Express: req.originalUrl).`;
    const fix = `${mended} ${known}`;
    const changes = choices.flatMap(({ change }) => (change ? [{ ...change, fix }] : []));
    if (target && changes.length > 0) yield { ...plain, target, changes };
  }
}

function* trials(scene: Scene, budget: Budget): Generator<Trial> {
  const key = scene.keys.find(({ kid }) => kid === scene.keyid) ?? scene.keys[0];
  if (!key) return;
  const { target, headers, signature } = scene;
  const plain: Trial = { target, headers, signature, key, edit: asIs, changes: [] };
  yield* otherTrials(scene, plain);
  yield* urlTrials(scene, plain, budget);
  yield* rawTrials(scene, plain);
}

/**
 * Tries the usual slips until one of them, or a combination of those in a URL, makes the signature verify.
 * @returns what it was, or undefined.
 */
async function searchSignature(
  scene: Scene,
  step: string,
  budget: Budget,
): Promise<readonly Finding[] | undefined> {
  let left = MOST_TRIALS;
  for (const trial of trials(scene, budget)) {
    if (left-- <= 0) return undefined;
    if (await verifies(scene, trial, budget)) {
      return trial.changes.map((change) => ({ step, proved: true, fix: '', ...change }));
    }
  }
  return undefined;
}

/** URLs for which a receiver tries a signature that fails for its own: canonical (verification.md §2.34). */
function receiverTries({ request, target }: Case): ReadonlySet<string> {
  const { delivery } = request;
  // What takes http takes it for `publicUrl` and for every form of it.
  const allowLoopback = target.targetUri.startsWith('http:');
  const evidence = {
    publicUrl: publicUrlOf(target.targetUri, allowLoopback),
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

async function sceneOf(made: Case): Promise<Scene | undefined> {
  const { input, target, context, request } = made;
  const { headers, method } = request.delivery;
  const fields = readSignatureFields(headers);
  const parts = partsOf(target.targetUri);
  if (fields.kind === 'refused' || !parts) return undefined;
  const captured = input.capture.url === undefined ? undefined : partsOf(input.capture.url)?.authority;
  return {
    method,
    headers,
    target,
    url: input.url,
    evidence: { parts, headers, target: input.capture.target, captured },
    tried: receiverTries(made),
    components: fields.input.components,
    params: fields.input.raw,
    signature: fields.signature,
    signatureText: sequenceText(fieldValue(headers, 'signature') ?? '', 'sig1') ?? '',
    keyid: fields.input.parameters.keyid ?? '',
    keys: await namedKeys(made),
    engine: context.engine,
  };
}

/** Checks 7 and 10. */
export const lookAtSignature: Look = async (made, step) => {
  const { request, target, context } = made;
  // The keys were never tried: nothing that was signed otherwise is to be found.
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
        says: `The signature is right, and a proxy of yours rewrote Host to ${host.received}.`,
        fix: "Let the proxy pass Host unchanged, or set hostCheck: 'off'.",
        proved: true,
      },
    ];
  }
  const scene = await sceneOf(made);
  // Half of it at most: the body has to be looked into too.
  const budget = createBudget(made.budget.left() / 2, made.budget);
  const found = scene && (await searchSignature(scene, step.id, budget));
  if (found) return found;
  const advice = adviceFor(step);
  return [
    advice ??
      unknown(
        step,
        withNote('None of the usual slips makes the signature verify.', budget),
        'Compare the URL that the seller was given, letter by letter (--url), the keys (proto-webhooks keys check), and whether a header that is covered was changed on the way.',
      ),
  ];
};
