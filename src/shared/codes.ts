// The table of all stable codes of this library, each with the places where it appears (admission.md §2.2, §2.3).
// The public unions of codes are derived from the table. It is imported as a type alone, so no bundle contains it.
// All codes but warnings have an entry in docs/errors.md, docs/alarms.md, docs/call-alarms.md or docs/thrown-errors.md.

/**
 * The places where a code appears. `refused`, `authentication` and `envelope`: a 4xx answer (the sender's fault).
 * `unavailable`: a 503 (a fault on the receiver's side). `alarm`: `onAlarm`; `setting`: an alarm about a refusal with
 * the same code. `warning`: `event.warnings`. `thrown`, `registration`, `registry`: an error that is thrown to the
 * caller.
 */
type CodeKind =
  | 'refused'
  | 'authentication'
  | 'envelope'
  | 'unavailable'
  | 'alarm'
  | 'setting'
  | 'warning'
  | 'thrown'
  | 'registration'
  | 'registry';

/** Maps a code to the places where it appears. */
export const CODES = {
  // This group has the codes of refusals before authentication, because of the request itself.
  method_not_allowed: ['refused'],
  unsupported_media_type: ['refused', 'setting'],
  unsupported_content_encoding: ['refused', 'setting'],
  payload_too_large: ['refused', 'setting'],

  // This group has the codes of refusals by authentication: all answered 401, except `…_rate_abuse` (429).
  webhook_signature_header_malformed: ['authentication', 'setting'],
  webhook_signature_params_incomplete: ['authentication'],
  webhook_signature_tag_invalid: ['authentication', 'setting'],
  webhook_signature_alg_not_allowed: ['authentication'],
  webhook_signature_window_invalid: ['authentication'],
  webhook_signature_components_incomplete: ['authentication'],
  webhook_signature_key_unknown: ['authentication', 'setting'],
  webhook_signature_key_purpose_invalid: ['authentication'],
  webhook_signature_key_revoked: ['authentication', 'setting'],
  webhook_signature_rate_abuse: ['authentication'],
  /**
   * 503 if the signature verifies for the receiver's URL but `Host` names another host: the receiver's own proxy
   * rewrote `Host` (verification.md §4.12). Otherwise 401.
   */
  webhook_target_uri_malformed: ['authentication', 'unavailable'],
  webhook_signature_invalid: ['authentication', 'setting'],
  webhook_signature_digest_mismatch: ['authentication', 'setting'],
  webhook_signature_replayed: ['authentication'],
  webhook_body_malformed: ['authentication'],
  webhook_mode_mismatch: ['authentication', 'setting'],
  webhook_token_mismatch: ['authentication'],

  // This group has the codes of refusals of an authentic body that is not a valid envelope: 400 (verification.md §7.5).
  missing_idempotency_key: ['envelope'],
  missing_envelope_fields: ['envelope'],
  invalid_envelope_status: ['envelope'],
  invalid_envelope: ['envelope'],

  // This group has the codes of refusals because of the event's content, or of the number of stored events.
  payload_changed: ['refused', 'alarm'],
  /** A second terminal status of a task, which differs from the first: 409 from edition 3.2 on. */
  task_already_final: ['refused'],
  /**
   * A seller's request to prove control of the URL (a challenge), which the owner did not accept or could not be asked
   * about: 403. The alarm says what is missing.
   */
  challenge_refused: ['refused', 'alarm'],
  sender_over_limit: ['refused'],

  // This group has the codes of faults on the receiver's side: always answered 503, never 4xx.
  keys_unavailable: ['unavailable'],
  store_unavailable: ['unavailable'],
  /** The signature is outside its time window by this receiver's clock, and that clock is wrong. */
  clock_skew: ['unavailable', 'alarm'],
  not_durable: ['unavailable'],
  in_flight: ['unavailable'],
  task_busy: ['unavailable'],
  lease_lost: ['unavailable'],
  handler_failed: ['unavailable'],
  handler_timeout: ['unavailable'],
  body_timeout: ['unavailable'],
  body_consumed: ['unavailable'],
  /** The memory for bodies (`maxBufferedBytes`) is full. */
  overloaded: ['unavailable', 'alarm'],
  shutting_down: ['unavailable'],
  misconfigured: ['unavailable', 'alarm'],
  webhook_signature_revocation_stale: ['unavailable'],

  // This group has the codes of alarms for the owner that change no answer.
  dead: ['alarm'],
  cap_near: ['alarm'],
  cap_reached: ['alarm'],
  /** A second terminal status of a task, under another idempotency key (admission.md §5.4a). */
  second_terminal_status: ['alarm', 'warning'],
  /**
   * A task's terminal status came under an idempotency key that another event had used before. No handler gets that
   * status (admission.md §5.4a).
   */
  end_dropped: ['alarm', 'warning'],
  timestamp_ahead: ['alarm'],
  nonconforming_sender: ['alarm'],
  /** An authenticated sender's delivery carries a token that is not the sender's `notificationToken`. */
  token_mismatch: ['alarm', 'warning'],
  /** The store's clock was set back (admission.md §4.11). */
  clock_stepped: ['alarm'],
  legacy_auth_used: ['alarm'],
  host_rewritten: ['alarm'],
  /**
   * A signature verifies only for another URL than `publicUrl`, so that the option seems wrong: deliveries are answered
   * 503 (verification.md §2.34).
   */
  public_url_mismatch: ['alarm'],
  /** brand.json has no entry for the agent URL, or several that differ (verification.md §2.28). */
  agent_not_listed: ['alarm'],
  /**
   * The key named in a delivery has a purpose that only another edition accepts: the sender may use that edition.
   */
  key_purpose_refused: ['alarm'],
  /**
   * Two senders of one URL publish the same key. The key counts for the sender that published it first, or for neither
   * (verification.md §2.36).
   */
  key_shared: ['alarm'],
  /**
   * A new key is in use. Another sender of the URL may own the key, but the documents of that sender cannot be fetched.
   */
  key_owner_unchecked: ['alarm'],
  jwks_uri_moved: ['alarm'],
  /**
   * For the first time in this process, a publisher's adagents.json pins an agent's keys. From now on the pins decide
   * which keys count.
   */
  publisher_pins: ['alarm'],
  /** A delivery used a key that a publisher pins for an agent, but that the agent's own JWKS lacks. */
  pin_not_published: ['alarm'],
  key_document_invalid: ['alarm'],
  key_fetch_failing: ['alarm'],
  revocation_stale: ['alarm'],
  /**
   * Revocation lists with the same time `updated` revoke too many keys together. Only the newest list counts
   * (verification.md §5.23).
   */
  revocation_overflow: ['alarm'],
  admission_pressure: ['alarm'],
  senders_failed: ['alarm'],
  /** Events are due, and no worker leases them (admission.md §4.13). */
  queue_unattended: ['alarm'],
  /** The result of a call is unknown, nobody has reported it, and the call can no longer be repeated. */
  operation_orphaned: ['alarm'],
  /** Two channels, e.g. a webhook and a poll, report different terminal statuses of a task. The first one is used. */
  terminal_differs: ['alarm'],
  /** A seller's answer was refused: too large, too deep, or impossible to store (calls.md §4.10). */
  answer_refused: ['alarm', 'thrown'],
  /** A seller has refused a repeated call for good. */
  operation_refused: ['alarm'],
  /**
   * A task was polled for `giveUpMs`, or its seller says `completed` without a result. The task is no longer polled.
   */
  task_unresolved: ['alarm'],
  /** Reports for some report windows of a media buy did not come, and the first request for them failed. */
  report_missing: ['alarm'],
  /** Missing reports of a media buy cannot be requested from the seller, or the requests have failed for a week. */
  report_unrecoverable: ['alarm'],
  /**
   * A snapshot (a seller's answer with all current states) showed that an impairment began or ended. The seller's
   * webhook about it did not come (owed.md §6.7).
   */
  impairment_missed: ['alarm'],
  /** It is unknown for which report windows a media buy owes reports. */
  stream_unverifiable: ['alarm'],
  /** A media buy has ended, and its `final` report did not come. */
  final_absent: ['alarm'],
  /** The totals of the seller differ from those that the owner booked for a media buy that has ended. */
  totals_differ: ['alarm'],
  /**
   * A seller has paused or dropped a subscription. Or another subscriber's subscription is gone after the owner's
   * subscriptions were changed (subscriptions.md §4).
   */
  subscription_lost: ['alarm'],
  /** A subscription was refused by the seller, or cannot be sent, and no caller waits for the result. */
  subscription_refused: ['alarm'],
  /** A seller still sends to a URL that the owner has retired (told.md §4.2). */
  retired_url_used: ['alarm'],
  /** A seller shows that it sends to another URL than the one it was given (told.md §2.2). */
  registration_drift: ['alarm'],
  /** The seller does not know a task that the seller itself began. */
  task_unknown: ['alarm', 'thrown'],
  /** A seller refuses requests for the status of its tasks, or fails to answer again and again. */
  poll_failing: ['alarm'],
  /** The store has not answered for 10 s; raised again when it answers (`over`). */
  store_away: ['alarm'],
  /** The last 20 runs of handlers failed, over at least a minute; raised again when one succeeds (`over`). */
  handlers_failing: ['alarm'],
  /**
   * Raised by `serve`: the sink, to which events are forwarded, has taken no event for 10 s. Raised again each hour.
   */
  sink_unavailable: ['alarm'],
  /** The store has just been created. If an older store should exist, its volume may be missing. */
  store_created: ['alarm'],
  /**
   * `serve` has read its configuration again and rejected it: the former configuration stays in use (serve.md §1.8).
   */
  config_rejected: ['alarm'],
  /**
   * The store now keeps events through fewer kinds of failure than `ready()` found. If they are fewer than
   * `durability.require` demands, deliveries are answered 503.
   */
  durability_lowered: ['alarm'],
  /** `sodium-native` is installed but cannot be used, so OpenSSL verifies signatures instead (verification.md §3.9). */
  sodium_unusable: ['alarm'],

  // This group has the codes of warnings: the event is accepted, and `event.warnings` lists them.
  /** `operation_id`, `task_type` or `timestamp` is absent from a tool-transport envelope. */
  missing_operation_id: ['warning'],
  missing_task_type: ['warning'],
  missing_timestamp: ['warning'],
  /** `timestamp` is not an RFC 3339 instant: the event is not ordered with other events of its task. */
  invalid_timestamp: ['warning'],
  /** A status that this version of the package does not know: the handler `other` gets the event. */
  unknown_status: ['warning'],
  /** A non-terminal status that is newer than the terminal status that was already applied. */
  after_terminal: ['warning'],
  /** The data part contained only `{response: {…}}`, by a mistake of the sender; `data` is undefined. */
  wrapped_response: ['warning'],
  completed_without_data: ['warning'],
  later_artifact: ['warning'],
  /** A delivery report has a member that reports must not have (contract.md §6.9). */
  report_has_aggregated_totals: ['warning'],
  report_has_notification_id: ['warning'],
  report_after_final: ['warning'],
  /** A report has more rows than the receiver records as received (owed.md §3.1). */
  report_too_wide: ['warning'],
  /** A report that the buyer requested lacks `by_package` (owed.md §4.3). */
  pulled_without_packages: ['warning'],
  /** The body claims to be a delivery report, but its members do not fit: the handler `other` gets the event. */
  invalid_delivery_report: ['warning'],
  /**
   * The sender has a `notificationToken`, but the delivery carries no token (a wrong token: `token_mismatch`). Only a
   * run during the delivery has this warning, because a worker and `redrive` have no headers, only the stored body.
   */
  token_missing: ['warning'],
  /**
   * A known family's payload lacks an identifying member, or a member has the wrong type: the handler `other` gets the
   * event.
   */
  invalid_notification: ['warning'],
  /** The result does not fit the schema given for its task type. */
  result_schema_mismatch: ['warning'],
  /** `result` of a task with the status `working` or `input-required` has members of the wrong type. */
  invalid_progress: ['warning'],
  /** An agent-transport payload has no `idempotency_key`, so the key is derived from the payload's bytes. */
  derived_idempotency_key: ['warning'],
  /** A number has more digits than a double holds: it is rounded in `data` and `envelope`, and exact in `rawBody`. */
  inexact_number: ['warning'],
  /** With `registrations`: no stored operation of this seller has the event's `operation_id`, and none has its task. */
  operation_id_unknown: ['warning'],
  /** With `registrations`: the event's `operation_id` names one operation, but its task belongs to another. */
  operation_id_mismatch: ['warning'],
  /**
   * With `registrations`: the event's `context` differs from the context that was passed to the call (compared as
   * canonical JSON).
   */
  context_mismatch: ['warning'],
  /**
   * With `registrations`: the seller's answer to the call had the result already, so no webhook should have followed.
   */
  webhook_after_terminal_response: ['warning'],

  // This group has the codes of errors that are thrown. A `Fault` has one of the 503 codes above instead.
  config_error: ['thrown'],
  permanent_error: ['thrown'],
  /** `CompareError`: the totals of a media buy cannot be compared now. */
  compare_failed: ['thrown'],
  vector_error: ['thrown'],
  /**
   * `CallNotMadeError`: a document that is needed before a call, e.g. the agent card, was not accepted, so nothing was
   * called.
   */
  call_not_made: ['thrown'],
  /**
   * `NoTaskQueryError`: the agent's transport offers no request for the status of a task. The profile extension's skill
   * `get_task_status` takes its place.
   */
  no_operation: ['thrown'],
  redirect_refused: ['thrown'],
  /** `SellerBusyError`: the seller answered 429, or 503 with `Retry-After`. */
  seller_busy: ['thrown'],
  session_lost: ['thrown'],
  /** Thrown by the command line, which then ends with the exit code 2. */
  usage_error: ['thrown'],

  // This group has the codes of `RegistrationError`.
  /** An argument of a method is wrong; the message names it. */
  request_invalid: ['registration'],
  /** The arguments, the `context` or the `ref` of a call are larger than their limit. */
  request_too_large: ['registration'],
  /** The result of `call`, or the argument of `settle`, is not an operation's answer. */
  answer_invalid: ['registration'],
  /** The seller has `maxOpen` operations that have not ended, so that no further one may begin. */
  too_many_open: ['registration'],
  /** A URL that is to be retired is in use, or was lately (told.md §4.1). */
  url_in_use: ['registration'],
  /** Stored data is encrypted under a secret that is not in the option `secrets`. */
  secret_missing: ['registration'],
  /** The stored ciphertext was changed, cut, or belongs to another row. */
  sealed_text_invalid: ['registration'],

  /**
   * The set of subscriptions has one of another subscriber, whose credentials the seller does not show. So the set
   * cannot be sent again (subscriptions.md §2.3).
   */
  foreign_credentials: ['registration'],
  /** A subscription of the whole agent replaces all other subscriptions of the agent, which needs `exclusive: true`. */
  exclusive_required: ['registration'],
  /** The seller does not offer the requested event types for the account, or for the agent. */
  event_types_not_offered: ['registration'],
  /** No account of the seller, or more than one, fits the members of the argument `account`. */
  account_unknown: ['registration'],
  /** The account, or the agent, already has the largest number of subscriptions. */
  set_full: ['registration'],

  // This group has the codes of `RegistryError`.
  /** An argument is wrong (nothing was sent, `status` is undefined), or the registry answered 400 or another 4xx. */
  bad_request: ['registry'],
  /** The registry answered 401, or there is no usable token. */
  unauthorized: ['registry'],
  forbidden: ['registry'],
  not_found: ['registry'],
  rate_limited: ['registry'],
  /** The registry answered 5xx. */
  server: ['registry'],
  /** The registry answered 2xx with a body that the contract does not allow, or a redirect, which is not followed. */
  invalid_answer: ['registry'],
  /** No complete answer came: no connection, no time left, too many bytes, or the caller's signal aborted. */
  unreachable: ['registry'],
} as const;

type Table<T extends Readonly<Record<string, readonly CodeKind[]>>> = T;
type Codes = Table<typeof CODES>;

/** The codes of the table `CODES` that appear in a place of the kind `K`. */
type CodeOf<K extends CodeKind> = {
  [C in keyof Codes]: Extract<Codes[C][number], K> extends never ? never : C;
}[keyof Codes];

/** The codes of refusals by authentication. The answer is 401, but 429 for `…_rate_abuse`. */
export type AuthenticationCode = CodeOf<'authentication'>;

/**
 * The code of a webhook that was refused because its body lacks something or has a wrong form, e.g.
 * `missing_idempotency_key`. The body is authentic JSON; the answer is 400.
 */
export type EnvelopeCode = CodeOf<'envelope'>;

/**
 * The code of a delivery that was refused because of the sender: `outcome.code` of kind `refused`, answered with
 * 4xx. The page docs/errors.md explains each.
 */
export type RefusedCode = CodeOf<'refused'> | AuthenticationCode | EnvelopeCode;

/**
 * The code of a delivery that could not be decided because of a fault on the receiver's side: `outcome.code` of kind
 * `unavailable`. It is always answered with 503, never 4xx. The page docs/errors.md explains each.
 */
export type UnavailableCode = CodeOf<'unavailable'>;

/**
 * The codes of refusals that another setting of the receiver might have prevented. The alarm has the code of the
 * refusal. Its member `option`, if present, names that setting.
 */
export type SettingCode = CodeOf<'setting'>;

/**
 * The code of an alarm, which an operator should look into: `alarm.code`. An alarm never changes an answer. The
 * pages docs/alarms.md, docs/call-alarms.md and docs/errors.md explain all codes.
 */
export type AlarmCode = CodeOf<'alarm' | 'setting'>;

/**
 * The code of something unexpected in an event that was accepted nevertheless: `event.warnings[].code`. The
 * `message` beside it says what it is.
 */
export type WarningCode = CodeOf<'warning'>;

/** The code of a `RegistrationError`, for programs. The page docs/thrown-errors.md explains each. */
export type RegistrationErrorCode = CodeOf<'registration'>;

/** The code of a `RegistryError`, for programs. The page docs/thrown-errors.md explains each. */
export type RegistryErrorCode = CodeOf<'registry'>;

/** The codes of every other error that has one. A `Fault` has an `UnavailableCode`. */
export type ThrownCode = CodeOf<'thrown'>;
