// Types of `explain`: the capture and the known facts, the steps, the causes, and the explanation.
import type { AuthContext, AuthRequest, Target } from '../../auth/auth-contract.ts';
import type { EditionName } from '../../shared/editions.ts';
import type { Sender } from '../../config/sender-entry.ts';
import type { Setup } from '../../vectors/subject.ts';
import type { Capture } from '../capture/capture.ts';

/** The known facts about the senders' revocation list. The revoked key ids are stored with the senders. */
export interface KnownRevocations {
  /**
   * `none`: there is no list, and none is required. `unusable`: the list is stale, or no receiver accepts it, so that
   * the answer is 503.
   */
  readonly state: 'fresh' | 'none' | 'unusable' | 'unknown';
  /** The state in words. */
  readonly detail?: string;
}

/** The known facts in addition to the capture. An absent member was not determined. */
export interface Known {
  readonly revocations?: KnownRevocations | undefined;
  /** The reason why a receiver could not tell which keys to use (check 7), so that it answers 503. */
  readonly keysFault?: string | undefined;
  /** The content of the receiver's store. */
  readonly seen?: Pick<Setup, 'usedNonces' | 'fullKids'> | undefined;
}

/** A captured delivery, and the configuration of its receiver. */
export interface ExplainInput extends Known {
  readonly capture: Capture;
  /** `publicUrl`: the URL that the seller was given. */
  readonly url: string;
  /** The senders, all of one scheme. Their keys are `pins`, or they have legacy `auth`. Nothing is fetched. */
  readonly senders: readonly Sender[];
  /** The time of receipt, Unix ms. */
  readonly receivedAt: number;
  /**
   * True if the time of receipt is unknown and `receivedAt` is the signature's `created`. Check 5 cannot be judged
   * then.
   */
  readonly receivedAtAssumed?: boolean | undefined;
  /** True if the time of receipt is unknown and `receivedAt` is the current time. The real receipt was earlier. */
  readonly receivedAtLatest?: boolean | undefined;
  readonly protocol?: string | undefined;
  readonly edition?: EditionName | undefined;
  readonly hostCheck?: 'strict' | 'off' | undefined;
  /** The limit of the receiver. Default: 1 048 576. */
  readonly maxBodyBytes?: number | undefined;
  /** The media types that are accepted in addition to `application/json`. */
  readonly contentTypes?: readonly string[] | undefined;
  /** The bytes that a search for the signed bytes may write and hash. Default: an amount that takes seconds. */
  readonly mostWork?: number | undefined;
}

/** One step of a receiver with its verdict on this delivery. */
export interface Step {
  /**
   * The id of the step: `request`, `mode`, `1` to `11`, `12` (`9a` if that is known to fail), `14`, `envelope`. For
   * legacy senders it is `hmac`, `bearer` or `report`.
   */
  readonly id: string;
  readonly title: string;
  /** The verdict. `open`: it was not judged, and `detail` says why. */
  readonly verdict: 'pass' | 'fail' | 'open';
  readonly code?: string;
  readonly detail?: string;
  /** True if the failure is the receiver's own fault, for which it answers 503. */
  readonly fault?: boolean;
}

/** The usual faults of a delivery. Output, JSON and tests use these names. */
export type Cause =
  // The signed URL differs from the configured one.
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
  // The signature, or the text that was signed, is wrong.
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
  // The body was changed.
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
  // A time is wrong.
  | 'clock-milliseconds'
  | 'clock-zone'
  | 'clock-off'
  | 'validity-too-long'
  // The configuration does not fit.
  | 'protocol'
  | 'edition'
  | 'key-missing'
  | 'key-purpose'
  | 'mode'
  | 'headers'
  | 'request'
  | 'body'
  | 'envelope'
  // Earlier deliveries are the reason.
  | 'rate'
  | 'replay'
  | 'unknown';

/** The reason why a step failed, and how to correct it. */
export interface Finding {
  readonly cause: Cause;
  /** The id of the step that the finding explains. */
  readonly step: string;
  /** The difference that was found, in one sentence. */
  readonly says: string;
  /** The setting to change, and where. */
  readonly fix: string;
  /** True if the step passed when the delivery was tried with this change. False: the cause is only likely. */
  readonly proved: boolean;
}

/** A finding before it is tried. */
export type Change = Pick<Finding, 'cause' | 'says'> & { readonly fix?: string };

/** The checklist, and the causes of its failed steps. */
export interface Explanation {
  /** True if no step failed. */
  readonly ok: boolean;
  readonly steps: readonly Step[];
  /** At least one finding for each step that failed. */
  readonly findings: readonly Finding[];
}

/** A delivery in the form for the steps and the searches. */
export interface Case {
  readonly input: ExplainInput;
  readonly target: Target;
  readonly context: AuthContext;
  readonly request: AuthRequest;
}

/** Functions that judge a delivery again, after something in it was changed. */
export interface Again {
  /** Returns only the checklist. */
  readonly steps: (input: ExplainInput) => Promise<readonly Step[]>;
  /**
   * Returns the checklist with causes. The changed input must pass the step that is being searched, otherwise the
   * search would never end.
   */
  readonly explain: (input: ExplainInput) => Promise<Explanation>;
}

/** Searches the causes of one failed step. */
export type Look = (made: Case, step: Step, again: Again) => Promise<readonly Finding[]>;

/** Returns the finding for a step whose cause no search finds. */
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
