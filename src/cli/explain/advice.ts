// Gives advice for failed checks whose error code already says what is wrong. `causes.ts` uses it if its own search for
// the cause found nothing.
import { ALGORITHM_NAMES } from '../../crypto/algorithms.ts';
import type { Cause, Finding, Step } from './explain-case.ts';

/** The advice, by cause and error code. For other codes, `causes.ts` searches the cause. */
const FIXES: Readonly<Partial<Record<Cause, Readonly<Record<string, string>>>>> = {
  request: {
    method_not_allowed:
      'Sellers POST. A redirect in front of the receiver turns POST into GET: give sellers the final URL.',
    unsupported_media_type:
      "The seller has to send Content-Type: application/json, once; or a gateway in front changed it. For one of the form application/…+json (an agent transport's own push): contentTypes (here: --content-type).",
    unsupported_content_encoding:
      'A proxy in front must not compress this path; or the seller has to send the body without Content-Encoding.',
    payload_too_large:
      'Raise maxBodyBytes (and the limits of proxies in front), or the seller has to send less.',
  },
  mode: {
    webhook_mode_mismatch:
      'Register the sender with the scheme that it uses: auth: { hmac } or { bearer }, { reports } for signatures and reports by HMAC, or no auth for signatures. Or it has to leave the other scheme out.',
  },
  headers: {
    webhook_signature_header_malformed:
      'The seller has to send one sig1 in Signature-Input and Signature, byte sequences between colons; see that no proxy drops or joins these headers.',
    webhook_signature_params_incomplete: 'The seller has to set created, expires, nonce, keyid, alg and tag.',
    webhook_signature_alg_not_allowed: `The seller has to sign with ${ALGORITHM_NAMES.join(' or ')}, by these names.`,
    webhook_signature_components_incomplete:
      'The seller has to cover "@method" "@target-uri" "@authority" "content-type" "content-digest", without parameters.',
  },
  'key-missing': {
    webhook_signature_key_unknown:
      'The seller has to publish the key under this kid in its JWKS (proto-webhooks keys check AGENT_URL), or to sign with one that it does publish.',
    keys_unavailable: 'Repair the chain: proto-webhooks keys check AGENT_URL shows where it breaks.',
    webhook_signature_key_revoked: 'The seller has to sign with a key that is not revoked.',
    webhook_signature_revocation_stale:
      'The operator has to publish a fresh revocation list; until then deliveries are answered 503. proto-webhooks keys check AGENT_URL shows the list.',
  },
  rate: {
    webhook_signature_rate_abuse:
      'Raise maxNoncesPerKey, or the seller has to send less often: it is answered 429 and tries again.',
  },
  replay: {
    webhook_signature_replayed: 'The seller has to sign each attempt anew, with a nonce of its own.',
  },
  body: {
    webhook_body_malformed:
      'The seller has to send one JSON object in UTF-8 without a byte order mark and without duplicate members.',
  },
};

const ENVELOPE =
  'The seller has to send the envelope of the contract: idempotency_key, task_id and status, a report below result.';
const CHALLENGE = 'The seller has to send the proof of control with this member as the contract says.';

/** Returns the cause and the advice for a failed check if `FIXES` has its error code; undefined for any other code. */
export function adviceFor({ id, code = '', detail = '' }: Step): Finding | undefined {
  const found = (cause: Cause, fix: string): Finding => ({
    cause,
    fix,
    step: id,
    says: detail,
    proved: true,
  });
  if (id === 'envelope') return found('envelope', code === 'challenge_refused' ? CHALLENGE : ENVELOPE);
  for (const [cause, fixes] of Object.entries(FIXES)) {
    const fix = Object.hasOwn(fixes, code) ? fixes[code] : undefined;
    if (fix !== undefined) return found(cause as Cause, fix);
  }
  return undefined;
}
