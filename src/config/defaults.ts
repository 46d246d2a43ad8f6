// The table of all options (kind, default and bounds of each), and the checks that follow from the table (admission.md
// §2.12). Called by the checks of a receiver's and of a verifier's options.
import { ConfigError } from '../shared/errors.ts';
import type { WorkerOptions } from '../inbox/inbox-contract.ts';
import type { AdvancedOptions } from './advanced-options.ts';
import type { DurabilityOptions, ReceiverOptions, RetryOptions } from './receiver-options.ts';
import type { Durability } from '../stores/store.ts';
import { LONGEST_LEASE_MS, LONGEST_WAIT_MS } from '../stores/constants.ts';
import { flag, MAX_TIMER_MS, oneOf, onlyKnown, wholeNumber } from './validate.ts';

/** The mode: handlers run before the answer (`inline`), or later in a worker (`inbox`). */
export type Mode = NonNullable<ReceiverOptions['mode']>;

/** The names of the members of `O` that are whole numbers. */
type NumberNames<O> = { [K in keyof O]-?: NonNullable<O[K]> extends number ? K : never }[keyof O];

/** The names of options that are whole numbers. `AdvancedNumber` has those under `advanced`. */
type NumberName = NumberNames<ReceiverOptions>;
type AdvancedNumber = NumberNames<AdvancedOptions>;

/** The values of all options that are numbers, given or by default. */
export type Numbers = Readonly<Record<NumberName | AdvancedNumber, number>>;

/** The options from which defaults of other options are computed. They are read first. */
type Before = Pick<
  Numbers,
  'maxBodyBytes' | 'leaseMs' | 'handlerDeadlineMs' | 'maxNonces' | 'maxNoncesPerSender'
> & { readonly mode: Mode };

interface NumberRule<S = number | ((before: Before) => number)> {
  readonly kind: 'number';
  readonly standard: S;
  readonly min: number;
  readonly max?: number;
}

/**
 * The rule of an option that is one of several words. `S` is the type of the default, undefined if there is no default.
 */
interface ChoiceRule<T, S = T> {
  readonly kind: 'choice';
  readonly of: readonly T[];
  readonly standard: S;
}

/** The names of options that are one of several words and have a default. */
type ChoiceName = 'mode' | 'verification' | 'hostCheck';

/**
 * The rule of an option. `special`: a function of its own checks the option. `flag`: true or false; the default is
 * false.
 */
type Rule =
  NumberRule | ChoiceRule<string, string | undefined> | { readonly kind: 'flag' | 'function' | 'special' };

const count = <S extends NumberRule['standard']>(standard: S, min = 1, max?: number): NumberRule<S> => ({
  kind: 'number',
  standard,
  min,
  ...(max !== undefined && { max }),
});
const timer = <S extends NumberRule['standard']>(standard: S, min = 1): NumberRule<S> =>
  count(standard, min, MAX_TIMER_MS);
const choice = <T extends string, S extends T | undefined>(
  of: readonly T[],
  standard: S,
): ChoiceRule<T, S> => ({ kind: 'choice', of, standard });
const FLAG: Rule = { kind: 'flag' };
const FUNCTION: Rule = { kind: 'function' };
const SPECIAL: Rule = { kind: 'special' };

export const DAY_MS = 86_400_000;
/**
 * The shortest `retentionMs`. A stored event must outlive the nonces that are bound to it (at most 7 min); otherwise a
 * retry would count as a replay.
 */
const MIN_RETENTION_MS = 600_000;
const MAX_RETENTION_MS = 8 * DAY_MS;

/**
 * Makes a default that depends on the mode. In mode `inbox` no seller waits for the handler, and a worker holds many
 * leases. So `handlerDeadlineMs` and `leaseMs` are longer there.
 */
const byMode =
  (inline: number, inbox: number) =>
  ({ mode }: Before): number =>
    mode === 'inbox' ? inbox : inline;

/** Returns twice `ms`, but at least `least`, and at most the longest time of a timer. */
const twice = (ms: number, least: number): number => Math.min(Math.max(least, 2 * ms), MAX_TIMER_MS);

const DURABILITIES = ['process', 'disk', 'failover'] as const;

/** Every option: its kind, default and bounds. The comments of `ReceiverOptions` describe each option. */
export const OPTIONS: {
  readonly [K in keyof Required<ReceiverOptions>]: K extends NumberName
    ? NumberRule
    : K extends ChoiceName
      ? ChoiceRule<NonNullable<ReceiverOptions[K]>>
      : Rule;
} = {
  publicUrl: SPECIAL,
  senders: SPECIAL,
  store: SPECIAL,
  handlers: SPECIAL,
  onChallenge: FUNCTION,
  protocol: SPECIAL,
  edition: SPECIAL,
  mode: choice(['inline', 'inbox'], 'inline'),
  worker: SPECIAL,
  resultSchemas: SPECIAL,
  registrations: SPECIAL,
  contentTypes: SPECIAL,
  maxBodyBytes: count(1_048_576),
  handlerDeadlineMs: timer(byMode(8_000, 900_000)),
  // The minimum is 4, because a lease is renewed four times, at most once per ms.
  leaseMs: count(byMode(8_000, 30_000), 4, LONGEST_LEASE_MS),
  retentionMs: SPECIAL,
  maxRecordsPerSender: count(1_000_000),
  maxPendingBytesPerSender: count(268_435_456),
  // The widest limit comes first. No limit may exceed the one in the line above, because that one would be reached
  // sooner.
  maxNonces: count(10_000_000),
  maxNoncesPerSender: count(({ maxNonces }) => Math.min(200_000, maxNonces)),
  maxNoncesPerKey: count(({ maxNoncesPerSender }) => Math.min(100_000, maxNoncesPerSender)),
  durability: SPECIAL,
  expectStoreId: SPECIAL,
  verification: choice(['main', 'pool', 'auto'], 'auto'),
  hostCheck: choice(['strict', 'off'], 'strict'),
  allowLoopback: FLAG,
  retry: SPECIAL,
  now: FUNCTION,
  fetch: FUNCTION,
  logger: SPECIAL,
  onOutcome: FUNCTION,
  onHandled: FUNCTION,
  onAlarm: FUNCTION,
  onRefused: SPECIAL,
  advanced: SPECIAL,
};

/** Every option under `advanced`: its kind, default and bounds. */
export const ADVANCED: {
  readonly [K in keyof Required<AdvancedOptions>]: K extends AdvancedNumber ? NumberRule : Rule;
} = {
  renewMs: timer(({ leaseMs }) => Math.floor(leaseMs / 4)),
  // In mode `inline` a duplicate waits for as long as the first copy's handler may run.
  waitMs: timer(({ mode, handlerDeadlineMs }) => (mode === 'inbox' ? 8_000 : handlerDeadlineMs), 0),
  maxRunMs: timer(({ handlerDeadlineMs }) => twice(handlerDeadlineMs, 900_000)),
  queueUnattendedMs: timer(({ leaseMs }) => twice(leaseMs, 60_000)),
  retryAfterMs: count(5_000, 0, DAY_MS),
  startMs: timer(30_000, 0),
  bodyDeadlineMs: timer(10_000),
  maxBufferedBytes: count(({ maxBodyBytes }) => Math.max(134_217_728, 8 * maxBodyBytes)),
  maxKeyDocumentBytes: count(536_870_912, 16_777_216),
  // The default, `direct`, is set where connections are made: src/keys/net/document-fetch.ts.
  dns: choice(['direct', 'system'], undefined),
  admissionPressure: SPECIAL,
};

/** Returns, for each name, the advice that the option belongs in `advanced`. */
const insideAdvanced = (names: object): Readonly<Record<string, string>> =>
  Object.fromEntries(Object.keys(names).map((name) => [name, `advanced: { ${name}: … }`]));

/** The members of the option `retry`, with their defaults and bounds. */
export const RETRY: { readonly [K in keyof Required<RetryOptions>]: NumberRule<number> } = {
  attempts: count(12),
  baseMs: count(1_000),
  maxMs: count(300_000, 1, LONGEST_WAIT_MS),
  crashes: count(5),
};
/**
 * The members of the option `worker`, with their defaults and bounds. If `batch` is not given, it is set to
 * `concurrency`.
 */
export const WORKER: { readonly [K in keyof Required<WorkerOptions>]: NumberRule<number> } = {
  concurrency: count(10, 1, 10_000),
  batch: count(10, 1, 10_000),
  pollMs: timer(1_000),
};

/** Options that a receiver or a verifier may have. */
export type AnyOptions = Omit<ReceiverOptions, 'store' | 'handlers'> &
  Partial<Pick<ReceiverOptions, 'store'>>;

/** The names of the options that exist, and of those under `advanced`. */
interface Known {
  readonly options: object;
  readonly advanced: object;
}

const RECEIVERS: Known = { options: OPTIONS, advanced: ADVANCED };

/**
 * Checks the names of all options, and each value by its rule, except rules of kind `special`. @throws ConfigError with
 * the fix.
 */
export function checkEach(options: AnyOptions, known: Known = RECEIVERS): void {
  // An unknown name is refused, because a misspelt option would silently do nothing.
  onlyKnown('options', options, known.options, insideAdvanced(known.advanced));
  checkRules('', options as ReceiverOptions, OPTIONS);
  const { advanced = {} } = options;
  onlyKnown('advanced', advanced, known.advanced);
  checkRules('advanced.', advanced, ADVANCED);
}

function checkRules<O extends object>(
  where: string,
  options: O,
  rules: { readonly [K in keyof Required<O>]: Rule },
): void {
  for (const [member, rule] of Object.entries(rules) as [keyof O & string, Rule][]) {
    const value: unknown = options[member];
    const name = where + member;
    if (rule.kind === 'choice') oneOf(name, value as string | undefined, rule.of);
    if (rule.kind === 'flag') flag(name, value);
    // The type is checked now. Hooks are called later and their errors are ignored, so that a wrong type would go
    // unnoticed.
    if (rule.kind === 'function' && value !== undefined && typeof value !== 'function') {
      throw new ConfigError(`${name}: must be a function.`);
    }
  }
}

/**
 * Reads all options that are numbers.
 * @throws ConfigError if one is not a whole number within its bounds, or two contradict each other.
 */
export function numbersIn(options: AnyOptions): Numbers {
  const numbers: Record<string, number> = {};
  const mode = options.mode ?? OPTIONS.mode.standard;
  const read = (where: string, given: object, rules: Readonly<Record<string, Rule>>): void => {
    for (const [name, rule] of Object.entries(rules)) {
      if (rule.kind !== 'number') continue;
      const { standard, min, max } = rule;
      // A default may depend on other numbers. Those precede it in the table, so they have been read.
      const fallback = typeof standard === 'number' ? standard : standard({ ...(numbers as Numbers), mode });
      const value = (given as Readonly<Record<string, number | undefined>>)[name];
      numbers[name] = wholeNumber(where + name, value, fallback, min, max);
    }
  };
  read('', options, OPTIONS);
  read('advanced.', options.advanced ?? {}, ADVANCED);
  checkTogether(numbers as Numbers);
  return numbers as Numbers;
}

/**
 * Reads `retentionMs`, ms. @throws ConfigError for a time out of bounds, or for less than 24 h without `toldToSenders`.
 */
export function retentionIn({ retentionMs = DAY_MS }: AnyOptions): number {
  if (typeof retentionMs !== 'object' || retentionMs === null) {
    const ms = wholeNumber('retentionMs', retentionMs, DAY_MS, MIN_RETENTION_MS, MAX_RETENTION_MS);
    if (ms >= DAY_MS) return ms;
    throw new ConfigError(
      `retentionMs: ${ms} is under 24 h (${DAY_MS}), which the contract requires. Raise it, or tell every sender its shorter window and write retentionMs: { ms: ${ms}, toldToSenders: true }.`,
    );
  }
  onlyKnown('retentionMs', retentionMs, { ms: true, toldToSenders: true });
  const { ms, toldToSenders }: { readonly ms?: number; readonly toldToSenders?: unknown } = retentionMs;
  if (ms === undefined || toldToSenders !== true) {
    throw new ConfigError(
      'retentionMs: must be a number of ms, or { ms, toldToSenders: true } if senders know it.',
    );
  }
  return wholeNumber('retentionMs.ms', ms, DAY_MS, MIN_RETENTION_MS, MAX_RETENTION_MS);
}

/** The durability that a store must have, and the durability that the owner declares for the store. */
export interface RequiredDurability {
  readonly required: Durability;
  readonly declared: Durability | undefined;
}

const DURABILITY_NAMES: Readonly<Record<keyof DurabilityOptions, true>> = { require: true, declared: true };

/** Reads the option `durability`. @throws ConfigError for an unknown member or value. */
export function durabilityIn(options: AnyOptions): RequiredDurability {
  const { durability = {}, store, allowLoopback } = options;
  if (typeof durability !== 'object' || durability === null) {
    throw new ConfigError("durability: must be an object like { require: 'disk' }.");
  }
  onlyKnown('durability', durability, DURABILITY_NAMES);
  const required = oneOf('durability.require', durability.require, DURABILITIES);
  const declared = oneOf('durability.declared', durability.declared, DURABILITIES);
  // In development (`allowLoopback`) a memory store is accepted, because nobody expects it to survive the process.
  const standard = store?.name === 'memory' && allowLoopback ? 'process' : 'disk';
  return { required: required ?? standard, declared };
}

/**
 * Reads an option that is an object of numbers, by the rules of its members.
 * @throws ConfigError for an unknown member, and for a value that is no object: a bare number would silently have no
 * effect.
 */
export function numbersOf<N extends string>(
  where: string,
  numbers: { readonly [K in N]?: number },
  rules: Readonly<Record<N, NumberRule<number>>>,
): Readonly<Record<N, number>> {
  const entries = Object.entries(rules) as [N, NumberRule<number>][];
  const [[example, { standard }] = ['', { standard: 0 }]] = entries;
  if (typeof numbers !== 'object' || numbers === null) {
    throw new ConfigError(`${where}: must be an object like { ${example}: ${standard} }.`);
  }
  onlyKnown(where, numbers, rules);
  return Object.fromEntries(
    entries.map(([name, { standard: fallback, min, max }]) => [
      name,
      wholeNumber(`${where}.${name}`, numbers[name], fallback, min, max),
    ]),
  ) as Record<N, number>;
}

/** A limit: the name of the option, and its value. */
type Cap = readonly [name: string, value: number];

/**
 * Requires a limit to be at most as large as a wider limit.
 * @throws ConfigError if it is larger. Then it has no effect, because the wider limit is reached first.
 */
export function requireWithin([name, value]: Cap, [wider, most]: Cap): void {
  if (value <= most) return;
  throw new ConfigError(
    `${name}: ${value} is over ${wider} (${most}), which is reached before it. Lower it, or raise ${wider}.`,
  );
}

function checkTogether(numbers: Numbers): void {
  const { maxBodyBytes, maxBufferedBytes, renewMs, leaseMs, maxRunMs, handlerDeadlineMs } = numbers;
  const { maxNoncesPerKey, maxNoncesPerSender, maxNonces } = numbers;
  requireWithin(['maxNoncesPerKey', maxNoncesPerKey], ['maxNoncesPerSender', maxNoncesPerSender]);
  requireWithin(['maxNoncesPerSender', maxNoncesPerSender], ['maxNonces', maxNonces]);
  if (maxBufferedBytes < maxBodyBytes) {
    throw new ConfigError(
      `advanced.maxBufferedBytes: ${maxBufferedBytes} is under maxBodyBytes (${maxBodyBytes}): a body of that size could never be accepted. Raise it.`,
    );
  }
  if (renewMs >= leaseMs) {
    throw new ConfigError(
      `advanced.renewMs: ${renewMs} must be under leaseMs (${leaseMs}); a quarter of it is the default.`,
    );
  }
  if (maxRunMs < handlerDeadlineMs) {
    throw new ConfigError(
      `advanced.maxRunMs: ${maxRunMs} must not be under handlerDeadlineMs (${handlerDeadlineMs}); twice that is the default.`,
    );
  }
}
