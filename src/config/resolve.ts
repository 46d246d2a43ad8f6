import type { Verification } from '../crypto/engine.ts';
import { type Edition, editionFor, type Protocol, protocolFor } from '../protocol.ts';
import { ConfigError } from '../errors.ts';
import type { AdmissionPressure } from '../keys/admission-pressure.ts';
import type { WorkerOptions } from '../inbox/contract.ts';
import type { ReceiverOptions } from '../options.ts';
import type { RetryLimits, StoreLimits } from '../stores/contract.ts';
import { contentTypes } from './content-types.ts';
import { checkParts, pressureThresholds, verificationOf } from './parts.ts';
import { publicUrlOf, type PublicUrl } from './public-url.ts';
import { senderSource, type ResolveSenders } from './senders.ts';
import { flag, MAX_TIMER_MS, oneOf, onlyKnown, wholeNumber } from './validate.ts';

/** `ReceiverOptions` after validation, every default applied. Durations in ms. */
export interface Config {
  readonly protocol: Protocol;
  readonly edition: Edition;
  readonly mode: Mode;
  readonly worker: Required<WorkerOptions>;
  readonly queueUnattendedMs: number;
  readonly publicUrl: PublicUrl;
  readonly senders: ResolveSenders;
  /** Beside `application/json`; lower case. */
  readonly contentTypes: ReadonlySet<string>;
  readonly maxBodyBytes: number;
  readonly maxBufferedBytes: number;
  readonly bodyDeadlineMs: number;
  readonly handlerDeadlineMs: number;
  readonly maxRunMs: number;
  readonly leaseMs: number;
  readonly renewMs: number;
  readonly waitMs: number;
  readonly retentionMs: number;
  readonly limits: StoreLimits;
  readonly retry: RetryLimits & { readonly baseMs: number; readonly maxMs: number };
  readonly admissionPressure: AdmissionPressure;
  readonly retryAfterSeconds: number;
  readonly verification: Verification;
  readonly hostCheck: 'strict' | 'off';
  readonly allowLoopback: boolean;
}

/** When handlers run: before the reply, or later from the inbox. */
export type Mode = NonNullable<ReceiverOptions['mode']>;

/** In the inbox nobody waits for the handler, and a worker holds many leases: both may be longer. */
const DEFAULTS: Record<Mode, Pick<Config, 'leaseMs' | 'handlerDeadlineMs'>> = {
  inline: { leaseMs: 8_000, handlerDeadlineMs: 8_000 },
  inbox: { leaseMs: 30_000, handlerDeadlineMs: 900_000 },
};

const DAY_MS = 86_400_000;
/** A record must outlive the nonces that are bound to it (at most 7 min), or a retry would count as a replay. */
const MIN_RETENTION_MS = 600_000;

function retention(options: ReceiverOptions): number {
  const told = flag('shorterRetentionToldToSenders', options.shorterRetentionToldToSenders);
  const ms = wholeNumber('retentionMs', options.retentionMs, DAY_MS, MIN_RETENTION_MS, 8 * DAY_MS);
  if (ms < DAY_MS && !told) {
    throw new ConfigError(
      `retentionMs: ${ms} is under 24 h (${DAY_MS}), which the contract requires. Raise it, or tell every sender its shorter window and set shorterRetentionToldToSenders: true.`,
    );
  }
  return ms;
}

function leaseTimes(
  options: ReceiverOptions,
): Pick<Config, 'leaseMs' | 'renewMs' | 'handlerDeadlineMs' | 'maxRunMs'> {
  const defaults = DEFAULTS[options.mode ?? 'inline'];
  const leaseMs = wholeNumber('leaseMs', options.leaseMs, defaults.leaseMs, 4, MAX_TIMER_MS);
  const renewMs = wholeNumber('renewMs', options.renewMs, Math.floor(leaseMs / 4), 1, MAX_TIMER_MS);
  if (renewMs >= leaseMs) {
    throw new ConfigError(
      `renewMs: ${renewMs} must be under leaseMs (${leaseMs}); a quarter of it is the default.`,
    );
  }
  const handlerDeadlineMs = wholeNumber(
    'handlerDeadlineMs',
    options.handlerDeadlineMs,
    defaults.handlerDeadlineMs,
    1,
    MAX_TIMER_MS,
  );
  const maxRunMs = wholeNumber('maxRunMs', options.maxRunMs, 900_000, 1, MAX_TIMER_MS);
  if (maxRunMs < handlerDeadlineMs) {
    throw new ConfigError(
      `maxRunMs: ${maxRunMs} must not be under handlerDeadlineMs (${handlerDeadlineMs}).`,
    );
  }
  return { leaseMs, renewMs, handlerDeadlineMs, maxRunMs };
}

function bodyLimits(
  options: ReceiverOptions,
): Pick<Config, 'maxBodyBytes' | 'maxBufferedBytes' | 'bodyDeadlineMs'> {
  const maxBodyBytes = wholeNumber('maxBodyBytes', options.maxBodyBytes, 1_048_576);
  const standard = Math.max(134_217_728, 8 * maxBodyBytes);
  const maxBufferedBytes = wholeNumber('maxBufferedBytes', options.maxBufferedBytes, standard);
  if (maxBufferedBytes < maxBodyBytes) {
    throw new ConfigError(
      `maxBufferedBytes: ${maxBufferedBytes} is under maxBodyBytes (${maxBodyBytes}): a body of that size could never be taken.`,
    );
  }
  return {
    maxBodyBytes,
    maxBufferedBytes,
    bodyDeadlineMs: wholeNumber('bodyDeadlineMs', options.bodyDeadlineMs, 10_000, 1, MAX_TIMER_MS),
  };
}

/** @throws ConfigError unless it is an object: a bare number would silently count for nothing. */
function requireObject(name: string, value: unknown, example: string): void {
  if (typeof value === 'object' && value !== null) return;
  throw new ConfigError(`${name}: must be an object like ${example}.`);
}

function workerOptions({ worker = {} }: ReceiverOptions): Required<WorkerOptions> {
  requireObject('worker', worker, '{ concurrency: 10 }');
  onlyKnown('worker', worker, { concurrency: true, batch: true, pollMs: true });
  const concurrency = wholeNumber('worker.concurrency', worker.concurrency, 10, 1, 10_000);
  return {
    concurrency,
    batch: wholeNumber('worker.batch', worker.batch, concurrency, 1, 10_000),
    pollMs: wholeNumber('worker.pollMs', worker.pollMs, 1_000, 1, MAX_TIMER_MS),
  };
}

const RETRY_NAMES = { attempts: true, baseMs: true, maxMs: true, crashes: true } as const;

function storeLimits(options: ReceiverOptions, maxNoncesPerKey: number): StoreLimits {
  const { maxRecordsPerSender, maxPendingBytesPerSender, maxNoncesPerSender, maxNonces } = options;
  return {
    maxRecordsPerSender: wholeNumber('maxRecordsPerSender', maxRecordsPerSender, 1_000_000),
    maxPendingBytesPerSender: wholeNumber('maxPendingBytesPerSender', maxPendingBytesPerSender, 268_435_456),
    maxNoncesPerKey,
    maxNoncesPerSender: wholeNumber('maxNoncesPerSender', maxNoncesPerSender, 1_000_000),
    maxNonces: wholeNumber('maxNonces', maxNonces, 10_000_000),
  };
}

/** Checks and completes the options. @throws ConfigError with the fix in the message. */
export function resolveOptions(options: ReceiverOptions): Config {
  if (typeof options !== 'object' || options === null) {
    throw new ConfigError('createReceiver takes an object: { publicUrl, senders, store, handlers }.');
  }
  checkParts(options);
  const { retry = {} } = options;
  requireObject('retry', retry, '{ attempts: 12 }');
  onlyKnown('retry', retry, RETRY_NAMES);
  const protocol = protocolFor(options.protocol);
  const edition = editionFor(options.edition);
  const allowLoopback = flag('allowLoopback', options.allowLoopback);
  const maxNoncesPerKey = wholeNumber('maxNoncesPerKey', options.maxNoncesPerKey, 100_000);
  return {
    protocol,
    edition,
    mode: options.mode ?? 'inline',
    worker: workerOptions(options),
    queueUnattendedMs: wholeNumber('queueUnattendedMs', options.queueUnattendedMs, 60_000, 1, MAX_TIMER_MS),
    publicUrl: publicUrlOf(options.publicUrl, allowLoopback),
    senders: senderSource(options.senders, { protocol, edition, allowLoopback, maxNoncesPerKey }),
    contentTypes: contentTypes(options.contentTypes),
    ...bodyLimits(options),
    ...leaseTimes(options),
    waitMs: wholeNumber('waitMs', options.waitMs, 8_000, 0, MAX_TIMER_MS),
    retentionMs: retention(options),
    limits: storeLimits(options, maxNoncesPerKey),
    retry: {
      attempts: wholeNumber('retry.attempts', retry.attempts, 12),
      crashes: wholeNumber('retry.crashes', retry.crashes, 5),
      baseMs: wholeNumber('retry.baseMs', retry.baseMs, 1_000),
      maxMs: wholeNumber('retry.maxMs', retry.maxMs, 300_000),
    },
    admissionPressure: pressureThresholds(options.admissionPressure),
    retryAfterSeconds: wholeNumber('retryAfterSeconds', options.retryAfterSeconds, 5, 0, 86_400),
    verification: verificationOf(options),
    hostCheck: oneOf('hostCheck', options.hostCheck, ['strict', 'off']) ?? 'strict',
    allowLoopback,
  };
}
