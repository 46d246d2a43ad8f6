// Defines the options of `createVerifier` and the verifier itself, and resolves the options (admission.md §2.18).
// Called by `createVerifier`.
import type { AdvancedOptions } from './advanced-options.ts';
import type { HeadersInput } from '../shared/delivery.ts';
import type { Event } from '../events/event.ts';
import { OF_REGISTRATIONS } from '../events/event-registration.ts';
import { ConfigError } from '../shared/errors.ts';
import type { Outcome } from '../shared/outcome.ts';
import { checkEach } from './defaults.ts';
import { checkShared } from './handed-in.ts';
import type { Readiness, ReceiverOptions, RequestInfo } from './receiver-options.ts';
import { type Config, configOf } from './resolve-options.ts';

/**
 * Records a signature's nonce in a database of yours, so that the same request is not accepted twice. Write it as
 * one atomic insert under (sender, keyid, nonce). It is the option `burn` of `createVerifier`.
 * @param sender the seller's agent URL.
 * @param keyid the signature's key id. One that is longer than 255 characters, or not printable ASCII, is replaced by
 *   its SHA-256.
 * @param nonce the signature's nonce, replaced in the same way.
 * @param untilMs the time from which the nonce may be forgotten, Unix ms on the verifier's clock: at most 7 minutes
 * ahead.
 * @returns true if the nonce was new. If the function throws or takes longer than 5 s, the answer is 503.
 */
export type Burn = (
  sender: string,
  keyid: string,
  nonce: string,
  untilMs: number,
) => boolean | Promise<boolean>;

/** Options of `createReceiver` that a verifier has too, with the same meaning. */
type Shared = Pick<
  ReceiverOptions,
  | 'publicUrl'
  | 'senders'
  | 'onChallenge'
  | 'protocol'
  | 'edition'
  | 'contentTypes'
  | 'maxBodyBytes'
  | 'maxNoncesPerKey'
  | 'maxNoncesPerSender'
  | 'verification'
  | 'hostCheck'
  | 'allowLoopback'
  | 'now'
  | 'fetch'
  | 'logger'
  | 'onOutcome'
  | 'onAlarm'
  | 'onRefused'
>;

type AdvancedName = 'retryAfterMs' | 'maxKeyDocumentBytes' | 'dns' | 'admissionPressure';

/**
 * Options of `createVerifier`: the URL and the sellers, and a function that records nonces in a database of yours.
 * Mistakes throw `ConfigError` at construction, with the fix in the message.
 */
export interface VerifierOptions extends Shared {
  /**
   * Records used nonces in a store that all processes share. Default: each process knows only the nonces that it
   * recorded itself, until it ends.
   */
  readonly burn?: Burn | undefined;
  /**
   * The largest number of unexpired nonces of all senders in this process, some 700 bytes each, if `burn` is absent.
   * Default: 1 000 000.
   */
  readonly maxNonces?: number;
  /** Options that rarely change. */
  readonly advanced?: Pick<AdvancedOptions, AdvancedName>;
}

/**
 * An authentic delivery and its event, returned by `verifier.verify`. Store the event, then call `commit` for the
 * answer. Before `commit` nothing of the delivery is remembered.
 */
export interface VerifiedDelivery {
  readonly kind: 'verified';
  readonly event: Event;
  /** The agent URL of the authenticated sender. */
  readonly sender: string;
  /** The UUID (version 8) computed from sender and idempotency key, the same on every retry. Deduplicate by it. */
  readonly deliveryId: string;
  /**
   * Records the nonce as used and returns the answer. Call `commit` when the event is safe in your store. It never
   * rejects.
   *
   * - `accepted`: the delivery was new. Legacy schemes have no nonce and are always `accepted`.
   * - `refused`: the nonce was used before (`webhook_signature_replayed`), or there is no room for it
   *   (`webhook_signature_rate_abuse`).
   * - `unavailable`: `burn` failed.
   *
   * A further call returns the same result, but after `unavailable` it tries again.
   */
  readonly commit: () => Promise<Committed>;
}

/**
 * The result of a verified delivery's `commit`: accepted, refused because its nonce was used before, or unavailable
 * because the nonce could not be recorded. Send its `response` to the seller.
 */
export type Committed = Extract<Outcome, { readonly kind: 'accepted' | 'refused' | 'unavailable' }>;

/**
 * A delivery for which `verifier.verify` returns no event: it was refused, could not be decided, or is a proof of
 * control (`challenge`) that `onChallenge` accepted. Send its `response` to the seller.
 */
export type Unverified = Extract<Outcome, { readonly kind: 'challenge' | 'refused' | 'unavailable' }>;

/**
 * Verifies webhooks and reads their events, for programs that store events themselves. `createVerifier` makes it. It
 * has no store and runs no handlers.
 */
export interface Verifier {
  /**
   * Verifies a delivery and reads its event. It checks method, media type and size first. The method is bound.
   * @param rawBytes the body exactly as received.
   * @throws ConfigError (rejects) only for a caller's mistake: parsed body, unusable headers, missing `url`.
   */
  readonly verify: (
    rawBytes: Uint8Array,
    headers: HeadersInput,
    request?: Omit<RequestInfo, 'signal'>,
  ) => Promise<VerifiedDelivery | Unverified>;
  /**
   * Loads the code for the first delivery and fetches keys in advance. A key that cannot be fetched, or a pin that
   * verifies nothing, raises an alarm. Each call checks again. There is no store, so `storeId` is undefined.
   * @throws Fault (rejects) `shutting_down` after `stop`.
   */
  readonly ready: () => Promise<Readiness>;
  /**
   * Does the same as `ready`, and accepts deliveries again after `stop`. Before the first delivery, `start` need not be
   * called.
   */
  readonly start: () => Promise<void>;
  /**
   * Stops the verifier until `start`. Running deliveries finish, new ones are answered with 503 `shutting_down`,
   * and no keys are polled. `commit` of verified deliveries continues. A further call has no effect.
   */
  readonly stop: () => Promise<void>;
  /** `stop`, for `await using`. */
  readonly [Symbol.asyncDispose]: () => Promise<void>;
}

const NAMES: Readonly<Record<keyof VerifierOptions, true>> = {
  publicUrl: true,
  senders: true,
  burn: true,
  onChallenge: true,
  protocol: true,
  edition: true,
  contentTypes: true,
  maxBodyBytes: true,
  maxNoncesPerKey: true,
  maxNoncesPerSender: true,
  maxNonces: true,
  verification: true,
  hostCheck: true,
  allowLoopback: true,
  now: true,
  fetch: true,
  logger: true,
  onOutcome: true,
  onAlarm: true,
  onRefused: true,
  advanced: true,
};

const ADVANCED: Readonly<Record<AdvancedName, true>> = {
  retryAfterMs: true,
  maxKeyDocumentBytes: true,
  dns: true,
  admissionPressure: true,
};

/** The default of `maxNonces` for a verifier. The default for stores would take more memory than a process has. */
const MAX_NONCES = 1_000_000;

const IN_PROCESS = ['maxNoncesPerKey', 'maxNoncesPerSender', 'maxNonces'] as const;

/** Checks and completes the options. @throws ConfigError with the fix in the message. */
export function resolveVerifierOptions(options: VerifierOptions): Config {
  if (typeof options !== 'object' || options === null) {
    throw new ConfigError('createVerifier takes an object: { publicUrl, senders }.');
  }
  checkEach(options, { options: NAMES, advanced: ADVANCED });
  checkShared(options);
  checkBurn(options);
  if (OF_REGISTRATIONS in Object(options.senders)) {
    throw new ConfigError(
      'senders: are those of registrations, whose operations a receiver follows. Use createReceiver, or give a list or a function of your own.',
    );
  }
  return configOf({ ...options, maxNonces: options.maxNonces ?? MAX_NONCES });
}

function checkBurn(options: VerifierOptions): void {
  const { burn } = options;
  if (burn === undefined) return;
  if (typeof burn !== 'function') throw new ConfigError('burn: must be a function.');
  const idle = IN_PROCESS.find((name) => options[name] !== undefined);
  if (idle === undefined) return;
  throw new ConfigError(`${idle}: has no effect beside burn, which keeps the nonces. Leave one of them out.`);
}
