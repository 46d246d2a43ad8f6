import type { HeaderFields } from './delivery.ts';
import type { Outcome } from './outcome.ts';

/** A delivery that was refused, for `onRefused`. Bearer tokens and cookies are among its headers as they came. */
export interface RefusedDelivery {
  /** Exactly as received. Absent where the headers decided and the body was not read. */
  readonly rawBytes?: Uint8Array;
  /** Lower-case name → the value of each line, in order. */
  readonly headers: HeaderFields;
  readonly method: string;
  /** Request target as received; undefined for the call with two arguments. */
  readonly url: string | undefined;
  /** Agent URL of the sender that it is proved to be of, or else whose key it names; undefined: nobody's that is known. */
  readonly sender: string | undefined;
  /** Of kind `refused`. */
  readonly outcome: Outcome;
}

/** What `onRefused` is. It is told after the answer was decided, and what it throws is ignored. */
export interface OnRefused {
  (delivery: RefusedDelivery): void;
  /**
   * Bytes of a body that it wants to see where the headers decided: of one such delivery a second that names a known
   * sender's key id. 0.
   */
  readonly maxBodyBytes?: number;
}
