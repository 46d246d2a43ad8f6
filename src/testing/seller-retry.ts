import { setTimeout as delay } from 'node:timers/promises';
import type { SignedDelivery } from '../sender/sign.ts';
import type { PostResult } from './seller-post.ts';

/** How long a seller goes on. */
export interface RetryPolicy {
  /** Attempts of one event, the first included. 6. */
  readonly attempts: number;
  /** Ms to wait after an attempt (1, 2, …). 500, 1000, 2000, 4000, 7000: about 15 s in all. */
  readonly delayMs: (attempt: number) => number;
  /** Ms until an attempt counts as timed out. 10 000. */
  readonly timeoutMs: number;
  /** Waits; replace it in tests that need not wait. Rejects when `signal` aborts. */
  readonly sleep: (ms: number, signal: AbortSignal) => Promise<unknown>;
}

/** One attempt to deliver an event. */
export interface Attempt extends PostResult {
  /** 1, 2, … */
  readonly attempt: number;
  /** What was sent: `send` it again and it is a replay. */
  readonly delivery: SignedDelivery;
}

/** All attempts to deliver one event, in order; at least one. */
export interface DeliveryResult {
  readonly attempts: readonly Attempt[];
  readonly last: Attempt;
  /** The last answer was 2xx. */
  readonly delivered: boolean;
}

const DELAYS_MS: readonly number[] = [500, 1_000, 2_000, 4_000, 7_000];

/** What emitters in production do. */
export const DEFAULT_RETRY: RetryPolicy = {
  attempts: 6,
  delayMs: (attempt) => DELAYS_MS[attempt - 1] ?? 7_000,
  timeoutMs: 10_000,
  sleep: (ms, signal) => delay(ms, undefined, { signal }),
};

/**
 * Whether the seller gives up: on 2xx, and for good on every 3xx and 4xx but 429. A 401 that challenges for `Bearer`
 * is a token being rotated, and is tried again (contract.md §10.9). `Retry-After` is not looked at.
 */
export function isFinal({ outcome, status, headers }: PostResult): boolean {
  // With a status too: an answer that was cut short is none to a seller.
  if (outcome === 'timeout' || outcome === 'connection_error') return false;
  if (status === undefined || status === 429 || status >= 500) return false;
  return !(status === 401 && /^bearer\b/i.test(headers['www-authenticate'] ?? ''));
}

/** Runs `attempt` until its answer is final, the attempts are used up, or `signal` aborts. */
export async function untilFinal(
  attempt: (number: number) => Promise<Attempt>,
  { attempts, delayMs, sleep }: RetryPolicy,
  signal: AbortSignal,
): Promise<DeliveryResult> {
  const made: Attempt[] = [];
  for (let number = 1; ; number++) {
    const last = await attempt(number);
    made.push(last);
    const ended = isFinal(last) || number >= attempts || signal.aborted;
    if (ended || !(await waited(sleep(delayMs(number), signal)))) {
      return { attempts: made, last, delivered: last.outcome === 'success' };
    }
  }
}

const waited = (sleep: Promise<unknown>): Promise<boolean> =>
  sleep.then(
    () => true,
    () => false,
  );
