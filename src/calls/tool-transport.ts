// The streamable HTTP transport for one call of an MCP client, with limits for the answer (calls.md §4.7). `mcpCaller`
// gives each SDK client a new transport.
import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js';
import { utf8 } from '../codec/encoding.ts';
import { isJsonObject, type JsonObject } from '../codec/members.ts';
import { MAX_TEXT, printableName, printableText } from '../codec/printable.ts';
import { limited, turnAfter } from '../shared/time-limits.ts';
import { boundedJson, errorJson } from './bounds.ts';
import { chunksOf, tooLong, wholeBody } from './answer-body.ts';
import { AnswerRefusedError } from './refused-answer.ts';
import { eventsOf, type StreamEvent } from './event-stream.ts';
import type { Moved } from './redirects.ts';
import { SessionLostError, sessionHeaders, type ToolSession } from './tool-session.ts';

/** The session, the functions and the limits that a transport needs. */
export interface ToolTransportOptions {
  readonly session: ToolSession;
  readonly fetch: (url: string, request: ToolRequest) => Promise<Response>;
  /** Returns the error if an unsuccessful answer comes from a web server instead of an agent; otherwise undefined. */
  readonly noAgent: (url: string, response: Response) => Error | undefined;
  readonly maxAnswerBytes: number;
  readonly maxValues: number;
  /** The time limit for a request and its whole answer, ms. */
  readonly timeoutMs: number;
  /** Resolves after `ms`, or early if the signal aborts. */
  readonly sleep: (ms: number, signal: AbortSignal) => Promise<void>;
}

interface ToolRequest {
  readonly method: 'GET' | 'POST';
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: Uint8Array<ArrayBuffer>;
  readonly moved: Moved;
  readonly signal: AbortSignal;
}

type Message = Parameters<NonNullable<Transport['onmessage']>>[0];

/** A request of the SDK client: its method, the client's id for it, and the id by which it is sent in the session. */
interface Asked {
  readonly method: string;
  readonly clientId: unknown;
  readonly id: number;
}

/** The number of times that a stream is resumed if it ends without the answer. */
const MAX_RESUMED = 2;
/** The shortest wait before a stream is resumed. Ms. */
const LEAST_RETRY_MS = 1000;
/**
 * The most events in all streams of one request. They are limited, because each costs more memory than its few bytes.
 */
const MAX_EVENTS = 10_000;
/** The most pings of the server that are answered during one request. */
const MAX_PINGS = 10;
const NOT_FOUND = 404;

/**
 * Returns the streamable HTTP transport for an SDK client that makes one call. Several transports may share a session
 * (calls.md §4.7). The client gets only the result or the error of an answer, within limits. From the answer to
 * `initialize`, the client gets only the protocol version.
 */
export function toolTransport(options: ToolTransportOptions): Transport {
  const { session, fetch, noAgent, maxAnswerBytes, maxValues, timeoutMs, sleep } = options;
  const closing = new AbortController();
  const limit = { ms: timeoutMs, reason: `the call timed out: no whole answer within ${timeoutMs} ms` };

  const post = async (message: object, signal: AbortSignal): Promise<Response> =>
    fetch(session.url, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        accept: 'application/json, text/event-stream',
        ...sessionHeaders(session),
      },
      body: utf8(JSON.stringify(message)) as Uint8Array<ArrayBuffer>,
      moved: session.moved,
      signal,
    });

  /**
   * Gives the SDK client the answer to the request `asked`, if `value` contains that answer. @returns true if it does.
   */
  const deliver = (value: unknown, asked: Asked): boolean => {
    const messages: readonly unknown[] = Array.isArray(value) ? value : [value];
    const answer = messages.find((message) => isAnswerTo(message, asked.id));
    if (!isJsonObject(answer)) return false;
    transport.onmessage?.(handedOver(answer, asked) as Message);
    return true;
  };

  const parsed = async (bytes: Uint8Array, isError = false): Promise<unknown> =>
    (isError ? errorJson : boundedJson)(bytes, maxValues);

  const readStream = async (first: Response, asked: Asked, signal: AbortSignal): Promise<void> => {
    let left = maxAnswerBytes;
    const linesLeft = { lines: maxValues };
    let events = 0;
    let pings = 0;
    let seen: StreamEvent = {};
    const counted = async function* (response: Response): AsyncGenerator<Uint8Array> {
      for await (const chunk of chunksOf(response, signal)) {
        left -= chunk.byteLength;
        if (left < 0) throw tooLong(maxAnswerBytes);
        yield chunk;
      }
    };
    const read = async (response: Response): Promise<boolean> => {
      for await (const event of eventsOf(counted(response), linesLeft)) {
        events += 1;
        if (events > MAX_EVENTS)
          throw new AnswerRefusedError(`its stream has more than ${MAX_EVENTS} events`);
        seen = { ...seen, ...event };
        if (event.data === undefined) continue;
        const bytes = utf8(event.data);
        await turnAfter(bytes.byteLength);
        const message = await parsed(bytes);
        if (deliver(message, asked)) return true;
        if (isPing(message) && (pings += 1) <= MAX_PINGS)
          transport.onmessage?.({ jsonrpc: '2.0', id: message.id, method: 'ping' });
      }
      return false;
    };
    for (let resumed = 0, response = first; ; resumed += 1) {
      if (await read(response)) return;
      const { lastId, retryMs = LEAST_RETRY_MS } = seen;
      if (lastId === undefined || !SENDABLE.test(lastId) || resumed === MAX_RESUMED) {
        throw new Error(`${session.url} ends its stream without an answer.`);
      }
      await sleep(Math.max(LEAST_RETRY_MS, Math.min(retryMs, timeoutMs)), signal);
      signal.throwIfAborted();
      response = await resume(session, fetch, lastId, signal);
    }
  };

  const readAnswer = async (response: Response, asked: Asked, signal: AbortSignal): Promise<void> => {
    const type = mediaType(response);
    if (response.ok && type === 'text/event-stream') return readStream(response, asked, signal);
    const bytes = await wholeBody(response, maxAnswerBytes, signal);
    const isJson = type === 'application/json' || type.endsWith('+json');
    const value = isJson ? await parsed(bytes, !response.ok) : undefined;
    // If the server failed before it read the request, its error may have no id. Then the error counts as the answer
    // (below).
    if (deliver(value, asked)) return;
    if (
      !response.ok &&
      isJsonObject(value) &&
      isJsonObject(value['error']) &&
      deliver({ ...value, id: asked.id }, asked)
    )
      return;
    throw new Error(noAnswer(session.url, response, isJson ? 'without a JSON-RPC response' : type, bytes));
  };

  const exchange = async (message: JsonObject, signal: AbortSignal): Promise<void> => {
    const { method, id: clientId } = message;
    const isRequest = typeof method === 'string' && clientId !== undefined;
    if (!isRequest) {
      const response = await post(message, signal);
      await response.body?.cancel().catch(() => undefined);
      if (response.ok) return;
      const failure = lostIn(response) ?? noAgent(session.url, response);
      throw failure ?? new Error(`${session.url} answers HTTP ${response.status}.`);
    }
    const asked: Asked = { method, clientId, id: session.nextId };
    session.nextId += 1;
    const response = await post({ ...message, id: asked.id }, signal);
    const failure = lostIn(response) ?? noAgent(session.url, response);
    if (failure) {
      await response.body?.cancel().catch(() => undefined);
      throw failure;
    }
    if (method === 'initialize') session.id = response.headers.get('mcp-session-id') ?? undefined;
    await readAnswer(response, asked, signal);
  };

  const lostIn = ({ status }: Response): Error | undefined =>
    status === NOT_FOUND && session.id !== undefined
      ? new SessionLostError(`${session.url} does not know the session any more.`)
      : undefined;

  const transport: Transport = {
    ...(session.isOpen && { sessionId: session.id ?? '' }),
    start: async () => undefined,
    close: async () => {
      closing.abort(new Error('the call is over'));
      transport.onclose?.();
    },
    setProtocolVersion: (version) => {
      session.version = version;
    },
    send: async (message) =>
      limited(limit, closing.signal, (within) => exchange(message as unknown as JsonObject, within)),
  };
  return transport;
}

/** Requests the rest of a stream, after the event with the id `lastId`. */
async function resume(
  session: ToolSession,
  fetch: ToolTransportOptions['fetch'],
  lastId: string,
  signal: AbortSignal,
): Promise<Response> {
  const response = await fetch(session.url, {
    method: 'GET',
    headers: { accept: 'text/event-stream', 'last-event-id': lastId, ...sessionHeaders(session) },
    moved: session.moved,
    signal,
  });
  if (response.ok && mediaType(response) === 'text/event-stream') return response;
  await response.body?.cancel().catch(() => undefined);
  throw new Error(`${session.url} answers HTTP ${response.status} instead of resuming its stream.`);
}

/** Matches event ids that can be sent back unchanged in a header. */
const SENDABLE = /^[\x20-\x7e]{1,1024}$/;

const mediaType = ({ headers }: Response): string =>
  (headers.get('content-type') ?? '').split(';', 1)[0]?.trim().toLowerCase() ?? '';

/**
 * True if the message answers the request. Its `id` may be a number or a text, because some servers change the type.
 */
function isAnswerTo(message: unknown, id: number): boolean {
  if (!isJsonObject(message) || (message['id'] !== id && message['id'] !== String(id))) return false;
  return isJsonObject(message['result']) || isJsonObject(message['error']);
}

/** Returns the answer in a form that each version of the SDK accepts. The SDK silently drops answers of other forms. */
function handedOver({ result, error }: JsonObject, { method, clientId }: Asked): JsonObject {
  const head = { jsonrpc: '2.0', id: clientId };
  if (isJsonObject(error)) {
    const { code, message, data } = error;
    return {
      ...head,
      error: {
        code: Number.isSafeInteger(code) ? code : 0,
        message: printableText(typeof message === 'string' ? message : '', MAX_TEXT),
        ...(data !== undefined && { data }),
      },
    };
  }
  const { _meta, ...rest } = result as JsonObject;
  if (method !== 'initialize') return { ...head, result: rest };
  const { protocolVersion: version } = rest;
  const protocolVersion = typeof version === 'string' ? printableName(version) : '';
  return {
    ...head,
    result: { protocolVersion, capabilities: {}, serverInfo: { name: 'seller', version: '1' } },
  };
}

/** True if the message is a ping. Its id is sent back unchanged, so its length is limited. */
function isPing(message: unknown): message is { readonly id: string | number } {
  if (!isJsonObject(message) || message['method'] !== 'ping') return false;
  const { id } = message;
  return typeof id === 'number' || (typeof id === 'string' && id.length <= MAX_TEXT);
}

/** The most characters of a seller's text that an error message shows if an answer is missing. */
const MAX_SHOWN = 300;

function noAnswer(url: string, { status, ok }: Response, what: string, bytes: Uint8Array): string {
  if (ok)
    return `${url} answers HTTP ${status} ${what === '' ? 'without a content type' : printableText(what, MAX_SHOWN)}.`;
  const text = new TextDecoder().decode(bytes.subarray(0, 4 * MAX_SHOWN));
  return `${url} answers HTTP ${status}: ${printableText(text, MAX_SHOWN)}`;
}
