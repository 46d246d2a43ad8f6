// Checks 1 to 6 of a signature, which need only the headers and the time, no key (verification.md §2.1 to §2.6).
// Called by `verify.ts`, by `verifySignature`, and for advice about refusals.

import { decodeBase64, fastBytes } from '../../codec/encoding.ts';
import { quoted } from '../../codec/printable.ts';
import { ALGORITHMS, type SignatureAlgorithm } from '../../crypto/algorithms.ts';
import { fieldValue, type HeaderFields } from '../../shared/delivery.ts';
import type { AuthenticationCode } from '../../shared/codes.ts';
import { type Refusal, refused } from '../../shared/outcome.ts';
import type { Protocol, Protocols } from '../../shared/wire-names.ts';
import type { SignatureWindow } from '../auth-contract.ts';
import { type ContentDigest, readContentDigest } from './content-digest.ts';
import { coversRequired, isCoverable, REQUIRED_COMPONENTS } from './signature-base.ts';
import {
  LABEL,
  parseSignatureInput,
  readDictionary,
  type SignatureInput,
  type SignatureParameters,
} from './signature-input.ts';

/** Longest time from `created` to `expires`. Seconds. */
export const MAX_VALIDITY_S = 300;
/** Largest difference between the clocks of sender and receiver that is tolerated. Seconds. */
export const SKEW_S = 60;

/** True if the time window of check 5 is over: `expires` and the tolerated skew have passed. */
export function windowEnded({ expires }: Pick<SignatureWindow, 'expires'>, nowMs: number): boolean {
  return expires * 1000 < nowMs - SKEW_S * 1000;
}

/**
 * Performs check 5 (the time window). Compares in ms: a nonce is remembered until just after the window's last ms.
 * After that no signature with the same nonce may be accepted.
 */
export function windowHolds(window: SignatureWindow, nowMs: number): boolean {
  const { created, expires } = window;
  return (
    expires > created &&
    expires - created <= MAX_VALIDITY_S &&
    created * 1000 <= nowMs + SKEW_S * 1000 &&
    !windowEnded(window, nowMs)
  );
}

/** The headers Signature-Input, Signature and Content-Digest, as check 1 parsed them. */
export interface SignatureFields {
  readonly kind: 'parsed';
  readonly input: SignatureInput;
  readonly signature: Uint8Array;
  /** The parsed `Content-Digest`. Undefined if the request has none; check 6 then refuses the request. */
  readonly digest: ContentDigest | undefined;
}

/** Headers that passed checks 1 to 6; only the key, the signature or the body may still be wrong. */
export interface CheckedSignature {
  readonly kind: 'checked';
  /** The protocol name in the tag, which decides the JWK member that states the key's purpose. */
  readonly protocol: Protocol;
  readonly components: readonly string[];
  /** The value of `@signature-params` as received. */
  readonly signatureParams: string;
  readonly parameters: Required<SignatureParameters> & { readonly alg: SignatureAlgorithm };
  readonly signature: Uint8Array;
  readonly digest: ContentDigest;
}

const MIN_NONCE_BYTES = 16;

const malformed = (detail: string): Refusal => refused('webhook_signature_header_malformed', detail, 1);

/**
 * Parses `sig1` of the header `Signature`, a dictionary of byte sequences (RFC 9421 §4.2). Returns a string that
 * describes the mistake if the header is not valid.
 */
function readSignature(field: string): Uint8Array | string {
  const fast = fastBytes(field, FAST_SIGNATURE);
  if (fast !== undefined) return fast;
  const members = readDictionary(field);
  if (typeof members === 'string') return members;
  if ([...members.values()].some((member) => member.base64 === undefined)) {
    return 'has a member that is not a byte sequence';
  }
  const base64 = members.get(LABEL)?.base64;
  if (base64 === undefined) return `lacks the label ${LABEL}`;
  return decodeBase64(base64) ?? 'is not base64';
}

const FAST_SIGNATURE = `${LABEL}=:`;

/**
 * The most characters of Signature-Input, Signature and Content-Digest together: four times what Node's server
 * accepts for all headers. A caller's own server may accept megabytes, and parsing them would block the event loop
 * for seconds.
 */
const MAX_FIELDS = 65_536;

/**
 * Performs check 1: Signature-Input and Signature are present and can be parsed, and so can Content-Digest. If
 * Content-Digest is absent, check 6 refuses the delivery.
 */
export function readSignatureFields(headers: HeaderFields): SignatureFields | Refusal {
  const inputField = fieldValue(headers, 'signature-input');
  const signatureField = fieldValue(headers, 'signature');
  if (inputField === undefined) return malformed('Signature-Input is absent.');
  if (signatureField === undefined) return malformed('Signature is absent.');
  const length =
    inputField.length + signatureField.length + (fieldValue(headers, 'content-digest')?.length ?? 0);
  if (length > MAX_FIELDS)
    return malformed(`Signature-Input, Signature and Content-Digest have ${length} characters.`);
  const input = parseSignatureInput(inputField);
  if (input.kind === 'refused') return input;
  const signature = readSignature(signatureField);
  if (typeof signature === 'string') return malformed(`Signature ${signature}.`);
  const digestLines = headers.get('content-digest');
  const digest = digestLines && readContentDigest(digestLines);
  if (typeof digest === 'string') return malformed(`Content-Digest ${digest}.`);
  return { kind: 'parsed', input, signature, digest };
}

type Complete = Required<SignatureParameters>;

/** Performs the first half of check 2: all six parameters are present. */
function isComplete(parameters: SignatureParameters): parameters is Complete {
  const { created, expires, nonce, keyid, alg, tag } = parameters;
  return (
    created !== undefined &&
    expires !== undefined &&
    nonce !== undefined &&
    keyid !== undefined &&
    alg !== undefined &&
    tag !== undefined
  );
}

/**
 * True for unpadded base64url of enough bytes. A nonce is compared as text and never decoded, so the unused trailing
 * bits are not checked.
 */
function isNonce(nonce: string): boolean {
  const bytes = Math.floor((nonce.length * 3) / 4);
  return /^[A-Za-z0-9_-]*$/.test(nonce) && nonce.length % 4 !== 1 && bytes >= MIN_NONCE_BYTES;
}

function windowRefusal(found: Complete, nowMs: number): Refusal | undefined {
  if (windowHolds(found, nowMs)) return undefined;
  const detail = `created=${found.created} expires=${found.expires}, now ${nowMs} ms.`;
  return refused('webhook_signature_window_invalid', detail, 5);
}

function broken(check: 2 | 3 | 4, code: AuthenticationCode, got: string): Refusal {
  return refused(code, `Got ${quoted(got)}.`, check);
}

/**
 * Performs the second half of check 2 (the form of the nonce), then checks 3 to 5 (tag, algorithm, time window).
 * @returns the protocol name in the tag, or the refusal.
 */
function nameOf(found: Complete, protocols: Protocols, nowMs: number): Protocol | Refusal {
  if (!isNonce(found.nonce)) return broken(2, 'webhook_signature_header_malformed', found.nonce);
  const protocol = protocols.find(({ signatureTag }) => signatureTag === found.tag);
  if (!protocol) return broken(3, 'webhook_signature_tag_invalid', found.tag);
  if (!Object.hasOwn(ALGORITHMS, found.alg)) {
    return broken(4, 'webhook_signature_alg_not_allowed', found.alg);
  }
  return windowRefusal(found, nowMs) ?? protocol;
}

const incomplete = (detail: string): Refusal => refused('webhook_signature_components_incomplete', detail, 6);

/** Refuses a list of components with a duplicate, or without a required component. */
function listRefusal(components: readonly string[]): Refusal | undefined {
  const distinct = new Set(components);
  if (distinct.size !== components.length) return incomplete('A component is covered twice.');
  const missing = REQUIRED_COMPONENTS.find((component) => !distinct.has(component));
  return missing === undefined ? undefined : incomplete(`${missing} is not covered.`);
}

/**
 * Performs check 6 (the covered components). A component with parameters is not a header name, so `isCoverable` refuses
 * it.
 */
function componentsRefusal(components: readonly string[], headers: HeaderFields): Refusal | undefined {
  // The fast parser returns this same array for the required components, so that they need not be compared again.
  const isRequired = components === REQUIRED_COMPONENTS;
  if (isRequired && coversRequired(headers)) return undefined;
  const refusal = isRequired ? undefined : listRefusal(components);
  if (refusal) return refusal;
  const blank = components.find((component) => !isCoverable(component, headers));
  return blank === undefined ? undefined : incomplete(`${quoted(blank)} cannot be covered here.`);
}

/**
 * Performs checks 2 to 6, in the order of their numbers. The first that fails gives the refusal.
 * @param nowMs receiver's clock, Unix ms.
 */
export function checkSignatureFields(
  fields: SignatureFields,
  headers: HeaderFields,
  protocols: Protocols,
  nowMs: number,
): CheckedSignature | Refusal {
  const { input, signature, digest } = fields;
  const { components, parameters, raw: signatureParams } = input;
  if (!isComplete(parameters)) {
    return refused(
      'webhook_signature_params_incomplete',
      'Signature-Input lacks a parameter of the profile.',
      2,
    );
  }
  const protocol = nameOf(parameters, protocols, nowMs);
  if ('kind' in protocol) return protocol;
  const refusal = componentsRefusal(components, headers);
  if (refusal) return refusal;
  return {
    kind: 'checked',
    protocol,
    components,
    signatureParams,
    // Check 4 passed, so the algorithm is one of `ALGORITHMS`.
    parameters: parameters as CheckedSignature['parameters'],
    signature,
    // Check 6 passed, so the covered Content-Digest is present.
    digest: digest ?? NO_DIGEST,
  };
}

const NO_DIGEST: ContentDigest = { sha256: undefined };

/**
 * Performs checks 1 to 6 (verification.md §2.1 to §2.6), in the order of their numbers. They need only the headers and
 * the time. The first that fails gives the refusal. Pure. Never throws.
 * @param headers made by `headerFields`.
 * @param nowMs receiver's clock, Unix ms.
 */
export function checkSignatureHeaders(
  headers: HeaderFields,
  protocols: Protocols,
  nowMs: number,
): CheckedSignature | Refusal {
  const fields = readSignatureFields(headers);
  return fields.kind === 'refused' ? fields : checkSignatureFields(fields, headers, protocols, nowMs);
}
