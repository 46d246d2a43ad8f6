import { readSignatureFields } from './auth/rfc9421/checks.ts';
import { MAX_URL_BYTES, printableName } from './codec/printable.ts';
import type { Trace } from './answering.ts';
import type { HeaderFields } from './delivery.ts';
import type { Outcome, Refusal, RefusedCode } from './outcome.ts';
import type { Parts } from './parts.ts';

const EXPLAIN = 'docs/cli.md#explain-why-was-this-delivery-refused';
const KEYS = 'docs/keys.md#what-each-failure-answers';
const OURS = 'docs/keys.md#when-the-mistake-is-ours';
const ENVELOPES = 'docs/spec/verification.md#7-envelopes';
const DOORS = 'docs/frameworks.md#what-a-door-bounds';
const CAPS = 'README.md#stores';

/** What to read about each refusal: a heading of the documents that come with the package. */
export const DOCS: Readonly<Record<RefusedCode, string>> = {
  method_not_allowed: DOORS,
  unsupported_media_type: DOORS,
  unsupported_content_encoding: DOORS,
  payload_too_large: DOORS,
  webhook_signature_header_malformed: EXPLAIN,
  webhook_signature_params_incomplete: EXPLAIN,
  webhook_signature_tag_invalid: EXPLAIN,
  webhook_signature_alg_not_allowed: EXPLAIN,
  webhook_signature_window_invalid: OURS,
  webhook_signature_components_incomplete: EXPLAIN,
  webhook_signature_key_unknown: KEYS,
  webhook_signature_key_purpose_invalid: KEYS,
  webhook_signature_key_revoked: KEYS,
  webhook_signature_rate_abuse: CAPS,
  webhook_target_uri_malformed: OURS,
  webhook_signature_invalid: OURS,
  webhook_signature_digest_mismatch: EXPLAIN,
  webhook_signature_replayed: EXPLAIN,
  webhook_body_malformed: EXPLAIN,
  webhook_mode_mismatch: 'README.md#senders',
  webhook_token_mismatch: 'README.md#senders',
  missing_idempotency_key: ENVELOPES,
  missing_envelope_fields: ENVELOPES,
  invalid_envelope_status: ENVELOPES,
  invalid_envelope: ENVELOPES,
  challenge_refused: 'docs/challenge.md#proof-of-control-a-seller-asks-before-it-activates-a-subscription',
  payload_changed: 'docs/reliability.md#what-is-promised-and-what-is-not',
  task_already_final: 'docs/reliability.md#what-is-promised-and-what-is-not',
  sender_over_limit: CAPS,
};

/** UTF-8 bytes of a key id in a log. */
const MAX_KEYID_BYTES = 128;

export function keyidOf(headers: HeaderFields): string | undefined {
  const fields = readSignatureFields(headers);
  return fields.kind === 'parsed' ? fields.input.parameters.keyid : undefined;
}

/** Whose it is, as far as that is known: who it is proved to be of, else who has the key that it names. */
function whoseIs({ who, delivery, selected }: Trace, { keys }: Parts): string | undefined {
  if (who.sender !== undefined) return who.sender;
  const keyid = delivery && keyidOf(delivery.headers);
  return keyid === undefined ? undefined : keys.whose(keyid, selected?.senders);
}

/** What the owner is told of a refusal, beside the line at level info that each has. */
export function noteRefusal(outcome: Outcome & Refusal, trace: Trace, parts: Parts): void {
  const { delivery, rawBytes } = trace;
  if (!delivery) return;
  const sender = whoseIs(trace, parts);
  logFirst(outcome, sender, trace, parts);
  const { headers, method, url } = delivery;
  parts.onRefused?.({ headers, method, url, sender, outcome, ...(rawBytes && { rawBytes }) });
}

/**
 * The first refusal of a sender with a code in a minute is a line that its owner should see. Whose it is, is what it
 * says of itself where a sender has such a key: whoever has none is nobody, and cannot hide another's.
 */
function logFirst(
  { code, detail }: Refusal,
  known: string | undefined,
  { delivery, selected }: Trace,
  { refusals, now, logger }: Parts,
): void {
  if (!delivery) return;
  const keyid = keyidOf(delivery.headers);
  const suppressed = refusals(JSON.stringify([known, code]), now());
  if (suppressed === undefined) return;
  const url = selected?.target.targetUri ?? delivery.url;
  const fields = {
    code,
    ...(known !== undefined && { sender: known }),
    ...(keyid !== undefined && { keyid: printableName(keyid, MAX_KEYID_BYTES) }),
    ...(url !== undefined && { url: printableName(url, MAX_URL_BYTES) }),
    docs: DOCS[code],
    ...(suppressed > 0 && { suppressed }),
  };
  logger.warn(fields, `a delivery was refused: ${detail}`);
}
