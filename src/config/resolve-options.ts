// Checks the options of a receiver and completes them (admission.md §2.12, contract.md §12.1). The result, `Config`, is
// used to make a receiver or a verifier, and read by all stages.
import type { Verification } from '../crypto/engine.ts';
import { type Edition, editionFor } from '../shared/editions.ts';
import { type Protocols, protocolsFor } from '../shared/wire-names.ts';
import { ConfigError } from '../shared/errors.ts';
import type { AdmissionPressure } from '../keys/admission-pressure.ts';
import type { WorkerOptions } from '../inbox/inbox-contract.ts';
import type { ReceiverOptions } from './receiver-options.ts';
import type { RetryLimits, StoreLimits } from '../stores/store.ts';
import { contentTypes } from './content-types.ts';
import { checkParts, pressureThresholds } from './handed-in.ts';
import { type Bases, basesOf } from './public-url.ts';
import type { ResolveSenders } from './sender-source.ts';
import { sendersIn } from './senders.ts';
import {
  type AnyOptions,
  durabilityIn,
  type Mode,
  numbersIn,
  numbersOf,
  OPTIONS,
  type RequiredDurability,
  RETRY,
  retentionIn,
  WORKER,
} from './defaults.ts';

/** `ReceiverOptions` after validation, every default applied. Durations in ms. */
export interface Config {
  /** The protocol names that are accepted in wire identifiers, e.g. in header names. */
  readonly protocols: Protocols;
  readonly edition: Edition;
  readonly mode: Mode;
  readonly worker: Required<WorkerOptions>;
  readonly queueUnattendedMs: number;
  /** The URLs of the option `publicUrl`. */
  readonly bases: Bases;
  readonly senders: ResolveSenders;
  /** The media types that are accepted in addition to `application/json`, in lower case. */
  readonly contentTypes: ReadonlySet<string>;
  readonly maxBodyBytes: number;
  readonly maxBufferedBytes: number;
  readonly maxKeyDocumentBytes: number;
  readonly startMs: number;
  readonly bodyDeadlineMs: number;
  readonly handlerDeadlineMs: number;
  readonly maxRunMs: number;
  readonly leaseMs: number;
  readonly renewMs: number;
  readonly waitMs: number;
  readonly retentionMs: number;
  readonly durability: RequiredDurability;
  readonly limits: StoreLimits;
  readonly retry: RetryLimits & { readonly baseMs: number; readonly maxMs: number };
  readonly admissionPressure: AdmissionPressure;
  readonly retryAfterMs: number;
  readonly verification: Verification;
  readonly hostCheck: 'strict' | 'off';
  readonly allowLoopback: boolean;
}

/**
 * Reads the option `worker`. If `batch` is not given, it is set to `concurrency`, so that a worker leases as many
 * events as it can run.
 */
function workerOptions({ worker = {} }: AnyOptions): Required<WorkerOptions> {
  const { concurrency, batch, pollMs } = numbersOf('worker', worker, WORKER);
  return { concurrency, batch: worker.batch ? batch : concurrency, pollMs };
}

/** Checks and completes the options. @throws ConfigError with the fix in the message. */
export function resolveOptions(options: ReceiverOptions): Config {
  if (typeof options !== 'object' || options === null) {
    throw new ConfigError('createReceiver takes an object: { publicUrl, senders, store, handlers }.');
  }
  checkParts(options);
  return configOf(options);
}

/** Completes options whose names and shapes were checked. @throws ConfigError with the fix in the message. */
export function configOf(options: AnyOptions): Config {
  // A runtime that is too old would fail at each delivery.
  if (!('withResolvers' in Promise)) {
    throw new ConfigError('This runtime is too old. Use Node >= 22.13, or a current Bun, Deno or workerd.');
  }
  const {
    mode = OPTIONS.mode.standard,
    hostCheck = OPTIONS.hostCheck.standard,
    verification = OPTIONS.verification.standard,
    allowLoopback = false,
    retry = {},
  } = options;
  const protocols = protocolsFor(options.protocol);
  const edition = editionFor(options.edition);
  const numbers = numbersIn(options);
  const {
    maxRecordsPerSender,
    maxPendingBytesPerSender,
    maxNoncesPerKey,
    maxNoncesPerSender,
    maxNonces,
    ...times
  } = numbers;
  const bases = basesOf(options.publicUrl ?? options.registrations?.publicUrl, allowLoopback);
  return {
    ...times,
    retentionMs: retentionIn(options),
    durability: durabilityIn(options),
    protocols,
    edition,
    mode,
    hostCheck,
    allowLoopback,
    worker: workerOptions(options),
    bases,
    senders: sendersIn(options, bases, {
      protocols,
      edition,
      allowLoopback,
      maxNoncesPerKey,
      maxNoncesPerSender,
    }),
    contentTypes: contentTypes(options.contentTypes),
    limits: {
      maxRecordsPerSender,
      maxPendingBytesPerSender,
      maxNoncesPerKey,
      maxNoncesPerSender,
      maxNonces,
    },
    retry: numbersOf('retry', retry, RETRY),
    admissionPressure: pressureThresholds(options.advanced?.admissionPressure),
    verification,
  };
}
