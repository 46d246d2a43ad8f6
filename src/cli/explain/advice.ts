import type { Cause, Finding, Step } from './case.ts';

/** What to do about a step whose code says it all. */
interface Advice {
  readonly cause: Cause;
  readonly fix: string;
}

/** By code; a code that is not here is looked into by a search of its own. */
const ADVICE: Readonly<Record<string, Advice>> = {
  method_not_allowed: {
    cause: 'request',
    fix: 'Sellers POST. A redirect in front of the receiver turns POST into GET: give sellers the final URL.',
  },
  unsupported_media_type: {
    cause: 'request',
    fix: "The seller has to send Content-Type: application/json, once; or a gateway in front changed it. For one of the form application/…+json (an agent transport's own push): contentTypes (here: --content-type).",
  },
  unsupported_content_encoding: {
    cause: 'request',
    fix: 'A proxy in front must not compress this path; or the seller has to send the body without Content-Encoding.',
  },
  payload_too_large: {
    cause: 'request',
    fix: 'Raise maxBodyBytes (and the limits of proxies in front), or the seller has to send less.',
  },
  webhook_mode_mismatch: {
    cause: 'mode',
    fix: 'Register the sender with the scheme that it uses: auth: { hmac } or { bearer }, { reports } for signatures and reports by HMAC, or no auth for signatures. Or it has to leave the other scheme out.',
  },
  webhook_signature_header_malformed: {
    cause: 'headers',
    fix: 'The seller has to send one sig1 in Signature-Input and Signature, byte sequences between colons; see that no proxy drops or joins these headers.',
  },
  webhook_signature_params_incomplete: {
    cause: 'headers',
    fix: 'The seller has to put created, expires, nonce, keyid, alg and tag.',
  },
  webhook_signature_alg_not_allowed: {
    cause: 'headers',
    fix: 'The seller has to sign with ed25519 or ecdsa-p256-sha256, by these names.',
  },
  webhook_signature_components_incomplete: {
    cause: 'headers',
    fix: 'The seller has to cover "@method" "@target-uri" "@authority" "content-type" "content-digest", without parameters.',
  },
  webhook_signature_key_unknown: {
    cause: 'key-missing',
    fix: 'The seller has to publish the key under this kid in its JWKS (proto-webhooks keys check AGENT_URL), or to sign with one that it does publish.',
  },
  keys_unavailable: {
    cause: 'key-missing',
    fix: 'Mend the chain: proto-webhooks keys check AGENT_URL shows where it breaks.',
  },
  webhook_signature_key_revoked: {
    cause: 'key-missing',
    fix: 'The seller has to sign with a key that is not revoked.',
  },
  webhook_signature_revocation_stale: {
    cause: 'key-missing',
    fix: 'The operator has to publish a fresh revocation list; until then deliveries get 503. proto-webhooks keys check AGENT_URL shows the list.',
  },
  webhook_signature_rate_abuse: {
    cause: 'rate',
    fix: 'Raise maxNoncesPerKey, or the seller has to send less often: it is answered 429 and tries again.',
  },
  webhook_signature_replayed: {
    cause: 'replay',
    fix: 'The seller has to sign each attempt anew, with a nonce of its own.',
  },
  webhook_body_malformed: {
    cause: 'body',
    fix: 'The seller has to send one JSON object in UTF-8 without a byte order mark and without members that occur twice.',
  },
};

const ENVELOPE: Advice = {
  cause: 'envelope',
  fix: 'The seller has to send the envelope of the contract: idempotency_key, task_id and status, a report below result.',
};

const CHALLENGE: Advice = {
  cause: 'envelope',
  fix: 'The seller has to send the proof of control with this member as the contract says.',
};

/** The finding of a step for which its code is explanation enough, or undefined. */
export function adviceFor(step: Step): Finding | undefined {
  const envelope = step.code === 'challenge_refused' ? CHALLENGE : ENVELOPE;
  const advice = step.id === 'envelope' ? envelope : ADVICE[step.code ?? ''];
  return advice && { ...advice, step: step.id, says: step.detail ?? '', proved: true };
}
