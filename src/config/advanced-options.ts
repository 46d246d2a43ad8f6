import type { AdmissionPressure } from '../keys/admission-pressure.ts';
import type { NameLookUp } from '../keys/key-resolver.ts';

/**
 * `advanced` of `createReceiver`: what is derived from other options or seldom changed. docs/options.md says when to change
 * each.
 */
export interface AdvancedOptions {
  /** Ms between renewals of a lease; under `leaseMs`. A quarter of it: one renewal may fail and another come late. */
  readonly renewMs?: number;
  /**
   * Ms a duplicate waits for the first copy's handler; 0: not at all. `handlerDeadlineMs`, after which the first copy is
   * answered too; inbox 8 000.
   */
  readonly waitMs?: number;
  /** Ms until a handler that does not settle counts as crashed. Twice `handlerDeadlineMs`, at least 900 000. */
  readonly maxRunMs?: number;
  /**
   * Where an event has been due for so many ms and no worker has leased it, the alarm `queue_unattended` is raised, by
   * processes that only receive too. Twice `leaseMs`, so that a lease of a process that died can run out before; at least
   * 60 000.
   */
  readonly queueUnattendedMs?: number;
  /** `Retry-After` of 429 and 503, ms; the header has whole seconds, rounded up. 5 000. */
  readonly retryAfterMs?: number;
  /** Ms for which `ready()` tries again while the store cannot be reached. 30 000; 0: one try. */
  readonly startMs?: number;
  /** Ms from a body's first byte to its last. 10 000. */
  readonly bodyDeadlineMs?: number;
  /** Bytes of bodies held at once, not yet answered; over it 503. Eight of `maxBodyBytes`, at least 134 217 728. */
  readonly maxBufferedBytes?: number;
  /** Bytes of memory for key documents and revocation lists together, as estimated. 536 870 912. */
  readonly maxKeyDocumentBytes?: number;
  /**
   * How Node looks up the names in key URLs: `direct` asks DNS servers, so that one seller's silent name server holds up
   * no other seller; `system` is for hosts files, split DNS and names of a container's network. `direct`.
   */
  readonly dns?: NameLookUp;
  /** When to raise the alarm `admission_pressure`: more new key ids than usual. No threshold is set. */
  readonly admissionPressure?: AdmissionPressure;
}
