import type { RefusedCode, UnavailableCode } from '../../src/outcome.ts';

export type Code = RefusedCode | UnavailableCode;

/**
 * Which generator makes a code: `input` by one delivery alone (`inputs.ts`), `state` by what came before it (`lives.ts`),
 * `elsewhere` by what no bytes of a sender bring about, which has tests of its own.
 */
export const GENERATORS: Readonly<Record<Code, 'input' | 'state' | 'elsewhere'>> = {
  method_not_allowed: 'input',
  unsupported_media_type: 'input',
  unsupported_content_encoding: 'input',
  payload_too_large: 'input',
  webhook_signature_header_malformed: 'input',
  webhook_signature_params_incomplete: 'input',
  webhook_signature_tag_invalid: 'input',
  webhook_signature_alg_not_allowed: 'input',
  webhook_signature_window_invalid: 'input',
  webhook_signature_components_incomplete: 'input',
  webhook_signature_key_unknown: 'input',
  webhook_signature_key_purpose_invalid: 'input',
  webhook_signature_key_revoked: 'input',
  webhook_target_uri_malformed: 'input',
  webhook_signature_invalid: 'input',
  webhook_signature_digest_mismatch: 'input',
  webhook_body_malformed: 'input',
  webhook_mode_mismatch: 'input',
  webhook_token_mismatch: 'input',
  challenge_refused: 'input',
  missing_idempotency_key: 'input',
  missing_envelope_fields: 'input',
  invalid_envelope_status: 'input',
  invalid_envelope: 'input',
  misconfigured: 'input',
  webhook_signature_replayed: 'state',
  webhook_signature_rate_abuse: 'state',
  webhook_signature_revocation_stale: 'state',
  clock_skew: 'state',
  keys_unavailable: 'state',
  payload_changed: 'state',
  sender_over_limit: 'state',
  store_unavailable: 'state',
  not_durable: 'state',
  in_flight: 'state',
  task_busy: 'state',
  handler_failed: 'state',
  shutting_down: 'state',
  // Leases and deadlines run on timers; what doors hold and how bodies arrive is no byte of a delivery.
  lease_lost: 'elsewhere',
  handler_timeout: 'elsewhere',
  body_timeout: 'elsewhere',
  body_consumed: 'elsewhere',
  overloaded: 'elsewhere',
};
