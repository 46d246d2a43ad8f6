// Converts a verdict (the result of a delivery) to status, headers and body, by the table of answers (admission.md
// §2.2).
// Called by `finishOutcome` for every answer. Pure; no answer contains exception text, key ids or reasons.

import type { RefusedCode } from '../shared/codes.ts';
import type { Refusal, Reply, Unavailability, Verdict } from '../shared/outcome.ts';

/** Answer to a refusal: the status, and the headers and body that go with it. */
type RefusalReply =
  | { readonly status: 400 | 403 | 409; readonly message: string }
  | { readonly status: 401 }
  | { readonly status: 405; readonly allow: 'POST' }
  | { readonly status: 413 | 415 }
  | { readonly status: 429 };

const UNAUTHENTIC: RefusalReply = { status: 401 };
const LIMITED: RefusalReply = { status: 429 };

/** The answer for each refusal code. A code without an entry does not compile. The README has the same table. */
export const ANSWERS: Readonly<Record<RefusedCode, RefusalReply>> = {
  method_not_allowed: { status: 405, allow: 'POST' },
  unsupported_media_type: { status: 415 },
  unsupported_content_encoding: { status: 415 },
  payload_too_large: { status: 413 },
  webhook_signature_header_malformed: UNAUTHENTIC,
  webhook_signature_params_incomplete: UNAUTHENTIC,
  webhook_signature_tag_invalid: UNAUTHENTIC,
  webhook_signature_alg_not_allowed: UNAUTHENTIC,
  webhook_signature_window_invalid: UNAUTHENTIC,
  webhook_signature_components_incomplete: UNAUTHENTIC,
  webhook_signature_key_unknown: UNAUTHENTIC,
  webhook_signature_key_purpose_invalid: UNAUTHENTIC,
  webhook_signature_key_revoked: UNAUTHENTIC,
  webhook_target_uri_malformed: UNAUTHENTIC,
  webhook_signature_invalid: UNAUTHENTIC,
  webhook_signature_digest_mismatch: UNAUTHENTIC,
  webhook_signature_replayed: UNAUTHENTIC,
  webhook_body_malformed: UNAUTHENTIC,
  webhook_mode_mismatch: UNAUTHENTIC,
  webhook_token_mismatch: UNAUTHENTIC,
  missing_idempotency_key: { status: 400, message: 'The envelope has no idempotency_key.' },
  missing_envelope_fields: {
    status: 400,
    message: 'The envelope lacks task_id or status; a delivery report belongs under result.',
  },
  invalid_envelope_status: {
    status: 400,
    message: 'The top-level status is a media buy status, not a task status.',
  },
  invalid_envelope: { status: 400, message: 'The envelope has a member of the wrong type or form.' },
  payload_changed: {
    status: 409,
    message: 'This idempotency_key was used before with another payload; the first one is kept.',
  },
  task_already_final: {
    status: 409,
    message: 'The task has a terminal status that says something else; the first one is kept.',
  },
  challenge_refused: { status: 403, message: 'The proof of control is not accepted.' },
  sender_over_limit: LIMITED,
  webhook_signature_rate_abuse: LIMITED,
};

const reply = (status: number, headers: Readonly<Record<string, string>> = {}, body = ''): Reply => ({
  status,
  headers,
  body,
});

const jsonReply = (status: number, body: object): Reply =>
  reply(status, { 'Content-Type': 'application/json' }, JSON.stringify(body));

/** Returns the header `Retry-After`, rounded up to whole seconds so that a sender never comes back too early. */
const retryAfter = (ms: number): Reply['headers'] => ({ 'Retry-After': String(Math.ceil(ms / 1000)) });

function refusalReply(refusal: Refusal, retryAfterMs: number): Reply {
  const { code } = refusal;
  const answer = ANSWERS[code];
  switch (answer.status) {
    case 400:
    case 403:
    case 409:
      return jsonReply(answer.status, { error: { code, message: answer.message } });
    case 401:
      // Sellers send the event again after a `Bearer` 401, but give it up after a `Signature` 401 (verification.md
      // §6.4).
      return refusal.challenge === 'bearer'
        ? reply(401, { 'WWW-Authenticate': 'Bearer error="invalid_token"' })
        : reply(401, { 'WWW-Authenticate': `Signature error="${code}"` });
    case 405:
      return reply(405, { Allow: answer.allow });
    case 413:
    case 415:
      return reply(answer.status);
    case 429:
      return reply(429, retryAfter(retryAfterMs));
  }
}

/** One frozen object for all 200 answers without a body. */
const OK_REPLY: Reply = Object.freeze({ status: 200, headers: Object.freeze({}), body: '' });

/** Returns the reply to the sender. Pure; it is built so that it cannot contain exception text, key ids or reasons. */
export function respond(verdict: Verdict, retryAfterMs: number): Reply {
  switch (verdict.kind) {
    case 'accepted':
    case 'duplicate':
    case 'stale':
      return OK_REPLY;
    case 'challenge':
      return jsonReply(200, { challenge: verdict.challenge.challenge });
    case 'refused':
      return refusalReply(verdict, retryAfterMs);
    case 'unavailable':
      return reply(503, retryAfter(verdict.retryAfterMs ?? retryAfterMs));
  }
}

/** True if a stage returned a refusal or a fault, after which no further stage runs. */
export function isRejection(result: { readonly kind: string }): result is Refusal | Unavailability {
  return result.kind === 'refused' || result.kind === 'unavailable';
}
