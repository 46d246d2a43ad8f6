import { printableText } from '../codec/printable.ts';
import { parseStrictJson } from '../codec/strict-json.ts';
import { isJsonObject, textMember } from '../codec/members.ts';
import type { AnyTransport } from '../keys/contract.ts';
import { orAborted } from '../keys/net/abort.ts';
import { readCapped, transportFailure } from '../keys/safe-fetch.ts';
import { codeOf, RegistryError } from './errors.ts';
import type { RegistryMethod } from './types.ts';

/** One call, ready to be sent. */
export interface Call {
  readonly method: RegistryMethod;
  readonly url: string;
  /** JSON, UTF-8. */
  readonly body: Uint8Array<ArrayBuffer> | undefined;
  readonly signal: AbortSignal | undefined;
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

interface Answer {
  readonly status: number;
  readonly headers: Headers;
  /** Undefined where there are no bytes, or they are not strict JSON (`flaw` says why). */
  readonly value: unknown;
  readonly flaw?: string;
}

/** Ms between attempts where the answer does not say: doubled each time, and spread over as much again. */
const FIRST_WAIT_MS = 1_000;

/** Characters of the registry's own words in a message. */
const MAX_MESSAGE = 500;

const NEVER: AbortSignal = /* @__PURE__ */ new AbortController().signal;

/**
 * Sends a call and reads its answer; a GET that is answered 429 or 503 is sent again, after what `Retry-After` asks.
 * @param token undefined: none is sent.
 * @returns the parsed body of a 2xx, or undefined where it has none.
 * @throws RegistryError
 */
export async function exchange(
  connection: Connection,
  call: Call,
  token: string | undefined,
): Promise<unknown> {
  for (let attempt = 1; ; attempt += 1) {
    const answer = await sendOnce(connection, call, token);
    if (answer.status >= 200 && answer.status < 300) {
      if (answer.flaw === undefined) return answer.value;
      throw new RegistryError('invalid_answer', answer.flaw, { status: answer.status });
    }
    const error = errorOf(answer, connection, token);
    const again = call.method === 'GET' && (answer.status === 429 || answer.status === 503);
    const waitMs =
      (error.retryAfterMs ?? FIRST_WAIT_MS * 2 ** (attempt - 1)) + FIRST_WAIT_MS * connection.random();
    if (!again || attempt >= connection.attempts || waitMs > connection.maxWaitMs) throw error;
    await paused(connection, waitMs, call.signal ?? NEVER);
  }
}

async function paused(connection: Connection, ms: number, signal: AbortSignal): Promise<void> {
  try {
    signal.throwIfAborted();
    await orAborted(connection.sleep(ms, signal), signal);
  } catch (error) {
    throw new RegistryError('unreachable', 'the call was aborted', { cause: error });
  }
}

async function sendOnce(connection: Connection, call: Call, token: string | undefined): Promise<Answer> {
  const controller = new AbortController();
  const timer = setTimeout(() => {
    controller.abort(new Error(`no whole answer within ${connection.deadlineMs} ms`));
  }, connection.deadlineMs);
  const signal = AbortSignal.any([controller.signal, call.signal ?? NEVER]);
  try {
    signal.throwIfAborted();
    const response = await orAborted(
      connection.transport(call.url, initOf(call, connection, token, signal)),
      signal,
    );
    return await read(response, connection.maxAnswerBytes, signal);
  } catch (error) {
    if (error instanceof RegistryError) throw error;
    const aborted = call.signal?.aborted === true;
    const message = aborted ? 'the call was aborted' : without(token, transportFailure(error));
    throw new RegistryError('unreachable', message, aborted ? { cause: error } : {});
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
  const message = said === undefined ? '' : `: ${without(token, printableText(said, MAX_MESSAGE))}`;
  const retryAfterMs = retryAfter(headers.get('retry-after'), connection.now());
  return new RegistryError(codeOf(status), `answered ${status}${message}`, { status, retryAfterMs });
}

/** RFC 9110 §10.2.3: seconds or a date. */
function retryAfter(value: string | null, now: number): number | undefined {
  if (value === null) return undefined;
  if (/^\d{1,9}$/.test(value.trim())) return Number(value) * 1000;
  const at = Date.parse(value);
  return Number.isNaN(at) ? undefined : Math.max(at - now, 0);
}

/** Some servers repeat what they were sent. */
function without(token: string | undefined, text: string): string {
  return token === undefined ? text : text.replaceAll(token, '***');
}
