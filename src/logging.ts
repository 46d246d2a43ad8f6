import type { Alarm, AlarmCode, Logger, RaiseAlarm } from './alarms.ts';

const silent = (): void => {};

/** Where no logger is given: warnings and errors go to the console, so that a handler's exception is never silent. */
export function consoleLogger(): Logger {
  const write =
    (level: 'warn' | 'error') =>
    (fields: object, message: string): void => {
      // oxlint-disable-next-line no-console -- the one place that may
      console[level](`proto-webhooks: ${message}`, fields);
    };
  return { debug: silent, info: silent, warn: write('warn'), error: write('error') };
}

/** Promises of other realms and libraries too: one that nobody listens to would end the process. */
function isThenable(value: unknown): value is PromiseLike<unknown> {
  return typeof (value as Partial<PromiseLike<unknown>> | null | undefined)?.then === 'function';
}

/** A hook or logger of the owner's can neither change an answer nor break one: what it throws ends here. */
export function harmless<A extends readonly unknown[]>(
  hook: ((...args: A) => unknown) | undefined,
): (...args: A) => void {
  if (!hook) return silent;
  return (...args) => {
    try {
      const result = hook(...args);
      if (isThenable(result)) result.then(undefined, silent);
    } catch {
      // The owner's hook failed; the delivery goes on.
    }
  };
}

export function harmlessLogger(logger: Logger): Logger {
  return {
    debug: harmless((fields: object, message: string) => logger.debug(fields, message)),
    info: harmless((fields: object, message: string) => logger.info(fields, message)),
    warn: harmless((fields: object, message: string) => logger.warn(fields, message)),
    error: harmless((fields: object, message: string) => logger.error(fields, message)),
  };
}

/** What anyone can cause before a signature has verified: one alarm in this many ms, or a flood would be the pager's. */
const UNAUTHENTICATED_EVERY_MS = 60_000;
const UNAUTHENTICATED: ReadonlySet<AlarmCode> = new Set<AlarmCode>([
  'clock_skew',
  'payload_too_large',
  'unsupported_media_type',
  'unsupported_content_encoding',
  'key_purpose_refused',
  'overloaded',
  'misconfigured',
  'senders_failed',
]);

/** Every delivery has them until one option is changed: one line says which. */
const LOGGED_ONCE: ReadonlySet<AlarmCode> = new Set<AlarmCode>(['host_rewritten']);

/** Every alarm is a line in the log and a call of the hook; floods are thinned, with the number left out. */
export function alarmRaiser(
  logger: Logger,
  onAlarm: ((alarm: Alarm) => void) | undefined,
  now: () => number,
): RaiseAlarm {
  const hook = harmless(onAlarm);
  const last = new Map<AlarmCode, { at: number; suppressed: number }>();
  const logged = new Set<AlarmCode>();
  const raise: RaiseAlarm = (alarm) => {
    const { message, ...fields } = alarm;
    if (!logged.has(alarm.code)) logger.warn(fields, message);
    if (LOGGED_ONCE.has(alarm.code)) logged.add(alarm.code);
    hook(alarm);
  };
  return (alarm) => {
    if (!UNAUTHENTICATED.has(alarm.code)) {
      raise(alarm);
      return;
    }
    const before = last.get(alarm.code);
    if (before && Math.abs(now() - before.at) < UNAUTHENTICATED_EVERY_MS) {
      before.suppressed += 1;
      return;
    }
    last.set(alarm.code, { at: now(), suppressed: 0 });
    raise(before?.suppressed ? { ...alarm, suppressed: before.suppressed } : alarm);
  };
}

/** A logger whose every line carries `bound`. */
export function boundLogger(logger: Logger, bound: object): Logger {
  return {
    debug: (fields, message) => logger.debug({ ...bound, ...fields }, message),
    info: (fields, message) => logger.info({ ...bound, ...fields }, message),
    warn: (fields, message) => logger.warn({ ...bound, ...fields }, message),
    error: (fields, message) => logger.error({ ...bound, ...fields }, message),
  };
}
