import type { Alarm, Logger, RaiseAlarm } from './alarms.ts';

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

/** A hook or logger of the owner's can neither change an answer nor break one: what it throws ends here. */
export function harmless<A extends readonly unknown[]>(
  hook: ((...args: A) => unknown) | undefined,
): (...args: A) => void {
  if (!hook) return silent;
  return (...args) => {
    try {
      const result = hook(...args);
      if (result instanceof Promise) result.catch(silent);
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

/** Every alarm is a line in the log and a call of the hook. */
export function alarmRaiser(logger: Logger, onAlarm: ((alarm: Alarm) => void) | undefined): RaiseAlarm {
  const hook = harmless(onAlarm);
  return (alarm) => {
    const { message, ...fields } = alarm;
    logger.warn(fields, message);
    hook(alarm);
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
