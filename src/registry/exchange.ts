// Sends a call to the agent registry, repeats it if that is allowed, and reads its answer within limits
// (contract.md §2.1).
// Only `send` calls it. It gets the token, and removes the token from every error message.

import { boundedAnswer, mostValues } from '../calls/bounds.ts';
import { isJsonObject, textMember } from '../codec/members.ts';
import { printableText } from '../codec/printable.ts';
import { retryAfterMs } from '../codec/retry-after.ts';
import { ConfigError } from '../shared/errors.ts';
import type { AnyFetch } from '../keys/key-resolver.ts';
import { readCapped, fetchFailure } from '../keys/safe-fetch.ts';
import { limited, orAborted, untilRejected } from '../shared/time-limits.ts';
import { abortedCall, codeOf } from './registry-errors.ts';
import { RegistryError, type RegistryMethod, type TokenSource } from './types.ts';

/** Matches a bearer token (RFC 6750 §2.1). It allows no line break, which would begin another header. */
const TOKEN = /^[A-Za-z0-9._~+/-]+=*$/;

const LOOPBACK = /^(?:localhost|127(?:\.\d{1,3}){3}|\[::1\])$/;

/**
 * Checks the option `token`, and returns a function that returns the token.
 * @throws ConfigError if the option is no token, or if the token would be sent over http to another host than loopback.
 */
export function tokenOf(given: unknown, { protocol, hostname }: URL): TokenSource | undefined {
  if (given === undefined) return undefined;
  if (protocol !== 'https:' && !LOOPBACK.test(hostname)) {
    throw new ConfigError('token: would go over http. Use an https baseUrl; http is only for loopback.');
  }
  if (typeof given === 'function') return given as TokenSource;
  if (typeof given !== 'string' || !TOKEN.test(given)) {
    throw new ConfigError(
      'token: is not a bearer token. Give the API key (sk_…) or JWT alone, without "Bearer" and white space, or a function that gives one.',
    );
  }
  return () => given;
}

/**
 * Calls the token function. It waits at most `ms`, or until the signal aborts, so that a function that never settles
 * blocks no call.
 * @throws RegistryError if the function fails or returns no token.
 */
async function askToken(
  source: TokenSource,
  ms: number,
  signal: AbortSignal,
  rejected?: string,
): Promise<string> {
  let token: unknown;
  try {
    signal.throwIfAborted();
    const ask = async (): Promise<string> => await source(rejected);
    const limit = { ms, reason: `no token within ${ms} ms` };
    token = await limited(limit, signal, async (within) => await orAborted(ask(), within));
  } catch (error) {
    if (signal.aborted) throw abortedCall(error);
    throw new RegistryError('unauthorized', 'the token function failed', { cause: error });
  }
  if (typeof token === 'string' && TOKEN.test(token)) return token;
  throw new RegistryError('unauthorized', 'the token function gave no bearer token');
}

/**
 * A token in a text is recognised by this number of first characters, because the text may have been cut off inside the
 * token.
 */
const KNOWN_BY = 8;

/**
 * Returns `text` with every token, or the beginning of a token, replaced. Some servers repeat what they received in
 * their error texts.
 */
function withoutToken(token: string | undefined, text: string): string {
  if (token === undefined) return text;
  const start = token.slice(0, KNOWN_BY).replaceAll(/[.+/]/g, String.raw`\$&`);
  return text.replaceAll(new RegExp(`${start}[A-Za-z0-9._~+/=%-]*`, 'g'), '***');
}

/** One call to the registry that is ready to be sent. */
interface Call {
  readonly method: RegistryMethod;
  readonly url: string;
  /** The body as JSON in UTF-8; undefined: no body. */
  readonly body: Uint8Array<ArrayBuffer> | undefined;
  /** Returns the token; undefined if no token is sent. */
  readonly token: TokenSource | undefined;
  readonly signal: AbortSignal;
}

/** The functions and limits that all calls use. */
export interface RegistryConnection {
  readonly fetch: AnyFetch;
  readonly deadlineMs: number;
  readonly maxAnswerBytes: number;
  readonly attempts: number;
  readonly maxWaitMs: number;
  readonly now: () => number;
  readonly random: () => number;
  readonly sleep: (ms: number, signal: AbortSignal) => Promise<void>;
}

/** The HTTP status and the parsed body of an answer. */
export interface Answered {
  readonly status: number;
  /** The parsed JSON. Undefined if the body is empty, has a content encoding, or is not strict JSON. */
  readonly value: unknown;
}

interface RegistryAnswer extends Answered {
  readonly headers: Headers;
  /** The reason why the body could not be read. Absent: it could be read, or is empty. */
  readonly invalidReason?: string;
}

/**
 * The wait before a GET is sent the second time, if the answer has no `Retry-After`, ms. Each further wait is twice as
 * long. A random time of up to `FIRST_WAIT_MS` is added to every wait.
 */
const FIRST_WAIT_MS = 1_000;

/** The most characters of the registry's own error text that a message quotes. */
const MAX_MESSAGE = 500;

/**
 * Sends a call and reads its answer. A GET that is answered 429 or 503 is sent again, after the time in `Retry-After`.
 * A call that is answered 401 had no effect. So it is sent once more if the token function returns another token.
 * @returns an answer with a 2xx status.
 * @throws RegistryError
 */
export async function exchange(connection: RegistryConnection, call: Call): Promise<Answered> {
  const ask = async (rejected?: string): Promise<string | undefined> =>
    call.token && (await askToken(call.token, connection.deadlineMs, call.signal, rejected));
  let token = await ask();
  let renewed = false;
  for (let attempt = 1; ; attempt += 1) {
    const answer = await sendOnce(connection, call, token);
    if (answer.status >= 200 && answer.status < 300) {
      if (answer.invalidReason === undefined) return answer;
      throw new RegistryError('invalid_answer', withoutToken(token, answer.invalidReason), {
        status: answer.status,
      });
    }
    const error = errorOf(answer, connection, token);
    if (answer.status === 401 && !renewed) {
      renewed = true;
      const rejected = token;
      token = await ask(rejected);
      if (token === rejected) throw error;
    } else {
      await pauseAfter(error, attempt, connection, call);
    }
  }
}

/** Waits before the call is sent again. @throws RegistryError `error` if the call may not be sent again. */
async function pauseAfter(
  error: RegistryError,
  attempt: number,
  { attempts, maxWaitMs, random, sleep }: RegistryConnection,
  { method, signal }: Call,
): Promise<void> {
  const again = method === 'GET' && (error.status === 429 || error.status === 503) && attempt < attempts;
  const waitMs = error.retryAfterMs ?? Math.min(FIRST_WAIT_MS * 2 ** (attempt - 1), maxWaitMs);
  if (!again || waitMs > maxWaitMs) throw error;
  try {
    await orAborted(sleep(waitMs + FIRST_WAIT_MS * random(), signal), signal);
    signal.throwIfAborted();
  } catch (reason) {
    throw abortedCall(reason);
  }
}

async function sendOnce(
  connection: RegistryConnection,
  call: Call,
  token: string | undefined,
): Promise<RegistryAnswer> {
  const controller = new AbortController();
  const timer = setTimeout(() => {
    controller.abort(new Error(`no whole answer within ${connection.deadlineMs} ms`));
  }, connection.deadlineMs);
  const signal = AbortSignal.any([controller.signal, call.signal]);
  try {
    signal.throwIfAborted();
    const response = await orAborted(
      untilRejected(signal, (own) => connection.fetch(call.url, initOf(call, connection, token, own))),
      signal,
    );
    return await read(response, connection.maxAnswerBytes, signal);
  } catch (error) {
    if (error instanceof RegistryError) throw error;
    if (call.signal.aborted) throw abortedCall(error);
    throw new RegistryError('unreachable', withoutToken(token, fetchFailure(error)));
  } finally {
    clearTimeout(timer);
    // The abort frees the connection if the body was not read to its end.
    controller.abort(new Error('done'));
  }
}

function initOf(
  { method, body }: Call,
  { maxAnswerBytes }: RegistryConnection,
  token: string | undefined,
  signal: AbortSignal,
) {
  return {
    method,
    headers: {
      accept: 'application/json',
      // A small compressed answer can expand to any size. So no content encoding is requested, and none is read.
      'accept-encoding': 'identity',
      'user-agent': 'proto-webhooks',
      ...(body && { 'content-type': 'application/json' }),
      ...(token !== undefined && { authorization: `Bearer ${token}` }),
    },
    ...(body && { body }),
    redirect: 'manual' as const,
    signal,
    maxBytes: maxAnswerBytes,
  };
}

async function read(response: Response, maxBytes: number, signal: AbortSignal): Promise<RegistryAnswer> {
  const { status, headers, redirected, type } = response;
  if (redirected || type === 'opaqueredirect' || (status >= 300 && status < 400)) {
    throw new RegistryError('invalid_answer', 'answered with a redirect, which is not followed', { status });
  }
  const encoding = headers.get('content-encoding');
  if (encoding !== null && encoding.trim().toLowerCase() !== 'identity') {
    return {
      status,
      headers,
      value: undefined,
      invalidReason: 'the answer has an encoding that was not requested',
    };
  }
  const bytes = await readCapped(response, maxBytes, signal);
  if (bytes === undefined) {
    throw new RegistryError('invalid_answer', `the answer has more than ${maxBytes} bytes`, { status });
  }
  if (bytes.byteLength === 0) return { status, headers, value: undefined };
  const parsed = await boundedAnswer(bytes, mostValues(maxBytes));
  if (parsed.ok) return { status, headers, value: parsed.value };
  const invalidReason = `the answer ${parsed.isBeyond ? 'is refused' : 'cannot be read'}: ${parsed.detail}`;
  return { status, headers, value: undefined, invalidReason };
}

/**
 * Makes the error for an answer that is not 2xx. Its message quotes the registry's `error` member, if there is one
 * (contract.md §2.1).
 */
function errorOf(
  { status, headers, value }: RegistryAnswer,
  connection: RegistryConnection,
  token: string | undefined,
): RegistryError {
  const reason = isJsonObject(value) ? textMember(value, 'error') : undefined;
  const message = reason === undefined ? '' : `: ${printableText(withoutToken(token, reason), MAX_MESSAGE)}`;
  return new RegistryError(codeOf(status), `answered ${status}${message}`, {
    status,
    retryAfterMs: retryAfterMs(headers.get('retry-after'), connection.now()),
  });
}
