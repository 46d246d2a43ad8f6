// Makes the owner's logger and hooks harmless, thins repeated messages, and delivers alarms (admission.md
// §2.14, verification.md §2.30).
// Made once per receiver, registrations or poller.

import type { AlarmCode } from './codes.ts';
import { type Alarm, alarmDocsOf, type Logger, type RaiseAlarm } from './alarms.ts';
import { putBounded } from './bounded.ts';
import { printableText } from '../codec/printable.ts';
import { printableValue } from '../codec/printable-value.ts';
import { isThenable } from './realms.ts';

/**
 * Lets the first message about a subject in a minute pass.
 * @param at receiver's clock, Unix ms.
 * @returns the number held back before, if this one passes; undefined if it is held back.
 */
export type Thinning = (subject: string, at: number) => number | undefined;

/** One line a minute about a lasting fault is enough to see it, and too few to fill a log. */
const EVERY_MS = 60_000;
/** Most subjects remembered. A forgotten one passes early. */
const MAX_SUBJECTS = 10_000;

/**
 * Makes a thinning of bounded size, whatever the subjects are.
 * @param everyMs Infinity: once, as long as the subject is remembered.
 * @param most messages about one subject that pass in that time.
 */
export function createThinning(everyMs: number = EVERY_MS, most = 1): Thinning {
  const last = new Map<string, { readonly at: number; said: number; suppressed: number }>();
  return (subject, at) => {
    const before = last.get(subject);
    if (before && Math.abs(at - before.at) < everyMs) {
      before.said += 1;
      if (before.said <= most) return 0;
      before.suppressed += 1;
      return undefined;
    }
    putBounded(last, subject, { at, said: 1, suppressed: 0 }, MAX_SUBJECTS);
    return before?.suppressed ?? 0;
  };
}

const silent = (): void => {};

/**
 * The default logger: warnings and errors go to the console, so that a handler's exception is never silent.
 */
export function consoleLogger(): Logger {
  const write =
    (level: 'warn' | 'error') =>
    (fields: object, message: string): void => {
      // oxlint-disable-next-line no-console -- the one place that may
      console[level](`proto-webhooks: ${message}`, fields);
    };
  return { debug: silent, info: silent, warn: write('warn'), error: write('error') };
}

/**
 * Wraps a hook or logger of the owner's, so that it can neither change nor break an answer. Its errors and
 * rejections go to `failed`.
 */
export function harmless<A extends readonly unknown[]>(
  hook: ((...args: A) => unknown) | undefined,
  failed: (error: unknown) => void = silent,
): (...args: A) => void {
  if (!hook) return silent;
  return (...args) => {
    try {
      const result = hook(...args);
      if (isThenable(result)) result.then(undefined, failed);
    } catch (error) {
      failed(error);
    }
  };
}

/**
 * The owner's logger as the package uses it: it never throws, and all that it writes is printable and short,
 * even a stranger's words. No other logger has this type, so none can be used instead.
 */
export interface SafeLogger extends Logger {
  /** For the owner's own lines, which are written unchanged. */
  readonly own: Logger;
}

const LEVELS = ['debug', 'info', 'warn', 'error'] as const;

type Level = (typeof LEVELS)[number];

type Write = Logger['info'];

const loggerOf = (write: (level: Level) => Write): Logger =>
  Object.fromEntries(LEVELS.map((level) => [level, write(level)])) as unknown as Logger;

export function safeLogger(logger: Logger): SafeLogger {
  // A level that nobody reads is not made printable.
  const isSilent = (level: Level): boolean => logger[level] === silent;
  const own = loggerOf((level) =>
    isSilent(level) ? silent : harmless((fields: object, message: string) => logger[level](fields, message)),
  );
  const safe = loggerOf((level) =>
    isSilent(level)
      ? silent
      : (fields, message) => own[level](printableValue(fields), printableText(message)),
  );
  return { ...safe, own };
}

/**
 * Subject of alarms about refusals without a proved sender, which anybody can cause. They are about the
 * registered senders, and hide neither an alarm of a proved sender nor one that names another setting.
 */
const REFUSED: readonly string[] = ['sender', 'option', 'registered'];

/**
 * Members that make up an alarm's subject. Each subject is raised once a minute, and the next one carries the
 * number left out. Alarms that anybody can cause before the sender is known have no members, so that a flood
 * is one. `each`: never left out, because the owner has to decide on every one, or it is rare. `once`: one
 * per subject.
 */
const SUBJECTS: Readonly<
  Record<AlarmCode, readonly string[] | 'each' | { readonly once: readonly string[] }>
> = {
  dead: 'each',
  admission_pressure: 'each',
  payload_changed: ['sender', 'key'],
  second_terminal_status: { once: ['sender', 'taskId'] },
  end_dropped: { once: ['sender', 'taskId'] },
  terminal_differs: ['sender', 'taskId', 'operationId'],
  timestamp_ahead: ['sender'],
  nonconforming_sender: ['sender', 'warning'],
  token_mismatch: ['sender'],
  challenge_refused: ['sender', 'message'],
  legacy_auth_used: ['sender'],
  cap_near: ['sender', 'limit'],
  cap_reached: ['sender', 'limit'],
  host_rewritten: ['sender'],
  public_url_mismatch: ['sender'],
  // A stranger's delivery must not suppress a finding of ours.
  clock_skew: ['proved'],
  agent_not_listed: ['sender', 'url'],
  key_purpose_refused: ['sender'],
  key_shared: ['sender', 'keyid'],
  key_owner_unchecked: ['sender', 'other'],
  // Raised once for each value: one that is left out would never be told.
  jwks_uri_moved: ['sender', 'jwksUri', 'url'],
  publisher_pins: ['sender', 'url'],
  pin_not_published: ['sender', 'keyid'],
  key_document_invalid: ['sender', 'url', 'document'],
  key_fetch_failing: ['url'],
  revocation_stale: ['sender', 'url'],
  revocation_overflow: ['url'],
  // Ours, and few: the message says what is wrong.
  misconfigured: ['message'],
  durability_lowered: [],
  store_away: 'each',
  handlers_failing: 'each',
  sink_unavailable: 'each',
  store_created: 'each',
  config_rejected: 'each',
  operation_orphaned: 'each',
  answer_refused: 'each',
  operation_refused: 'each',
  task_unresolved: 'each',
  report_missing: 'each',
  subscription_lost: 'each',
  subscription_refused: 'each',
  retired_url_used: 'each',
  registration_drift: 'each',
  report_unrecoverable: 'each',
  stream_unverifiable: 'each',
  final_absent: 'each',
  totals_differ: 'each',
  impairment_missed: 'each',
  task_unknown: 'each',
  poll_failing: ['sender', 'refusal'],
  senders_failed: [],
  overloaded: [],
  sodium_unusable: 'each',
  queue_unattended: [],
  clock_stepped: [],
  unsupported_media_type: REFUSED,
  unsupported_content_encoding: REFUSED,
  payload_too_large: REFUSED,
  webhook_signature_header_malformed: REFUSED,
  webhook_signature_tag_invalid: REFUSED,
  webhook_signature_key_unknown: REFUSED,
  webhook_signature_key_revoked: REFUSED,
  webhook_signature_invalid: REFUSED,
  webhook_signature_digest_mismatch: REFUSED,
  webhook_mode_mismatch: REFUSED,
};

/** Most alarms of one code and sender in a minute, because a sender can make any number of subjects. */
const MOST_OF_SENDER = 100;

/** Longest subject in characters: anybody could make some longer. */
const MAX_SUBJECT = 512;

function subjectOf(alarm: Alarm, members: readonly string[]): string {
  return JSON.stringify([alarm.code, ...members.map((name) => alarm[name])]).slice(0, MAX_SUBJECT);
}

/** The owner's options for alarms. */
interface AlarmOptions {
  readonly logger?: Logger | undefined;
  readonly onAlarm?: ((alarm: Alarm) => void) | undefined;
}

/**
 * Writes every alarm to the log and calls the hook; floods are thinned, with the number left out. If the
 * owner has a hook and logs to the console, the console gets only alarms that the hook failed to take. An
 * owner who prints alarms would otherwise read each twice.
 */
export function alarmRaiser(
  logger: SafeLogger,
  { logger: given, onAlarm }: AlarmOptions,
  now: () => number,
): RaiseAlarm {
  const isLogged = onAlarm === undefined || (given !== undefined && given !== globalThis.console);
  const thinned = createThinning();
  const once = createThinning(Infinity);
  const ofSender = createThinning(EVERY_MS, MOST_OF_SENDER);
  const suppressedOf = (raised: Alarm): number | undefined => {
    const about = SUBJECTS[raised.code];
    if (about === 'each') return 0;
    const suppressed =
      'once' in about ? once(subjectOf(raised, about.once), now()) : thinned(subjectOf(raised, about), now());
    if (suppressed === undefined || raised.sender === undefined) return suppressed;
    const others = ofSender(subjectOf(raised, ['sender']), now());
    return others === undefined ? undefined : suppressed + others;
  };
  return (raised) => {
    const suppressed = suppressedOf(raised);
    if (suppressed === undefined) return;
    const alarm = printableValue(suppressed > 0 ? { ...raised, suppressed } : raised);
    const { message, ...fields } = alarm;
    const line = (): void => logger.warn({ ...fields, docs: alarmDocsOf(raised.code) }, message);
    if (isLogged) line();
    // An alarm whose hook failed is logged instead.
    harmless(onAlarm, isLogged ? undefined : line)(alarm);
  };
}

/** Written member by member, because each delivery makes one for its handler. */
const withFields = (to: Logger, bound: object): Logger => ({
  debug: (fields, message) => to.debug({ ...bound, ...fields }, message),
  info: (fields, message) => to.info({ ...bound, ...fields }, message),
  warn: (fields, message) => to.warn({ ...bound, ...fields }, message),
  error: (fields, message) => to.error({ ...bound, ...fields }, message),
});

/** A logger that adds `bound` to every line. */
export const boundLogger = (logger: SafeLogger, bound: object): SafeLogger => ({
  ...withFields(logger, bound),
  own: withFields(logger.own, bound),
});
