// Defines the option `advanced` of receivers and verifiers: its type alone. `ADVANCED` in defaults.ts has the default
// and the bounds of each member (admission.md §2.12).
import type { AdmissionPressure } from '../keys/admission-pressure.ts';
import type { NameLookUp } from '../keys/key-resolver.ts';

/**
 * The option `advanced` of `createReceiver`: settings whose defaults follow from other options, or that rarely change.
 * The page docs/options.md says when to change each.
 */
export interface AdvancedOptions {
  /**
   * The time between renewals of a lease, ms; below `leaseMs`. Default: a quarter of `leaseMs`, so that one renewal
   * may fail and another come late.
   */
  readonly renewMs?: number;
  /**
   * The time that a duplicate waits for the handler of the first copy, ms; 0: no wait. Default:
   * `handlerDeadlineMs`, after which the first copy is answered too; in mode `inbox` 8 000.
   */
  readonly waitMs?: number;
  /**
   * The time after which a handler that has not settled counts as crashed, ms. Default: twice `handlerDeadlineMs`,
   * at least 900 000.
   */
  readonly maxRunMs?: number;
  /**
   * The time for which an event may be due without a lease before the alarm `queue_unattended` is raised, ms.
   * Processes that only receive raise it too.
   *
   * Default: twice `leaseMs`, at least 60 000, so that a lease of a process that died can expire before.
   */
  readonly queueUnattendedMs?: number;
  /** The `Retry-After` of 429 and 503, ms; the header has whole seconds, rounded up. Default: 5 000. */
  readonly retryAfterMs?: number;
  /** The time for which `ready()` tries again while the store is unreachable, ms; 0: one try. Default: 30 000. */
  readonly startMs?: number;
  /** The time limit from the first byte of a body to the last, ms. Default: 10 000. */
  readonly bodyDeadlineMs?: number;
  /**
   * The largest total size of bodies that are not yet answered, bytes; above it the answer is 503. Default: eight
   * times `maxBodyBytes`, at least 134 217 728.
   */
  readonly maxBufferedBytes?: number;
  /** The largest estimated memory for all key documents and revocation lists, bytes. Default: 536 870 912. */
  readonly maxKeyDocumentBytes?: number;
  /**
   * The way in which Node looks up the host names of key URLs. `direct` asks DNS servers, so that one seller's
   * silent name server delays no other seller. `system` supports hosts files, split DNS and the names of a
   * container's network. Default: `direct`.
   */
  readonly dns?: NameLookUp;
  /** The thresholds of the alarm `admission_pressure`, raised for an unusual number of new key ids. Default: none. */
  readonly admissionPressure?: AdmissionPressure;
}
