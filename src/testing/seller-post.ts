// Posts deliveries as sellers do: one attempt with its outcome, and retries until an answer is final. The fake seller,
// dev, the probe and `send` call it.
import { request as httpRequest, type IncomingMessage } from 'node:http';
import { request as httpsRequest } from 'node:https';
import type { Duplex } from 'node:stream';
import { setTimeout as delay } from 'node:timers/promises';
import { readJson } from '../codec/json-reader.ts';
import type { SignedDelivery } from '../sender/sign.ts';

/**
 * The number of attempts of a fake seller to deliver an event, and the waits between them: the option `retry` of
 * `createFakeSeller` and `seller.deliver`.
 */
export interface RetryPolicy {
  /** The largest number of attempts per event, including the first. Default: 6. */
  readonly attempts: number;
  /** Returns the wait after an attempt (1, 2, …), ms. Default: 500, 1000, 2000, 4000, 7000, about 15 s in all. */
  readonly delayMs: (attempt: number) => number;
  /** The time limit of an attempt, ms. Default: 10 000. */
  readonly timeoutMs: number;
  /** Waits `ms` and rejects when `signal` aborts. Replace it in tests to avoid waiting. */
  readonly sleep: (ms: number, signal: AbortSignal) => Promise<unknown>;
}

/**
 * One attempt of a fake seller to deliver an event, with the receiver's answer, returned by `seller.send` and in the
 * result of `seller.deliver`.
 */
export interface Attempt extends PostResult {
  /** The number of the attempt, from 1. */
  readonly attempt: number;
  /** The delivery that was sent. Passing it to `send` makes a replay. */
  readonly delivery: SignedDelivery;
}

/** The result of `seller.deliver`: all attempts to deliver one event, oldest first. There is at least one. */
export interface DeliveryResult {
  readonly attempts: readonly Attempt[];
  readonly last: Attempt;
  /** True if the last answer was 2xx. */
  readonly delivered: boolean;
}

const DELAYS_MS: readonly number[] = [500, 1_000, 2_000, 4_000, 7_000];

/** The default number of attempts and waits, like those of real sellers. */
export const DEFAULT_RETRY: RetryPolicy = {
  attempts: 6,
  delayMs: (attempt) => DELAYS_MS[attempt - 1] ?? 7_000,
  timeoutMs: 10_000,
  sleep: (ms, signal) => delay(ms, undefined, { signal }),
};

/**
 * True if the seller makes no further attempt: after 2xx, 3xx, and any 4xx but 429. A 401 that asks for `Bearer` is
 * retried, because the token may be in rotation (contract.md §10.9). `Retry-After` is ignored.
 */
export function isFinal({ outcome, status, headers }: PostResult): boolean {
  // An answer that was cut short has a status here too, but counts as no answer, so the seller retries.
  if (outcome === 'timeout' || outcome === 'connection_error') return false;
  if (status === undefined || status === 429 || status >= 500) return false;
  return !(status === 401 && /^bearer\b/i.test(headers['www-authenticate'] ?? ''));
}

/** Repeats `attempt` until an answer is final, all attempts are used up, or `signal` aborts. */
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

/**
 * The outcome of one HTTP request of a fake seller, in the words of the protocol. `success`: a 2xx answer. `failed`:
 * any other answer. `timeout`: no answer in time. `connection_error`: the connection broke.
 */
export type PostOutcome = 'success' | 'failed' | 'timeout' | 'connection_error';

/**
 * The receiver's answer to one HTTP request of a fake seller: its outcome, status, headers, body and error code.
 * Each `Attempt` has its members.
 */
export interface PostResult {
  readonly outcome: PostOutcome;
  /** The HTTP status. Absent if there was no answer. */
  readonly status?: number;
  /** The header fields of the answer, by lower-case name. */
  readonly headers: Readonly<Record<string, string>>;
  /** The first 64 KiB of the answer's body. */
  readonly body: string;
  /** The error code of the answer: `error="…"` of `WWW-Authenticate`, else `error.code` of the body. */
  readonly code?: string;
}

interface PostOptions {
  /** The address to connect to. Default: that of `delivery.url`, whose host is sent as `Host` in any case. */
  readonly to?: string;
  /** The time limit for connecting and the whole answer together, ms. */
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
  /** Called if the answer has more than the bytes that are kept of its body. */
  readonly onCut?: () => void;
}

const REQUESTS = { 'http:': httpRequest, 'https:': httpsRequest } as const;

/** Returns the path and query of a URL unchanged. `new URL` would rewrite what the receiver has to see. */
const targetOf = (url: string): string => /^[^:]+:\/\/[^/?#]*([^#]*)/.exec(url)?.[1] || '/';

function codeOf(headers: Readonly<Record<string, string>>, body: string): string | undefined {
  const challenge = /error="([^"]*)"/.exec(headers['www-authenticate'] ?? '')?.[1];
  if (challenge !== undefined || !body.startsWith('{')) return challenge;
  try {
    const parsed = readJson(body) as { error?: { code?: unknown } };
    return typeof parsed.error?.code === 'string' ? parsed.error.code : undefined;
  } catch {
    return undefined;
  }
}

/**
 * The most bytes that are kept of the body of an answer. Receivers answer with far fewer, and an endless body must be
 * cut.
 */
const MAX_ANSWER_BYTES = 64 * 1024;

/**
 * Returns the result of an answer.
 * @param brokenBy the outcome if the answer was cut short: a 2xx that was cut short is no success.
 */
function answered(
  response: IncomingMessage,
  chunks: readonly Buffer[],
  brokenBy?: 'timeout' | 'connection_error',
): PostResult {
  const status = response.statusCode ?? 0;
  const headers = Object.fromEntries(
    Object.entries(response.headers).map(([name, value]) => [name, [value ?? ''].flat().join(', ')]),
  );
  const body = Buffer.concat(chunks).subarray(0, MAX_ANSWER_BYTES).toString();
  const code = codeOf(headers, body);
  const outcome = status >= 200 && status < 300 ? (brokenBy ?? 'success') : 'failed';
  return { outcome, status, headers, body, ...(code !== undefined && { code }) };
}

const unanswered = (outcome: PostOutcome): PostResult => ({ outcome, headers: {}, body: '' });

/**
 * Reads an answer up to its end or the size limit, and resolves with the result. @returns the function that ends the
 * reading early.
 */
function collect(
  response: IncomingMessage,
  broken: () => 'timeout' | 'connection_error',
  resolve: (result: PostResult) => void,
  onCut?: () => void,
): () => void {
  const chunks: Buffer[] = [];
  let length = 0;
  const finish = (): void => {
    const isCut = !response.complete && length < MAX_ANSWER_BYTES;
    resolve(answered(response, chunks, isCut ? broken() : undefined));
  };
  response.on('data', (chunk: Buffer) => {
    chunks.push(chunk);
    length += chunk.length;
    if (length < MAX_ANSWER_BYTES) return;
    onCut?.();
    finish();
    response.destroy();
  });
  response.on('error', finish);
  response.once('close', finish);
  return finish;
}

/**
 * Posts a delivery once, unchanged. If the receiver or the connection fails, the promise does not reject, but resolves
 * with that outcome.
 */
export function post(
  delivery: SignedDelivery,
  { to, timeoutMs, signal, onCut }: PostOptions,
): Promise<PostResult> {
  const address = to ?? delivery.url;
  const { protocol, hostname, port } = new URL(address);
  const send = protocol === 'https:' ? REQUESTS['https:'] : REQUESTS['http:'];
  const deadline = AbortSignal.timeout(timeoutMs);
  return new Promise((resolve) => {
    const request = send({
      method: delivery.method,
      // In a URL an IPv6 address has brackets, which `hostname` must not have.
      hostname: hostname.replace(/^\[|\]$/g, ''),
      port,
      path: targetOf(address),
      headers: {
        Host: new URL(delivery.url).host,
        'Content-Length': String(delivery.body.byteLength),
        ...delivery.headers,
      },
      setHost: false,
      agent: false,
      signal: AbortSignal.any([deadline, signal]),
    });
    const broken = (): 'timeout' | 'connection_error' => (deadline.aborted ? 'timeout' : 'connection_error');
    let finish = (): void => resolve(unanswered(broken()));
    request.once('response', (response) => {
      // A receiver may answer and close the connection before it has read the body. The answer counts, not the write
      // error.
      finish = collect(response, broken, resolve, onCut);
    });
    // After a 101, or a 2xx to CONNECT, the connection belongs to another protocol, and Node emits no `response`.
    const taken = (response: IncomingMessage, socket: Duplex): void => {
      socket.destroy();
      resolve(answered(response, []));
    };
    request.once('upgrade', taken);
    request.once('connect', taken);
    request.on('error', () => finish());
    request.end(delivery.body);
  });
}
