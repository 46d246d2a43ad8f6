import { ConfigError } from '../shared/errors.ts';
import type { WorkerOptions } from '../inbox/inbox-contract.ts';
import type { ReceiverOptions, RetryOptions } from './receiver-options.ts';
import { flag, MAX_TIMER_MS, oneOf, onlyKnown, wholeNumber } from './validate.ts';

/** When handlers run: before the reply, or later from the inbox. */
export type Mode = NonNullable<ReceiverOptions['mode']>;

/** Options that are whole numbers. */
type NumberName = {
  [K in keyof ReceiverOptions]-?: NonNullable<ReceiverOptions[K]> extends number ? K : never;
}[keyof ReceiverOptions];

/** Every one of them, given or by default. */
export type Numbers = Readonly<Record<NumberName, number>>;

/** What is read before a default that depends on it. */
type Before = Pick<Numbers, 'maxBodyBytes' | 'leaseMs'> & { readonly mode: Mode };

interface NumberRule<S = number | ((before: Before) => number)> {
  readonly kind: 'number';
  readonly standard: S;
  readonly min: number;
  readonly max?: number;
}

/** Without a default, `S` is undefined. */
interface ChoiceRule<T, S = T> {
  readonly kind: 'choice';
  readonly of: readonly T[];
  readonly standard: S;
}

/** Options that are one of some words, and have a default. */
type ChoiceName = 'mode' | 'requireDurability' | 'verification' | 'hostCheck';

/** `special`: checked by a function of its own. A flag is off by default. */
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
/** A record must outlive the nonces that are bound to it (at most 7 min), or a retry would count as a replay. */
const MIN_RETENTION_MS = 600_000;

/** In the inbox nobody waits for the handler, and a worker holds many leases: both may be longer. */
const byMode =
  (inline: number, inbox: number) =>
  ({ mode }: Before): number =>
    mode === 'inbox' ? inbox : inline;

const DURABILITIES = ['process', 'disk', 'failover'] as const;

/** Every option: its kind, default and bounds. What it is for says `ReceiverOptions`. */
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
  queueUnattendedMs: timer(60_000),
  resultSchemas: SPECIAL,
  registrations: SPECIAL,
  contentTypes: SPECIAL,
  maxBodyBytes: count(1_048_576),
  maxBufferedBytes: count(({ maxBodyBytes }) => Math.max(134_217_728, 8 * maxBodyBytes)),
  maxKeyDocumentBytes: count(536_870_912, 16_777_216),
  startMs: timer(30_000, 0),
  bodyDeadlineMs: timer(10_000),
  handlerDeadlineMs: timer(byMode(8_000, 900_000)),
  maxRunMs: timer(900_000),
  // Renewed four times, at least once a ms.
  leaseMs: timer(byMode(8_000, 30_000), 4),
  renewMs: timer(({ leaseMs }) => Math.floor(leaseMs / 4)),
  waitMs: timer(8_000, 0),
  retentionMs: count(DAY_MS, MIN_RETENTION_MS, 8 * DAY_MS),
  shorterRetentionToldToSenders: FLAG,
  maxRecordsPerSender: count(1_000_000),
  maxPendingBytesPerSender: count(268_435_456),
  maxNoncesPerKey: count(100_000),
  maxNoncesPerSender: count(200_000),
  maxNonces: count(10_000_000),
  requireDurability: choice(DURABILITIES, 'disk'),
  declaredDurability: choice(DURABILITIES, undefined),
  expectStoreId: SPECIAL,
  verification: choice(['main', 'pool', 'auto'], 'auto'),
  hostCheck: choice(['strict', 'off'], 'strict'),
  allowLoopback: FLAG,
  retry: SPECIAL,
  admissionPressure: SPECIAL,
  retryAfterSeconds: count(5, 0, DAY_MS / 1000),
  now: FUNCTION,
  fetch: FUNCTION,
  // `direct`, where connections are made: src/keys/net/document-fetch.ts.
  dns: choice(['direct', 'system'], undefined),
  logger: SPECIAL,
  onOutcome: FUNCTION,
  onHandled: FUNCTION,
  onAlarm: FUNCTION,
  onRefused: FUNCTION,
};

/** Options that are objects of numbers. */
export const RETRY: { readonly [K in keyof Required<RetryOptions>]: NumberRule<number> } = {
  attempts: count(12),
  baseMs: count(1_000),
  maxMs: count(300_000),
  crashes: count(5),
};
/** `batch` is `concurrency` where that is given. */
export const WORKER: { readonly [K in keyof Required<WorkerOptions>]: NumberRule<number> } = {
  concurrency: count(10, 1, 10_000),
  batch: count(10, 1, 10_000),
  pollMs: timer(1_000),
};

/** Names, and each option by itself, but for the special ones. @throws ConfigError with the fix. */
export function checkEach(options: ReceiverOptions): void {
  // A misspelt one would silently do nothing.
  onlyKnown('options', options, OPTIONS);
  for (const [name, rule] of Object.entries(OPTIONS) as [keyof ReceiverOptions, Rule][]) {
    const value: unknown = options[name];
    if (rule.kind === 'choice') oneOf(name, value as string | undefined, rule.of);
    if (rule.kind === 'flag') flag(name, value);
    // What is called later: there a slip would be swallowed, for a hook cannot break an answer.
    if (rule.kind === 'function' && value !== undefined && typeof value !== 'function') {
      throw new ConfigError(`${name}: must be a function.`);
    }
  }
}

/** @throws ConfigError where one is not a whole number within its bounds, or two contradict each other. */
export function numbersIn(options: ReceiverOptions): Numbers {
  const before: { -readonly [K in keyof Before]: Before[K] } & Partial<Record<NumberName, number>> = {
    mode: options.mode ?? OPTIONS.mode.standard,
    maxBodyBytes: 0,
    leaseMs: 0,
  };
  for (const [name, rule] of Object.entries(OPTIONS) as [NumberName, Rule][]) {
    if (rule.kind !== 'number') continue;
    const { standard, min, max } = rule;
    const fallback = typeof standard === 'number' ? standard : standard(before);
    before[name] = wholeNumber(name, options[name], fallback, min, max);
  }
  const { mode: _mode, ...numbers } = before;
  checkTogether(numbers as Numbers);
  return numbers as Numbers;
}

/**
 * What a table of numbers says of `given`.
 * @throws ConfigError where it is not an object (a bare number would silently count for nothing), or has another member.
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

function checkTogether(numbers: Numbers): void {
  const { maxBodyBytes, maxBufferedBytes, renewMs, leaseMs, maxRunMs, handlerDeadlineMs } = numbers;
  if (maxBufferedBytes < maxBodyBytes) {
    throw new ConfigError(
      `maxBufferedBytes: ${maxBufferedBytes} is under maxBodyBytes (${maxBodyBytes}): a body of that size could never be taken.`,
    );
  }
  if (renewMs >= leaseMs) {
    throw new ConfigError(
      `renewMs: ${renewMs} must be under leaseMs (${leaseMs}); a quarter of it is the default.`,
    );
  }
  if (maxRunMs < handlerDeadlineMs) {
    throw new ConfigError(
      `maxRunMs: ${maxRunMs} must not be under handlerDeadlineMs (${handlerDeadlineMs}).`,
    );
  }
}
