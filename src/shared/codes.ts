// Every stable code of this library, once, with the places where its owner meets it (admission.md §2.2,
// §2.3).
// The public unions of codes are derived from this table, which is imported as a type alone, so no bundle
// contains it.
// All but warnings have an entry in docs/errors.md, docs/alarms.md, docs/call-alarms.md or
// docs/thrown-errors.md.

/**
 * The places where a code appears. `refused`, `authentication` and `envelope`: a 4xx answer (the sender's
 * fault). `unavailable`: a 503 (a fault on our side). `alarm`: `onAlarm`; `setting`: an alarm about a refusal
 * with the same code. `warning`: `event.warnings`. `thrown`, `registration`, `registry`: an error that is
 * thrown to the caller.
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
  // The request
  method_not_allowed: ['refused'],
  unsupported_media_type: ['refused', 'setting'],
  unsupported_content_encoding: ['refused', 'setting'],
  payload_too_large: ['refused', 'setting'],

  // Authentication: all answered 401, except `…_rate_abuse` (429)
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
  /** 503: the signature verifies for our URL but `Host` names another: a proxy of ours rewrote it (verification.md §4.12). */
  webhook_target_uri_malformed: ['authentication', 'unavailable'],
  webhook_signature_invalid: ['authentication', 'setting'],
  webhook_signature_digest_mismatch: ['authentication', 'setting'],
  webhook_signature_replayed: ['authentication'],
  webhook_body_malformed: ['authentication'],
  webhook_mode_mismatch: ['authentication', 'setting'],
  webhook_token_mismatch: ['authentication'],

  // An authentic body that is not a valid envelope: 400 (verification.md §7.5)
  missing_idempotency_key: ['envelope'],
  missing_envelope_fields: ['envelope'],
  invalid_envelope_status: ['envelope'],
  invalid_envelope: ['envelope'],

  // The event
  payload_changed: ['refused', 'alarm'],
  /** A second terminal status of a task that says something else: 409 in edition 3.2. */
  task_already_final: ['refused'],
  /**
   * A proof of control that the owner did not accept, or could not be asked about: 403. The alarm says what
   * is missing.
   */
  challenge_refused: ['refused', 'alarm'],
  sender_over_limit: ['refused'],

  // On our side: always 503, never 4xx
  keys_unavailable: ['unavailable'],
  store_unavailable: ['unavailable'],
  /** The time is outside the signature's window by this receiver's clock, and that clock is wrong. */
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

  // Alarms for the owner. None changes an answer
  dead: ['alarm'],
  cap_near: ['alarm'],
  cap_reached: ['alarm'],
  /** A second terminal status of a task, under another key (admission.md §5.4a). */
  second_terminal_status: ['alarm', 'warning'],
  /**
   * A task's terminal status came under a key that was used before for something else: it is not handled
   * (admission.md §5.4a).
   */
  end_dropped: ['alarm', 'warning'],
  timestamp_ahead: ['alarm'],
  nonconforming_sender: ['alarm'],
  /** A proved sender's delivery carries another token than its `notificationToken`. */
  token_mismatch: ['alarm', 'warning'],
  /** The store's clock was set back (admission.md §4.11). */
  clock_stepped: ['alarm'],
  legacy_auth_used: ['alarm'],
  host_rewritten: ['alarm'],
  /**
   * A signature verified for another URL than `publicUrl`: deliveries are answered 503 (verification.md
   * §2.34).
   */
  public_url_mismatch: ['alarm'],
  /** brand.json has no entry for the agent URL, or several that differ (verification.md §2.28). */
  agent_not_listed: ['alarm'],
  /**
   * The key named in a delivery has a purpose that only another edition accepts: the sender may use that edition.
   */
  key_purpose_refused: ['alarm'],
  /**
   * Two senders of one URL publish one key: it belongs to the one that had it first, or to nobody
   * (verification.md §2.36).
   */
  key_shared: ['alarm'],
  /** Another sender could not be asked if a new key is its own. */
  key_owner_unchecked: ['alarm'],
  jwks_uri_moved: ['alarm'],
  /**
   * For the first time in this process, a publisher's adagents.json pins an agent's keys: from now on the pins
   * decide.
   */
  publisher_pins: ['alarm'],
  /** A publisher pins a key for an agent that is not in the agent's JWKS, and a delivery used it. */
  pin_not_published: ['alarm'],
  key_document_invalid: ['alarm'],
  key_fetch_failing: ['alarm'],
  revocation_stale: ['alarm'],
  /**
   * Lists with one `updated` revoke too many keys together: only the newest counts (verification.md §5.23).
   */
  revocation_overflow: ['alarm'],
  admission_pressure: ['alarm'],
  senders_failed: ['alarm'],
  /** Events are due, and no worker leases them (admission.md §4.13). */
  queue_unattended: ['alarm'],
  /** A call whose result is unknown was settled by nobody, and can no longer be repeated. */
  operation_orphaned: ['alarm'],
  /** Two channels report different ends of a task. The first is used. */
  terminal_differs: ['alarm'],
  /** A seller's answer was refused: too large, too deep, or impossible to keep (calls.md §4.10). */
  answer_refused: ['alarm', 'thrown'],
  /** A seller has refused a repeated call for good. */
  operation_refused: ['alarm'],
  /**
   * A task was polled for `giveUpMs`, or its seller says `completed` without a result: it is no longer
   * polled.
   */
  task_unresolved: ['alarm'],
  /** Report windows of a media buy did not come, and the first pull failed. */
  report_missing: ['alarm'],
  /** Report windows cannot be pulled, or pulls have failed for a week. */
  report_unrecoverable: ['alarm'],
  /**
   * A snapshot showed an impairment, or its end, and the seller's webhook about it did not come (owed.md
   * §6.7).
   */
  impairment_missed: ['alarm'],
  /** The windows that a media buy owes cannot be determined. */
  stream_unverifiable: ['alarm'],
  /** A media buy has ended, and its `final` report did not come. */
  final_absent: ['alarm'],
  /** The totals of the seller differ from those that the owner booked for a media buy that has ended. */
  totals_differ: ['alarm'],
  /**
   * A seller has paused or dropped a subscription, or somebody else's is gone after a change
   * (subscriptions.md §4).
   */
  subscription_lost: ['alarm'],
  /** A seller has refused a subscription, or it cannot be sent, and nobody waits for it. */
  subscription_refused: ['alarm'],
  /** A seller sends to a URL that its owner has retired (told.md §4.2). */
  retired_url_used: ['alarm'],
  /** A seller shows that it sends to another URL than the one it was given (told.md §2.2). */
  registration_drift: ['alarm'],
  /** The seller does not know a task that it has begun. */
  task_unknown: ['alarm', 'thrown'],
  /** A seller refuses questions about its tasks, or fails to answer again and again. */
  poll_failing: ['alarm'],
  /** The store has not answered for 10 s; raised again when it answers (`over`). */
  store_away: ['alarm'],
  /** The last 20 runs of handlers failed, over at least a minute; raised again when one succeeds (`over`). */
  handlers_failing: ['alarm'],
  /** From `serve`: the sink has taken no event for 10 s; raised again each hour. */
  sink_unavailable: ['alarm'],
  /** The store has just been created. If an older one should exist, its volume may be missing. */
  store_created: ['alarm'],
  /** `serve` has read its configuration again and rejected it: the former one stays (serve.md §1.8). */
  config_rejected: ['alarm'],
  /**
   * An answer survives less than `ready()` found, or than `durability.require` demands: in that case
   * deliveries are answered 503.
   */
  durability_lowered: ['alarm'],
  /** `sodium-native` is installed but cannot be used: OpenSSL verifies (verification.md §3.9). */
  sodium_unusable: ['alarm'],

  // Warnings of an event: reported, not refused
  /** `operation_id`, `task_type` or `timestamp` is absent from a tool-transport envelope. */
  missing_operation_id: ['warning'],
  missing_task_type: ['warning'],
  missing_timestamp: ['warning'],
  /** `timestamp` is not an RFC 3339 instant: the event is not ordered. */
  invalid_timestamp: ['warning'],
  /** A status this version does not know: handed to `other`. */
  unknown_status: ['warning'],
  /** A non-terminal status newer than a terminal one that was applied. */
  after_terminal: ['warning'],
  /** The data part was only `{response: {…}}`: the sender's mistake, `data` is undefined. */
  wrapped_response: ['warning'],
  completed_without_data: ['warning'],
  later_artifact: ['warning'],
  /** A member that must not be there (contract.md §6.9). */
  report_has_aggregated_totals: ['warning'],
  report_has_notification_id: ['warning'],
  report_after_final: ['warning'],
  /** A report with more rows than are recorded as received (owed.md §3.1). */
  report_too_wide: ['warning'],
  /** A pulled window without `by_package` (owed.md §4.3). */
  pulled_without_packages: ['warning'],
  /** The body claims to be a delivery report and its members do not fit: handed to `other`. */
  invalid_delivery_report: ['warning'],
  /**
   * The sender has a `notificationToken`, and the delivery carries none (`token_mismatch`: another one). It
   * is a fact of the delivery, so only its own run shows it: a worker and `redrive` read the stored body.
   */
  token_missing: ['warning'],
  /** A known family's payload lacks an identifying member, or a member has the wrong type: passed to `other`. */
  invalid_notification: ['warning'],
  /** The result does not fit the schema given for its task type. */
  result_schema_mismatch: ['warning'],
  /** `result` of a `working` or `input-required` status has members of the wrong type. */
  invalid_progress: ['warning'],
  /** An agent-transport payload without `idempotency_key`: derived from the bytes. */
  derived_idempotency_key: ['warning'],
  /**
   * A number has more digits than a double holds: `data` and `envelope` have it changed, `rawBody` has it
   * exactly.
   */
  inexact_number: ['warning'],
  /**
   * With `registrations`: no operation of this seller has the `operation_id` (any more), and none has the
   * task.
   */
  operation_id_unknown: ['warning'],
  /** With `registrations`: the event names one operation, and its task belongs to another. */
  operation_id_mismatch: ['warning'],
  /**
   * With `registrations`: `context` differs from the one that was given to the call (compared as canonical
   * JSON).
   */
  context_mismatch: ['warning'],
  /** With `registrations`: the call was answered with the result at once, and no webhook should have followed. */
  webhook_after_terminal_response: ['warning'],

  // Thrown to the caller, or by a handler. A `Fault` has a code of a 503
  config_error: ['thrown'],
  permanent_error: ['thrown'],
  /** `CompareError`: the totals of a media buy cannot be compared now. */
  compare_failed: ['thrown'],
  vector_error: ['thrown'],
  /** `CallNotMadeError`: a fact that is needed before a call was refused. */
  call_not_made: ['thrown'],
  /**
   * The agent has no question of the transport about its tasks: the profile extension's skill takes its
   * place.
   */
  no_operation: ['thrown'],
  redirect_refused: ['thrown'],
  /** 429, or 503 with `Retry-After`. */
  seller_busy: ['thrown'],
  session_lost: ['thrown'],
  /** From the command line: exit code 2. */
  usage_error: ['thrown'],

  // `RegistrationError`
  /** An argument of a method: the message names it. */
  request_invalid: ['registration'],
  /** A part is larger than its limit. */
  request_too_large: ['registration'],
  /** The result of `call`, or the argument of `settle`, is not an answer of an operation. */
  answer_invalid: ['registration'],
  /** `maxOpen` operations of the seller have not ended. */
  too_many_open: ['registration'],
  /** A URL that is to be retired is in use, or was lately (told.md §4.1). */
  url_in_use: ['registration'],
  /** Encrypted under a secret that is not in `secrets`. */
  secret_missing: ['registration'],
  /** The stored ciphertext was changed, cut, or belongs to another row. */
  sealed_text_invalid: ['registration'],

  /** Somebody else's subscription has credentials that are unknown (subscriptions.md §2.3). */
  foreign_credentials: ['registration'],
  /** A subscription of the whole agent replaces all its others. */
  exclusive_required: ['registration'],
  /** The seller does not offer the event types for the account, or for the agent. */
  event_types_not_offered: ['registration'],
  /** The seller has no account, or several, with these members. */
  account_unknown: ['registration'],
  /** The account, or the agent, has no room for another subscription. */
  set_full: ['registration'],

  // `RegistryError`
  /** An argument is wrong (nothing was sent, `status` is undefined), or the registry answered 400 or another 4xx. */
  bad_request: ['registry'],
  /** 401, or there is no usable token. */
  unauthorized: ['registry'],
  forbidden: ['registry'],
  not_found: ['registry'],
  rate_limited: ['registry'],
  /** 5xx. */
  server: ['registry'],
  /** 2xx with a body that the contract does not allow, or a redirect, which is not followed. */
  invalid_answer: ['registry'],
  /** No complete answer: connection, time, size, or the caller's signal. */
  unreachable: ['registry'],
} as const;

type Table<T extends Readonly<Record<string, readonly CodeKind[]>>> = T;
type Codes = Table<typeof CODES>;

/** The codes that appear in a place of this kind. */
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
 * refusal, and its `option` names the setting if there is one.
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
