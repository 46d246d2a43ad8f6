import type { AuthContext, AuthRequest, Target } from '../../auth/auth-contract.ts';
import type { EditionName } from '../../shared/editions.ts';
import type { Sender } from '../../config/sender-entry.ts';
import type { Setup } from '../../vectors/subject.ts';
import type { Capture } from '../capture/capture.ts';

/** What is known of the senders' revocation list. The key ids that it revokes are with the senders. */
export interface KnownRevocations {
  /** `none`: there is no list, and none is required. `unusable`: stale, or none that a receiver takes, which answers 503. */
  readonly state: 'fresh' | 'none' | 'unusable' | 'unknown';
  /** In words. */
  readonly detail?: string;
}

/** What is known beyond the capture itself. An absent member was not looked at. */
export interface Known {
  readonly revocations?: KnownRevocations | undefined;
  /** Why a receiver could not tell which keys count (check 7), which answers 503. */
  readonly keysFault?: string | undefined;
  /** Content of the receiver's store. */
  readonly seen?: Pick<Setup, 'usedNonces' | 'fullKids'> | undefined;
}

/** A captured delivery, and how its receiver is configured. */
export interface ExplainInput extends Known {
  readonly capture: Capture;
  /** `publicUrl`: the URL that the seller was given. */
  readonly url: string;
  /** All of one scheme. Keys as `pins`, or legacy `auth`; nothing is fetched. */
  readonly senders: readonly Sender[];
  /** Unix ms. */
  readonly receivedAt: number;
  /** The time of receipt is not known, and `receivedAt` is `created`: check 5 cannot be judged. */
  readonly receivedAtAssumed?: boolean | undefined;
  /** The time of receipt is not known, and `receivedAt` is now: it was received at some time before. */
  readonly receivedAtLatest?: boolean | undefined;
  readonly protocol?: string | undefined;
  readonly edition?: EditionName | undefined;
  readonly hostCheck?: 'strict' | 'off' | undefined;
  /** 1 048 576. */
  readonly maxBodyBytes?: number | undefined;
  /** Media types taken beside `application/json`. */
  readonly contentTypes?: readonly string[] | undefined;
  /** Bytes that a search for what was signed may write and hash: seconds of work where it is absent. */
  readonly mostWork?: number | undefined;
}

/** One step of a receiver with its verdict on this delivery. */
export interface Step {
  /** `request`, `mode`, `1` to `11`, `12` (`9a` where that is known to fail), `14`, `envelope`; for legacy senders `hmac`, `bearer`. */
  readonly id: string;
  readonly title: string;
  /** `open`: not judged, `detail` says why. */
  readonly verdict: 'pass' | 'fail' | 'open';
  readonly code?: string;
  readonly detail?: string;
  /** The receiver itself is at fault, and answers 503. */
  readonly fault?: boolean;
}

/** What usually goes wrong with a signed delivery, by the name that output, JSON and tests use. */
export type Cause =
  // The URL that was signed is not the one that is configured.
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
  // The signature, or what it is made with.
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
  // What was delivered before.
  | 'rate'
  | 'replay'
  | 'unknown';

/** Why a step failed, and what to change. */
export interface Finding {
  readonly cause: Cause;
  /** Id of the step that it explains. */
  readonly step: string;
  /** What differs, in one sentence. */
  readonly says: string;
  /** The setting to change, and where. */
  readonly fix: string;
  /** The delivery was tried with this mended, and the step passed. False: it is only likely. */
  readonly proved: boolean;
}

/** A finding before it is known whether it helps. */
export type Change = Pick<Finding, 'cause' | 'says'> & { readonly fix?: string };

/** The checklist, and why its failed steps failed. */
export interface Explanation {
  /** No step failed. */
  readonly ok: boolean;
  readonly steps: readonly Step[];
  /** At least one for each step that failed. */
  readonly findings: readonly Finding[];
}

/** Everything that the steps and the searches work on. */
export interface Case {
  readonly input: ExplainInput;
  readonly target: Target;
  readonly context: AuthContext;
  readonly request: AuthRequest;
}

/** Looks at the delivery once more, with something mended. */
export interface Again {
  /** The checklist alone. */
  readonly steps: (input: ExplainInput) => Promise<readonly Step[]>;
  /** With causes. Only for an input that passes the step that is looked into, else it would not end. */
  readonly explain: (input: ExplainInput) => Promise<Explanation>;
}

/** Looks into one step that failed. */
export type Look = (made: Case, step: Step, again: Again) => Promise<readonly Finding[]>;

/** For a step of which no search finds the cause. */
export const unknown = (step: Step, says: string, fix: string): Finding => ({
  step: step.id,
  cause: 'unknown',
  says,
  fix,
  proved: false,
});

/** Added to a finding where the search was cut short. */
export const CUT_SHORT =
  'Not searched further: the delivery is too large, or nested too deeply, to try everything.';
