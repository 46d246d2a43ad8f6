import type { Target } from '../../auth/contract.ts';
import type { CryptoEngine, VerifyKey } from '../../crypto/engine.ts';
import type { HeaderFields } from '../../delivery.ts';
import { fieldValue } from '../../delivery.ts';
import type { Change } from './finding.ts';
import { byteForms } from './signature-forms.ts';
import type { UrlEvidence } from './url-axes.ts';

/** A key that may have signed. */
export interface NamedKey {
  readonly kid: string;
  readonly key: VerifyKey;
}

/** A delivery whose signature does not verify, with everything that can be told about it. */
export interface Scene {
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
export interface Trial {
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

/** @returns trials with URLs that are no canonical ones. */
export function rawTrials(scene: Scene, plain: Trial): Trial[] {
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
export function* otherTrials(scene: Scene, plain: Trial): Generator<Trial> {
  yield* keyTrials(scene, plain);
  for (const { bytes, change } of byteForms(scene.signatureText, 'Signature')) {
    yield { ...plain, signature: bytes, changes: [change] };
  }
  for (const [edit, change] of BASE_EDITS) yield { ...plain, edit, changes: [change] };
  yield* typeTrials(scene, plain);
}
