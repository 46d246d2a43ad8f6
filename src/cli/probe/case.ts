import type { PostResult } from '../../testing/seller-post.ts';
import type { KeyRole, ProbeKit } from './kit.ts';

/** The answer that a conforming receiver gives. */
export interface Expected {
  /** `2xx`: any. */
  readonly status: '2xx' | 400 | 401 | 405 | 409 | 413 | 415 | 429;
  /** Of `WWW-Authenticate` for 401, of the body for 400 and 409. */
  readonly code?: string;
  /** Other statuses that pass, each with a note: something in front of the receiver may answer first. */
  readonly orStatus?: Readonly<Record<number, string>>;
}

/** One thing that is sent, or a few, and what the last of them has to be answered. */
export interface ProbeCase {
  /** Stable, e.g. `replay`. */
  readonly name: string;
  /** What is sent, in words. */
  readonly sends: string;
  readonly expect: Expected | ((kit: Pick<ProbeKit, 'edition' | 'hostCheck'>) => Expected);
  /** Without this key, or option, the case is left out. */
  readonly needs?: KeyRole | 'rate';
  readonly run: (kit: ProbeKit) => Promise<PostResult>;
}

export const ACCEPTED: Expected = { status: '2xx' };

/** 401 with this code. */
export const refused = (code: string): Expected => ({ status: 401, code });

/** Result of one case. */
export interface ProbeResult {
  readonly name: string;
  readonly sends: string;
  /** e.g. `401 webhook_signature_replayed`. */
  readonly expected: string;
  /** What was answered, in the same words. */
  readonly answered: string;
  /** `undecided`: answered 503 where a receiver may (its key cooldown). */
  readonly verdict: 'pass' | 'fail' | 'skipped' | 'undecided';
  /** Why it is no pass. */
  readonly why?: string;
  /** What to know of a pass. */
  readonly note?: string;
}
