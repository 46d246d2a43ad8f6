/** When a signature was made and when it ends (RFC 9421 §2.3). Unix seconds. */
export interface SignatureWindow {
  readonly created: number;
  readonly expires: number;
}

/** Longest validity. Seconds. */
export const MAX_VALIDITY_S = 300;
/** Tolerance between two clocks. Seconds. */
export const SKEW_S = 60;

/** The end of check 5. */
export function windowEnded({ expires }: Pick<SignatureWindow, 'expires'>, nowMs: number): boolean {
  return expires * 1000 < nowMs - SKEW_S * 1000;
}

/** Check 5. Compared in ms: a nonce is kept until just after the last instant, and nothing may be accepted then. */
export function windowHolds(window: SignatureWindow, nowMs: number): boolean {
  const { created, expires } = window;
  return (
    expires > created &&
    expires - created <= MAX_VALIDITY_S &&
    created * 1000 <= nowMs + SKEW_S * 1000 &&
    !windowEnded(window, nowMs)
  );
}
