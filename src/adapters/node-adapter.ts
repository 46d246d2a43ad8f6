// Reads a Node request for a receiver and writes its answer, for HTTP/1.1 and HTTP/2 (RFC 9112, RFC 9113).
// Called by the adapters for Node, Express and Fastify. The Hono adapter uses only the part that reads.

import type { Readable } from 'node:stream';
import type { HeadersInput } from '../shared/delivery.ts';
import type { Reply } from '../shared/outcome.ts';
import {
  type Answered,
  consumed,
  type AdapterReceiver,
  type AdapterTicket,
  faultReply,
  isTicket,
} from './shared-adapter.ts';
import { isBytes } from '../shared/realms.ts';

/**
 * Longest wait, after an answer, for the sender to close the connection, ms. It is enough for an answer to cross the
 * world.
 */
const LINGER_MS = 1_000;

/**
 * The number of bytes that are dropped after an answer: as many as a sender may have sent before it reads the answer.
 */
const LINGER_BYTES = 65_536;

/**
 * Waits, after an answer was written, for the sender to read it. Closing while a body still arrives resets
 * the connection, and the reset can overtake the answer (RFC 9112 §9.6). A seller that never sees its 413
 * keeps trying.
 *
 * Up to 64 KiB that arrive are dropped; more is not even read. Ends when the body ends or the sender hangs
 * up, and after a second in any case.
 */
function linger(body: Readable): Promise<void> {
  return new Promise((resolve) => {
    let left = LINGER_BYTES;
    const forget = (chunk: Uint8Array | string): void => {
      left -= chunk.length;
      if (left < 0) body.pause();
    };
    const done = (): void => {
      clearTimeout(deadline);
      body.off('data', forget).off('end', done).off('error', done).off('close', done);
      resolve();
    };
    const deadline = setTimeout(done, LINGER_MS);
    deadline.unref();
    body.on('data', forget).on('end', done).on('error', done).on('close', done);
    body.resume();
    if (body.destroyed || body.readableEnded) done();
  });
}

/** Marks the socket of an HTTP/1.1 connection that closes after its current answer. */
const CLOSING: unique symbol = Symbol('proto-webhooks.closing');

/**
 * A Node request, reduced to the parts that the adapters use. `http.IncomingMessage`, `http2.Http2ServerRequest` and
 * the requests of Node frameworks fit.
 */
export interface NodeRequest extends Readable {
  readonly method?: string | undefined;
  readonly url?: string | undefined;
  /** The request target as received, for frameworks that remove their mount path from `url`. */
  readonly originalUrl?: string;
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>;
  /** True if the whole request has arrived (HTTP/1.1). */
  readonly complete?: boolean;
  /** The header fields as a flat list: name, value, name, value, … Repeated lines are kept. */
  readonly rawHeaders?: readonly string[];
  readonly httpVersionMajor?: number;
  /** The socket of the connection, the same object for all its requests (HTTP/1.1). */
  readonly socket?: { destroy(): unknown; [CLOSING]?: true } | null;
  /** The stream of the request (HTTP/2 only). */
  readonly stream?: {
    respond(headers: Readonly<Record<string, string | number>>, options: { endStream: boolean }): void;
    close(code: number): void;
  };
  /** The body that a body parser has read. It is used instead of the stream if it is a `Uint8Array`. */
  readonly body?: unknown;
  /**
   * The body's bytes as Google Cloud Functions, Nest or `express.json({ verify })` keep them. They are used instead of
   * the stream if they are a `Uint8Array`.
   */
  readonly rawBody?: unknown;
}

/**
 * True if the connection's last answer had `Connection: close`. Later requests on the connection must be ignored (RFC
 * 9112 §9.6), but Node passes them on.
 */
const isClosing = (req: NodeRequest): boolean => req.socket?.[CLOSING] === true;

const DECODED_FIX = 'req.setEncoding() was called: remove the call.';

/** Returns the body that other code has read, if that code has kept the bytes. */
function bytesGiven({ rawBody, body }: NodeRequest): Uint8Array | undefined {
  if (isBytes(rawBody)) return rawBody;
  return isBytes(body) ? body : undefined;
}

/**
 * Returns the advice for the error if the body's exact bytes can no longer be read from the stream; undefined if they
 * can.
 * @param fix the advice if other code has read the body.
 */
function lostBytes(req: NodeRequest, fix: string): string | undefined {
  // `req.body` does not show that the body was read: Express 4 sets it to {} without reading.
  if (req.readableDidRead) return fix;
  return req.readableEncoding === null ? undefined : DECODED_FIX;
}

/**
 * Passes the request's body to the ticket, to its end or until the ticket accepts no more. Never rejects. Listeners
 * stay on a stream that has ended; they are freed together with the stream.
 */
export async function readStream(req: NodeRequest, ticket: AdapterTicket): AdapterTicket['outcome'] {
  if (req.destroyed) {
    ticket.abort();
    return undefined;
  }
  // If the ticket accepts no more, the remaining bytes stay unread in the socket.
  const onData = (chunk: Uint8Array): void => {
    if (!ticket.add(chunk)) req.pause();
  };
  const onEnd = (): void => (isClosing(req) ? ticket.abort() : end());
  const end = (): void => void ticket.end().catch(() => undefined);
  // When an upload breaks off, the request emits `error`, `close` or both, but not `end`.
  const onGone = (): void => ticket.abort();
  req.on('data', onData).on('end', onEnd).on('error', onGone).on('close', onGone);
  // A proxy or a middleware that waits may have paused the stream. Without this call, the listeners would wait for
  // ever.
  req.resume();
  const outcome = await ticket.outcome;
  if (req.readableEnded) return outcome;
  req.off('data', onData).off('end', onEnd).off('error', onGone).off('close', onGone);
  req.pause();
  return outcome;
}

/**
 * A Node response, reduced to the parts that the adapters use. `http.ServerResponse`, `http2.Http2ServerResponse`
 * and the responses of Node frameworks fit.
 */
export interface NodeResponse {
  readonly headersSent: boolean;
  readonly writableEnded: boolean;
  readonly destroyed?: boolean;
  writeHead(status: number, headers: Record<string, string>): unknown;
  flushHeaders?(): void;
  write(body: Uint8Array): unknown;
  end(): unknown;
  end(body: Uint8Array): unknown;
  once(event: 'close', listener: () => void): unknown;
}

interface NodeAnswer {
  readonly reply: Reply;
  /** True if bytes of the body are still to come, so that the connection cannot carry another request. */
  readonly unread: boolean;
}

/**
 * Returns `rawHeaders`, which keep repeated lines. Some emulations of Node leave `rawHeaders` empty. Then `headers` is
 * used, which hides repeated lines.
 */
const headersOf = (req: NodeRequest): HeadersInput =>
  req.rawHeaders && req.rawHeaders.length > 0 ? req.rawHeaders : req.headers;

const isHttp2 = (req: NodeRequest): boolean => (req.httpVersionMajor ?? 1) >= 2;

/**
 * True if an unread HTTP/1.1 request declares more body than Node has in its buffer (RFC 9112 §6). Node sets `complete`
 * only after the last bytes were read, so an unread request needs this comparison. A request with a transfer coding
 * always counts as declaring more.
 */
const declaresMore = ({ headers, readableLength }: NodeRequest): boolean =>
  headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) !== readableLength;

/**
 * True if a part of the body has not yet arrived. Bytes in Node's buffer do not count, because Node drops them after
 * the answer.
 */
const bodyIsPending = (req: NodeRequest): boolean =>
  !req.readableEnded && (isHttp2(req) || (req.complete !== true && declaresMore(req)));

/**
 * Returns the answer to a delivery whose headers passed; undefined if nobody waits for an answer any more.
 * @param received the body, if other code has read it.
 */
function outcomeOf(
  receiver: AdapterReceiver,
  ticket: AdapterTicket,
  received: Uint8Array | undefined,
  { req, fix }: NodeExchange,
): Answered | undefined | Promise<Answered | undefined> {
  if (isClosing(req)) {
    ticket.abort();
    return undefined;
  }
  if (received) {
    ticket.add(received);
    return ticket.end();
  }
  const lost = lostBytes(req, fix);
  return lost === undefined ? readStream(req, ticket) : { response: consumed(receiver, ticket, lost) };
}

/** Error codes of HTTP/2 (RFC 9113 §7): no error, and an error on the receiver's side. */
const HTTP2_NO_ERROR = 0;
const HTTP2_INTERNAL_ERROR = 2;

/**
 * Writes an HTTP/1.1 answer and closes the connection, because the unread rest of the body would precede the next
 * request.
 */
async function writeAndClose(req: NodeRequest, res: NodeResponse, body: Uint8Array): Promise<void> {
  if (body.byteLength > 0) res.write(body);
  else res.flushHeaders?.();
  await linger(req);
  res.end();
}

/**
 * Writes an HTTP/2 answer, and then ends the upload by a reset without an error; the connection stays open (RFC 9113
 * §8.1). The answer has no body, so its headers end the stream. `res.end()` is not used, because it would send trailers
 * later, when the stream is closed.
 */
function answerAndReset({ stream }: NodeRequest, { status, headers }: Reply): void {
  const fields = Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value] as const);
  stream?.respond(
    { ':status': status, ...Object.fromEntries(fields), 'content-length': '0' },
    { endStream: true },
  );
  // The reset waits for the next turn of the event loop. An immediate reset would overtake the answer (Node 22 and 26),
  // and the sender would see no answer.
  setImmediate(() => stream?.close(HTTP2_NO_ERROR));
}

const NOTHING: Uint8Array = new Uint8Array(0);

/** Writes the answer. @returns a promise to await if the connection closes after the answer, otherwise undefined. */
function writeReply(
  req: NodeRequest,
  res: NodeResponse,
  { reply, unread }: NodeAnswer,
): Promise<void> | undefined {
  // Nothing can be written any more: the sender has gone, or a time-out of the framework has answered already.
  if (res.headersSent || res.writableEnded || res.destroyed) return undefined;
  if (unread && isHttp2(req)) {
    answerAndReset(req, reply);
    return undefined;
  }
  // Nearly every answer has an empty body, for which no encoder is made.
  const body = reply.body === '' ? NOTHING : new TextEncoder().encode(reply.body);
  const close = unread;
  if (close && req.socket) req.socket[CLOSING] = true;
  res.writeHead(reply.status, {
    ...reply.headers,
    'Content-Length': String(body.byteLength),
    ...(close && { Connection: 'close' }),
  });
  if (close) return writeAndClose(req, res, body);
  if (body === NOTHING) res.end();
  else res.end(body);
  return undefined;
}

/** Returns a signal that aborts when the connection closes before the answer is complete. */
export function disconnectSignal(res: Pick<NodeResponse, 'writableEnded' | 'once'>): AbortSignal {
  const controller = new AbortController();
  res.once('close', () => {
    if (!res.writableEnded) controller.abort();
  });
  return controller.signal;
}

/** One Node request that an adapter processes. */
interface NodeExchange {
  /** The advice for the error if other code has already read the body; each adapter has its own text. */
  readonly fix: string;
  readonly req: NodeRequest;
  readonly res: NodeResponse;
  /** The request target as received, even if the framework has shortened `req.url`. */
  readonly url: string | undefined;
}

/** Answers one request. An exception is answered with 503. */
async function serve(receiver: AdapterReceiver, exchange: NodeExchange): Promise<void> {
  const { req, res, url } = exchange;
  const { method = '' } = req;
  try {
    const signal = disconnectSignal(res);
    const info = url === undefined ? { method, signal } : { url, method, signal };
    const opened = await receiver.open(headersOf(req), info);
    const received = isTicket(opened) ? bytesGiven(req) : undefined;
    const outcome = isTicket(opened) ? await outcomeOf(receiver, opened, received, exchange) : opened;
    if (!outcome) return;
    const unread = !received && bodyIsPending(req);
    const closing = writeReply(req, res, { reply: outcome.response, unread });
    if (closing) await closing;
  } catch (error) {
    await writeReply(req, res, { reply: faultReply(receiver, error), unread: bodyIsPending(req) });
  }
}

/** Calls `serve`, and lets no error escape: if not even the answer 503 can be written, breaks the connection. */
export function serveSafely(receiver: AdapterReceiver, exchange: NodeExchange): void {
  serve(receiver, exchange).catch(() => breakOff(exchange.req));
}

/** Breaks the connection or stream, because the answer cannot be written. The sender notices it and tries again. */
function breakOff(req: NodeRequest): void {
  if (isHttp2(req)) req.stream?.close(HTTP2_INTERNAL_ERROR);
  else req.socket?.destroy();
}
