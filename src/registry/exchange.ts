import { printableText } from '../codec/printable.ts';
import { parseStrictJson } from '../codec/strict-json.ts';
import { isJsonObject, textMember } from '../codec/members.ts';
import type { AnyTransport } from '../keys/contract.ts';
import { orAborted } from '../time-limits.ts';
import { readCapped, transportFailure } from '../keys/safe-fetch.ts';
import { abortedCall, codeOf, RegistryError } from './errors.ts';
import { askToken, withoutToken } from './token.ts';
import type { RegistryMethod, TokenSource } from './types.ts';

/** One call, ready to be sent. */
export interface Call {
  readonly method: RegistryMethod;
  readonly url: string;
  /** JSON, UTF-8. */
  readonly body: Uint8Array<ArrayBuffer> | undefined;
  /** Undefined: none is sent. */
  readonly token: TokenSource | undefined;
  readonly signal: AbortSignal;
}

/** How calls are made. */
export interface Connection {
  readonly transport: AnyTransport;
  readonly deadlineMs: number;
  readonly maxAnswerBytes: number;
  readonly attempts: number;
  readonly maxWaitMs: number;
  readonly now: () => number;
  readonly random: () => number;
  readonly sleep: (ms: number, signal: AbortSignal) => Promise<void>;
}

/** What came back. */
export interface Answered {
  readonly status: number;
  /** Undefined where there are no bytes, or they are not strict JSON. */
  readonly value: unknown;
}

interface Answer extends Answered {
  readonly headers: Headers;
  /** Why `value` could not be read. */
  readonly flaw?: string;
}

/** Ms between attempts where the answer does not say: doubled each time, and spread over as much again. */
const FIRST_WAIT_MS = 1_000;

/** Characters of the registry's own words in a message. */
const MAX_MESSAGE = 500;

/**
 * Sends a call and reads its answer. A GET that is answered 429 or 503 is sent again, after what `Retry-After` asks;
 * any call once more where the token was answered 401, which means that nothing was done, and there is another one.
 * @returns a 2xx.
 * @throws RegistryError
 */
export async function exchange(connection: Connection, call: Call): Promise<Answered> {
  const ask = async (rejected?: string): Promise<string | undefined> =>
    call.token && (await askToken(call.token, connection.deadlineMs, call.signal, rejected));
  let token = await ask();
  let renewed = false;
  for (let attempt = 1; ; attempt += 1) {
    const answer = await sendOnce(connection, call, token);
    if (answer.status >= 200 && answer.status < 300) {
      if (answer.flaw === undefined) return answer;
      throw new RegistryError('invalid_answer', withoutToken(token, answer.flaw), { status: answer.status });
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

/** Waits until the call may be sent again. @throws RegistryError `error` where it may not. */
async function pauseAfter(
  error: RegistryError,
  attempt: number,
  { attempts, maxWaitMs, random, sleep }: Connection,
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

async function sendOnce(connection: Connection, call: Call, token: string | undefined): Promise<Answer> {
  const controller = new AbortController();
  const timer = setTimeout(() => {
    controller.abort(new Error(`no whole answer within ${connection.deadlineMs} ms`));
  }, connection.deadlineMs);
  const signal = AbortSignal.any([controller.signal, call.signal]);
  try {
    signal.throwIfAborted();
    const response = await orAborted(
      connection.transport(call.url, initOf(call, connection, token, signal)),
      signal,
    );
    return await read(response, connection.maxAnswerBytes, signal);
  } catch (error) {
    if (error instanceof RegistryError) throw error;
    if (call.signal.aborted) throw abortedCall(error);
    throw new RegistryError('unreachable', withoutToken(token, transportFailure(error)));
  } finally {
    clearTimeout(timer);
    // Whatever was not read holds no connection.
    controller.abort(new Error('done'));
  }
}

function initOf(
  { method, body }: Call,
  { maxAnswerBytes }: Connection,
  token: string | undefined,
  signal: AbortSignal,
) {
  return {
    method,
    headers: {
      accept: 'application/json',
      // A small encoded answer can hold any amount of memory: none is asked for, and none is read.
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

async function read(response: Response, maxBytes: number, signal: AbortSignal): Promise<Answer> {
  const { status, headers, redirected, type } = response;
  if (redirected || type === 'opaqueredirect' || (status >= 300 && status < 400)) {
    throw new RegistryError('invalid_answer', 'answered with a redirect, which is not followed', { status });
  }
  const encoding = headers.get('content-encoding');
  if (encoding !== null && encoding.trim().toLowerCase() !== 'identity') {
    return { status, headers, value: undefined, flaw: 'the answer is encoded, though none was asked for' };
  }
  const bytes = await readCapped(response, maxBytes, signal);
  if (bytes === undefined) {
    throw new RegistryError('invalid_answer', `the answer has more than ${maxBytes} bytes`, { status });
  }
  if (bytes.byteLength === 0) return { status, headers, value: undefined };
  const parsed = parseStrictJson(bytes);
  return parsed.ok
    ? { status, headers, value: parsed.value }
    : { status, headers, value: undefined, flaw: `the answer cannot be read: ${parsed.detail}` };
}

/** The registry's `{ error }` (contract.md §2.1), or its status alone. */
function errorOf(
  { status, headers, value }: Answer,
  connection: Connection,
  token: string | undefined,
): RegistryError {
  const said = isJsonObject(value) ? textMember(value, 'error') : undefined;
  const message = said === undefined ? '' : `: ${printableText(withoutToken(token, said), MAX_MESSAGE)}`;
  const retryAfterMs = retryAfter(headers.get('retry-after'), connection.now());
  return new RegistryError(codeOf(status), `answered ${status}${message}`, { status, retryAfterMs });
}

/** RFC 9110 §10.2.3: seconds or a date, which begins with the name of its day. What is neither says nothing. */
function retryAfter(value: string | null, now: number): number | undefined {
  if (value === null) return undefined;
  if (/^\d+$/.test(value)) return Math.min(Number(value) * 1000, Number.MAX_SAFE_INTEGER);
  const at = /^[A-Z][a-z]{2,8}, /.test(value) ? Date.parse(value) : Number.NaN;
  return Number.isNaN(at) ? undefined : Math.max(at - now, 0);
}
