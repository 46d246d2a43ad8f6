/** What usually goes wrong with a signed delivery, by the one name that output, JSON and tests use. */
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
  /** What was done otherwise, in one sentence. */
  readonly says: string;
  /** The setting to change, and where. */
  readonly fix: string;
  /** The delivery was tried with this mended, and the step passed. Else it is only likely. */
  readonly proved: boolean;
}

/** A finding before it is known whether it helps. */
export type Change = Pick<Finding, 'cause' | 'says'> & { readonly fix?: string };
