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
import { type Mode, type Numbers, numbersIn } from './table.ts';
import { MAX_TIMER_MS, onlyKnown, wholeNumber } from './validate.ts';

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

const DAY_MS = 86_400_000;

/** @throws ConfigError where records are forgotten sooner than senders were told. */
function checkRetention({ retentionMs }: Numbers, { shorterRetentionToldToSenders }: ReceiverOptions): void {
  if (retentionMs >= DAY_MS || shorterRetentionToldToSenders) return;
  throw new ConfigError(
    `retentionMs: ${retentionMs} is under 24 h (${DAY_MS}), which the contract requires. Raise it, or tell every sender its shorter window and set shorterRetentionToldToSenders: true.`,
  );
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

/** Checks and completes the options. @throws ConfigError with the fix in the message. */
export function resolveOptions(options: ReceiverOptions): Config {
  if (typeof options !== 'object' || options === null) {
    throw new ConfigError('createReceiver takes an object: { publicUrl, senders, store, handlers }.');
  }
  checkParts(options);
  const { retry = {}, mode = 'inline', hostCheck = 'strict', allowLoopback = false } = options;
  requireObject('retry', retry, '{ attempts: 12 }');
  onlyKnown('retry', retry, RETRY_NAMES);
  const protocol = protocolFor(options.protocol);
  const edition = editionFor(options.edition);
  const numbers = numbersIn(options);
  checkRetention(numbers, options);
  const {
    maxRecordsPerSender,
    maxPendingBytesPerSender,
    maxNoncesPerKey,
    maxNoncesPerSender,
    maxNonces,
    ...times
  } = numbers;
  return {
    ...times,
    protocol,
    edition,
    mode,
    hostCheck,
    allowLoopback,
    worker: workerOptions(options),
    publicUrl: publicUrlOf(options.publicUrl, allowLoopback),
    senders: senderSource(options.senders, { protocol, edition, allowLoopback, maxNoncesPerKey }),
    contentTypes: contentTypes(options.contentTypes),
    limits: {
      maxRecordsPerSender,
      maxPendingBytesPerSender,
      maxNoncesPerKey,
      maxNoncesPerSender,
      maxNonces,
    },
    retry: {
      attempts: wholeNumber('retry.attempts', retry.attempts, 12),
      crashes: wholeNumber('retry.crashes', retry.crashes, 5),
      baseMs: wholeNumber('retry.baseMs', retry.baseMs, 1_000),
      maxMs: wholeNumber('retry.maxMs', retry.maxMs, 300_000),
    },
    admissionPressure: pressureThresholds(options.admissionPressure),
    verification: verificationOf(options),
  };
}
