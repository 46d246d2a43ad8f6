// Types of `explain`: its input, the checks with their verdicts, the causes of failures, and the whole explanation.
import type { AuthContext, AuthRequest, Target } from '../../auth/auth-contract.ts';
import type { EditionName } from '../../shared/editions.ts';
import type { Sender } from '../../config/sender-entry.ts';
import type { Setup } from '../../vectors/subject.ts';
import type { Capture } from '../capture/capture.ts';

/** The state of the operator's revocation list. Its revoked key ids are stored with the senders. */
export interface KnownRevocations {
  /**
   * `none`: there is no list, and none is required. `unusable`: a receiver answers 503, because the list is stale, was
   * not accepted, or is required and cannot be read.
   */
  readonly state: 'fresh' | 'none' | 'unusable' | 'unknown';
  /** The state in words. */
  readonly detail?: string;
}

/** Facts about keys, revocations and store that `explain` knows besides the capture. An absent member is unknown. */
export interface Known {
  readonly revocations?: KnownRevocations | undefined;
  /** The reason why a receiver could not tell which keys to use (check 7), so that it answers 503. */
  readonly keysFault?: string | undefined;
  /** The receiver's used nonces, and the keys at their nonce cap. Only a conformance vector (test case) states them. */
  readonly seen?: Pick<Setup, 'usedNonces' | 'fullKids'> | undefined;
}

/** A captured delivery, and the configuration of its receiver. */
export interface ExplainInput extends Known {
  readonly capture: Capture;
  /** The receiver's `publicUrl`: the URL that the seller was given. */
  readonly url: string;
  /**
   * The senders, all with the same authentication scheme. They have their keys as `pins`, or legacy `auth`, so that
   * nothing is fetched.
   */
  readonly senders: readonly Sender[];
  /** The time of receipt, Unix ms. */
  readonly receivedAt: number;
  /**
   * True if the time of receipt is unknown and `receivedAt` is the signature's `created` instead. Check 5 is then not
   * judged.
   */
  readonly receivedAtAssumed?: boolean | undefined;
  /** True if the time of receipt is unknown and `receivedAt` is the current time. The real receipt was earlier. */
  readonly receivedAtLatest?: boolean | undefined;
  readonly protocol?: string | undefined;
  readonly edition?: EditionName | undefined;
  readonly hostCheck?: 'strict' | 'off' | undefined;
  /** The largest body that the receiver accepts, in bytes. Default: 1 048 576. */
  readonly maxBodyBytes?: number | undefined;
  /** The media types that are accepted in addition to `application/json`. */
  readonly contentTypes?: readonly string[] | undefined;
  /**
   * The largest number of bytes that a search for the signed body may write and hash. Default: 512 MiB, which takes
   * seconds.
   */
  readonly mostWork?: number | undefined;
}

/** One check of a receiver, with its verdict on this delivery. */
export interface Step {
  /**
   * The id of the check: `request`, `mode`, `1` to `11`, `12` (`9a` instead, if the key is at its nonce cap), `14`,
   * `envelope`. For legacy senders it is `hmac`, `bearer` or `report`.
   */
  readonly id: string;
  readonly title: string;
  /** The verdict. `open`: the check was not judged, and `detail` says why. */
  readonly verdict: 'pass' | 'fail' | 'open';
  readonly code?: string;
  readonly detail?: string;
  /** True if the failure is the receiver's own fault, for which it answers 503. */
  readonly fault?: boolean;
}

/** The codes of usual causes, as the text and the JSON output name them. */
export type Cause =
  // Causes in the URL: the signed URL differs from the configured one.
  | 'scheme'
  | 'host'
  | 'port'
  | 'forwarded-host'
  | 'trailing-slash'
  | 'path-prefix'
  | 'path-encoding'
  | 'query-encoding'
  | 'query-dropped'
  | 'not-canonical'
  // Causes in the signature, or in the text that was signed.
  | 'der-signature'
  | 'alphabet-swapped'
  | 'alphabet-mixed'
  | 'hex'
  | 'wrong-kid'
  | 'content-type-changed'
  | 'base-trailing-newline'
  | 'base-line-ends'
  | 'method-case'
  | 'host-rewritten'
  // Causes in the body: it was changed after the seller signed it.
  | 'body-gzip'
  | 'body-compact'
  | 'body-spaced'
  | 'body-indented'
  | 'body-sorted'
  | 'body-ascii-escaped'
  | 'body-unescaped'
  | 'body-slash-escaped'
  | 'body-html-escaped'
  | 'body-trailing-newline'
  | 'body-line-ends'
  | 'body-bom'
  | 'body-utf8-replaced'
  | 'body-mojibake'
  | 'body-latin1'
  | 'body-empty'
  | 'body-cut'
  | 'body-other'
  // Causes in the times of the signature.
  | 'clock-milliseconds'
  | 'clock-zone'
  | 'clock-off'
  | 'validity-too-long'
  // Causes in the configuration, or in the documents with the keys.
  | 'protocol'
  | 'edition'
  | 'key-missing'
  | 'key-purpose'
  | 'mode'
  | 'headers'
  | 'request'
  | 'body'
  | 'envelope'
  // Causes in earlier deliveries: a cap is reached, or the delivery is a replay.
  | 'rate'
  | 'replay'
  | 'unknown';

/** The reason why a check failed, and how to correct it. */
export interface Finding {
  readonly cause: Cause;
  /** The id of the failed check that the finding explains. */
  readonly step: string;
  /** The difference that was found, in one sentence. */
  readonly says: string;
  /** The correction in words: the setting to change, and where. */
  readonly fix: string;
  /** True if the cause is certain, e.g. because the check passes after this change. False: the cause is only likely. */
  readonly proved: boolean;
}

/** A possible cause of a failure, before it is tried. */
export type Change = Pick<Finding, 'cause' | 'says'> & { readonly fix?: string };

/** All checks with their verdicts, and the causes of the failed ones. */
export interface Explanation {
  /** True if no check failed. */
  readonly ok: boolean;
  readonly steps: readonly Step[];
  /** At least one finding for each check that failed. */
  readonly findings: readonly Finding[];
}

/** A delivery, prepared for the receiver's checks and for the searches of causes. */
export interface Case {
  readonly input: ExplainInput;
  readonly target: Target;
  readonly context: AuthContext;
  readonly request: AuthRequest;
}

/** Functions that make all checks again on a changed delivery. */
export interface Again {
  /** Returns only the checks with their verdicts. */
  readonly steps: (input: ExplainInput) => Promise<readonly Step[]>;
  /**
   * Returns the checks and the causes of failures. The changed input must pass the check whose cause is being searched,
   * otherwise the search would never end.
   */
  readonly explain: (input: ExplainInput) => Promise<Explanation>;
}

/** A function that searches the causes of one failed check. */
export type Look = (made: Case, step: Step, again: Again) => Promise<readonly Finding[]>;

/** Returns the finding for a failed check whose cause no search finds. */
export const unknown = (step: Step, says: string, fix: string): Finding => ({
  step: step.id,
  cause: 'unknown',
  says,
  fix,
  proved: false,
});

/** The sentence that is added to a finding if the search was cut short. */
export const CUT_SHORT =
  'Not searched further: the delivery is too large, or nested too deeply, to try everything.';
