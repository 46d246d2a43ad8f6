// Wraps the owner's logger and hooks so that they can do no harm, limits repeated messages, and delivers alarms
// (admission.md §2.14, verification.md §2.30).
// Made once per receiver, registrations or poller.

import type { AlarmCode } from './codes.ts';
import { type Alarm, alarmDocsOf, type Logger, type RaiseAlarm } from './alarms.ts';
import { putBounded } from './bounded.ts';
import { printableText } from '../codec/printable.ts';
import { printableValue } from '../codec/printable-value.ts';
import { isThenable } from './realms.ts';

/**
 * Limits the messages about each subject, usually to one a minute.
 * @param at the time on the receiver's clock, Unix ms.
 * @returns undefined if the message must be left out. Otherwise the number of messages about the subject that were left
 * out before it.
 */
export type Thinning = (subject: string, at: number) => number | undefined;

/** The period of the limit, ms. One line a minute is enough to notice a lasting fault, and too few to fill a log. */
const EVERY_MS = 60_000;
/** The most subjects that are remembered. A message about a forgotten subject is let through early. */
const MAX_SUBJECTS = 10_000;

/**
 * Makes a function that limits the messages about each subject. It remembers a bounded number of subjects.
 * @param everyMs the period; Infinity allows `most` messages for as long as the subject is remembered.
 * @param most messages about one subject that are let through in a period.
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

/** The default logger. Warnings and errors go to the console, so that a handler's exception is never silent. */
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
 * Wraps a hook or logger of the owner so that it cannot change or break an answer. Its errors and rejections are
 * passed to `failed`.
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
 * The owner's logger in the form that the package uses. It never throws, and all that it writes is short and
 * printable, even text of strangers. No other logger has this type, so none can be used by mistake.
 */
export interface SafeLogger extends Logger {
  /** Writes lines unchanged, for messages of the owner's own code. */
  readonly own: Logger;
}

const LEVELS = ['debug', 'info', 'warn', 'error'] as const;

type Level = (typeof LEVELS)[number];

type Write = Logger['info'];

const loggerOf = (write: (level: Level) => Write): Logger =>
  Object.fromEntries(LEVELS.map((level) => [level, write(level)])) as unknown as Logger;

export function safeLogger(logger: Logger): SafeLogger {
  // True if nothing is logged at this level. Then the values need not be converted to printable ones.
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
 * The members of an alarm about a refused delivery that make up its subject. If nobody is authenticated, the alarm has
 * no `sender`, but the senders that are `registered` at the URL. So a stranger's delivery suppresses neither an alarm
 * about an authenticated sender nor one with another `option`.
 */
const REFUSED: readonly string[] = ['sender', 'option', 'registered'];

/**
 * For each alarm code, the members of the alarm that make up its subject. Alarms with the same subject are raised once
 * a minute; the next one has the number of those left out. An alarm that anybody can cause without authentication has
 * no members, so that a flood is one alarm.
 *
 * `each`: no alarm is left out, because the owner must decide on every one, or because it is rare. `once`: alarms with
 * the same subject are raised only once.
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
  // `proved` is part of the subject, so that an alarm without evidence, which a stranger can cause, suppresses none
  // with evidence.
  clock_skew: ['proved'],
  agent_not_listed: ['sender', 'url'],
  key_purpose_refused: ['sender'],
  key_shared: ['sender', 'keyid'],
  key_owner_unchecked: ['sender', 'other'],
  // An alarm about a new URL or key must not be left out, so the URL or key is part of the subject.
  jwks_uri_moved: ['sender', 'jwksUri', 'url'],
  publisher_pins: ['sender', 'url'],
  pin_not_published: ['sender', 'keyid'],
  key_document_invalid: ['sender', 'url', 'document'],
  key_fetch_failing: ['url'],
  revocation_stale: ['sender', 'url'],
  revocation_overflow: ['url'],
  // Alarms with different messages do not suppress each other: each names another wrong setting, and there are few.
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

/** Most alarms with one code about one sender in a minute, because a sender can cause any number of subjects. */
const MOST_OF_SENDER = 100;

/** The longest subject in characters. Anybody could make some subjects longer, e.g. by long URLs. */
const MAX_SUBJECT = 512;

function subjectOf(alarm: Alarm, members: readonly string[]): string {
  return JSON.stringify([alarm.code, ...members.map((name) => alarm[name])]).slice(0, MAX_SUBJECT);
}

interface AlarmOptions {
  readonly logger?: Logger | undefined;
  readonly onAlarm?: ((alarm: Alarm) => void) | undefined;
}

/**
 * Returns a function that writes every alarm to the log and calls the owner's hook. In a flood, alarms are left out
 * and counted. If the owner has a hook and logs to the console, the console gets only alarms for which the hook
 * failed. Otherwise an owner whose hook prints alarms would see each of them twice.
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
    // If the hook fails and the alarm was not logged before, it is logged then.
    harmless(onAlarm, isLogged ? undefined : line)(alarm);
  };
}

/**
 * Makes a logger that adds members to each line. Each method is written out, for speed, because every delivery makes
 * such a logger for its handler.
 */
const withFields = (to: Logger, bound: object): Logger => ({
  debug: (fields, message) => to.debug({ ...bound, ...fields }, message),
  info: (fields, message) => to.info({ ...bound, ...fields }, message),
  warn: (fields, message) => to.warn({ ...bound, ...fields }, message),
  error: (fields, message) => to.error({ ...bound, ...fields }, message),
});

/** Returns a logger that adds the members of `bound` to every line. */
export const boundLogger = (logger: SafeLogger, bound: object): SafeLogger => ({
  ...withFields(logger, bound),
  own: withFields(logger.own, bound),
});
