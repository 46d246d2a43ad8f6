// Types of `explain`: the capture and what is known, the steps, the causes, and the explanation.
import type { AuthContext, AuthRequest, Target } from '../../auth/auth-contract.ts';
import type { EditionName } from '../../shared/editions.ts';
import type { Sender } from '../../config/sender-entry.ts';
import type { Setup } from '../../vectors/subject.ts';
import type { Capture } from '../capture/capture.ts';

/** The facts about the senders' revocation list. The key ids that it revokes stand with the senders. */
export interface KnownRevocations {
  /**
   * `none`: there is no list, and none is required. `unusable`: it is stale, or no receiver accepts it, so the answer
   * is 503.
   */
  readonly state: 'fresh' | 'none' | 'unusable' | 'unknown';
  /** The same in words. */
  readonly detail?: string;
}

/** The facts beyond the capture itself. An absent member was not looked at. */
export interface Known {
  readonly revocations?: KnownRevocations | undefined;
  /** The reason why a receiver could not tell which keys count (check 7), so that it answers 503. */
  readonly keysFault?: string | undefined;
  /** The content of the receiver's store. */
  readonly seen?: Pick<Setup, 'usedNonces' | 'fullKids'> | undefined;
}

/** A captured delivery, and the configuration of its receiver. */
export interface ExplainInput extends Known {
  readonly capture: Capture;
  /** `publicUrl`: the URL that the seller was given. */
  readonly url: string;
  /** The senders, all of one scheme, with keys as `pins`, or legacy `auth`. Nothing is fetched. */
  readonly senders: readonly Sender[];
  /** Unix ms. */
  readonly receivedAt: number;
  /** True if the time of receipt is unknown and `receivedAt` is `created`: check 5 cannot be judged. */
  readonly receivedAtAssumed?: boolean | undefined;
  /** True if the time of receipt is unknown and `receivedAt` is now: it was received earlier. */
  readonly receivedAtLatest?: boolean | undefined;
  readonly protocol?: string | undefined;
  readonly edition?: EditionName | undefined;
  readonly hostCheck?: 'strict' | 'off' | undefined;
  /** The limit of the receiver. Default: 1 048 576. */
  readonly maxBodyBytes?: number | undefined;
  /** The media types that are accepted beside `application/json`. */
  readonly contentTypes?: readonly string[] | undefined;
  /** Bytes that a search for what was signed may write and hash: seconds of work where it is absent. */
  readonly mostWork?: number | undefined;
}

/** One step of a receiver with its verdict on this delivery. */
export interface Step {
  /**
   * `request`, `mode`, `1` to `11`, `12` (`9a` if that is known to fail), `14`, `envelope`; for legacy senders `hmac`,
   * `bearer`, `report`.
   */
  readonly id: string;
  readonly title: string;
  /** `open`: not judged, `detail` says why. */
  readonly verdict: 'pass' | 'fail' | 'open';
  readonly code?: string;
  readonly detail?: string;
  /** True if the receiver itself is at fault, and answers 503. */
  readonly fault?: boolean;
}

/** The usual faults of a delivery, by the names that output, JSON and tests use. */
export type Cause =
  // The URL that was signed differs from the configured one.
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
  // The signature, or its input, is wrong.
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
  // The body.
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
  // The clock.
  | 'clock-milliseconds'
  | 'clock-zone'
  | 'clock-off'
  | 'validity-too-long'
  // Configuration.
  | 'protocol'
  | 'edition'
  | 'key-missing'
  | 'key-purpose'
  | 'mode'
  | 'headers'
  | 'request'
  | 'body'
  | 'envelope'
  // Earlier deliveries.
  | 'rate'
  | 'replay'
  | 'unknown';

/** The reason why a step failed, and the change that it needs. */
export interface Finding {
  readonly cause: Cause;
  /** The id of the step that it explains. */
  readonly step: string;
  /** The difference, in one sentence. */
  readonly says: string;
  /** The setting to change, and where. */
  readonly fix: string;
  /** True if the delivery was tried with this changed, and the step passed. False: it is only likely. */
  readonly proved: boolean;
}

/** A finding before it was tried. */
export type Change = Pick<Finding, 'cause' | 'says'> & { readonly fix?: string };

/** The checklist, and the causes of its failed steps. */
export interface Explanation {
  /** True if no step failed. */
  readonly ok: boolean;
  readonly steps: readonly Step[];
  /** At least one finding for each step that failed. */
  readonly findings: readonly Finding[];
}

/** The parts on which the steps and the searches work. */
export interface Case {
  readonly input: ExplainInput;
  readonly target: Target;
  readonly context: AuthContext;
  readonly request: AuthRequest;
}

/** Looks at the delivery again, with something changed. */
export interface Again {
  /** The checklist alone. */
  readonly steps: (input: ExplainInput) => Promise<readonly Step[]>;
  /** The checklist with causes. The input has to pass the step that is looked into, or it would not end. */
  readonly explain: (input: ExplainInput) => Promise<Explanation>;
}

/** Looks into one failed step. */
export type Look = (made: Case, step: Step, again: Again) => Promise<readonly Finding[]>;

/** The finding for a step whose cause no search finds. */
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
