import type { RefusedCode, UnavailableCode } from './outcome.ts';

/**
 * Refusals that another setting of ours might not have made (verification.md §2.37): the alarm has the code of the refusal,
 * and `option` names the setting, where it is one.
 */
export type SettingCode = Extract<
  RefusedCode,
  | 'unsupported_media_type'
  | 'unsupported_content_encoding'
  | 'payload_too_large'
  | 'webhook_signature_header_malformed'
  | 'webhook_signature_tag_invalid'
  | 'webhook_signature_key_unknown'
  | 'webhook_signature_key_revoked'
  | 'webhook_signature_invalid'
  | 'webhook_signature_digest_mismatch'
  | 'webhook_mode_mismatch'
>;

/** What the owner should look at. None changes an answer. */
export type AlarmCode =
  | SettingCode
  | 'payload_changed'
  | 'dead'
  | 'cap_near'
  | 'cap_reached'
  | 'second_terminal_status'
  /** A task's terminal status came under a key that was used before for something else: it is not handled. */
  | 'end_dropped'
  | 'timestamp_ahead'
  | 'nonconforming_sender'
  /** A proof of control was answered 403; the message says what is missing. */
  | 'challenge_refused'
  /** A proved sender's delivery carries another token than its `notificationToken`. */
  | 'token_mismatch'
  | 'clock_skew'
  /** The store's clock was set back (admission.md §4.11). */
  | 'clock_stepped'
  | 'legacy_auth_used'
  | 'host_rewritten'
  /** A signature verified for another URL than `publicUrl`: deliveries get 503 (verification.md §2.34). */
  | 'public_url_mismatch'
  /** brand.json has no entry for the agent URL, or several that differ (verification.md §2.28). */
  | 'agent_not_listed'
  /** Another edition accepts the purpose of the key that a delivery names: the sender may speak that one. */
  | 'key_purpose_refused'
  /** Two senders of one URL publish one key: it is one's that had it first, or nobody's (verification.md §2.36). */
  | 'key_shared'
  /** Another sender could not be asked whether a new key is its own. */
  | 'key_owner_unchecked'
  | 'jwks_uri_moved'
  /** A publisher's adagents.json begins to pin an agent's keys, for this process: they decide from here on. */
  | 'publisher_pins'
  /** A publisher pins a key for an agent that is not in the agent's JWKS, and a delivery used it. */
  | 'pin_not_published'
  | 'key_document_invalid'
  | 'key_fetch_failing'
  | 'revocation_stale'
  /** Lists of one `updated` revoke too many keys together: the newest counts alone (verification.md §5.23). */
  | 'revocation_overflow'
  | 'admission_pressure'
  | 'senders_failed'
  /** Events are due that no worker leases (admission.md §4.13). */
  | 'queue_unattended'
  /** A call that nobody has settled cannot be repeated any more: what came of it is not known. */
  | 'operation_orphaned'
  /** Two channels tell that a task has ended, and what they say of it differs: the first is kept. */
  | 'terminal_differs'
  /** A seller's answer was not taken: too large, too deep, not to be kept (calls.md §4.10). */
  | 'answer_refused'
  /** A seller has refused a repeated call for good. */
  | 'operation_refused'
  /** A task was polled for `giveUpMs`, or its seller says `completed` without a result: it is polled no more. */
  | 'task_unresolved'
  /** The seller does not know a task that it has begun. */
  | 'task_unknown'
  /** A seller refuses to be asked about its tasks, or gives no answer again and again. */
  | 'poll_failing'
  /** The store has not answered for 10 s; once more when it does again (`over`). */
  | 'store_away'
  /** The last 20 runs of handlers failed, over a minute at least; once more when one is done (`over`). */
  | 'handlers_failing'
  /** The store was made just now: where an older one should be there, its volume may not be. */
  | 'store_created'
  /** What is answered survives less than `ready()` found, or than `requireDurability` says: then deliveries get 503. */
  | 'durability_lowered'
  /** Bodies held at once reached `maxBufferedBytes`: deliveries get 503. */
  | 'overloaded'
  /** `sodium-native` is installed, and cannot be used: OpenSSL verifies (verification.md §3.9). */
  | 'sodium_unusable'
  | 'misconfigured';

/** What to read about a code: a heading of a page that comes with the package. */
export const docsOf = (code: AlarmCode | RefusedCode | UnavailableCode): string => `docs/errors.md#${code}`;

/** What `onAlarm` gets, and the log. Members beside these depend on the code. */
export interface Alarm {
  readonly code: AlarmCode;
  /** For the owner, never for a sender. */
  readonly message: string;
  /** Agent URL, where one is concerned. */
  readonly sender?: string;
  readonly [detail: string]: unknown;
}

export type RaiseAlarm = (alarm: Alarm) => void;

/** pino's shape; `console` fits too. */
export interface Logger {
  /** For finding faults. */
  debug(fields: object, message: string): void;
  /** What happened, as it should: each delivery, each run. */
  info(fields: object, message: string): void;
  /** What may need a look: refusals, retries. */
  warn(fields: object, message: string): void;
  /** A fault on this side. */
  error(fields: object, message: string): void;
}
