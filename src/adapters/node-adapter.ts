// Reads a Node request for a receiver and writes its answer, for HTTP/1.1 and HTTP/2 (RFC 9112, RFC 9113).
// Called by the adapters for Node, Express and Fastify; the one for Hono uses its reading alone.

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

/** Time in ms that is enough for an answer to cross the world and for the sender to close the connection. */
const LINGER_MS = 1_000;

/** Bytes that a sender may typically have written before it reads. */
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

/** Marks an HTTP/1.1 connection on which the last answer was given. */
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
  /** The header fields as name, value, name, value, … Repeated lines stay visible in it. */
  readonly rawHeaders?: readonly string[];
  readonly httpVersionMajor?: number;
  /** The socket of the connection, the same object for all its requests (HTTP/1.1). */
  readonly socket?: { destroy(): unknown; [CLOSING]?: true } | null;
  /** The stream of the request (HTTP/2 only). */
  readonly stream?: {
    respond(headers: Readonly<Record<string, string | number>>, options: { endStream: boolean }): void;
    close(code: number): void;
  };
  /** The body that a body parser read. It is used if it is a `Uint8Array`. */
  readonly body?: unknown;
  /**
   * The body's bytes as Google Cloud Functions, Nest or `express.json({ verify })` keep them. It is used if it is a
   * `Uint8Array`.
   */
  readonly rawBody?: unknown;
}

/**
 * True if the connection's last answer had `Connection: close`. Later requests on it must not be processed (RFC
 * 9112 §9.6), but Node would.
 */
const isClosing = (req: NodeRequest): boolean => req.socket?.[CLOSING] === true;

const DECODED_FIX = 'req.setEncoding() was called: remove the call.';

/** A body that other code has read and kept as bytes. */
function bytesGiven({ rawBody, body }: NodeRequest): Uint8Array | undefined {
  if (isBytes(rawBody)) return rawBody;
  return isBytes(body) ? body : undefined;
}

/**
 * Returns the change that the owner has to make if the exact bytes can no longer be read from the stream. Undefined
 * if they can.
 * @param fix the change if the body was read before.
 */
function lostBytes(req: NodeRequest, fix: string): string | undefined {
  // `req.body` says nothing: Express 4 sets it to {} without reading anything.
  if (req.readableDidRead) return fix;
  return req.readableEncoding === null ? undefined : DECODED_FIX;
}

/**
 * Reads the stream to its end, or until the ticket accepts no more. Never rejects. Listeners stay on a stream that
 * has ended, and are dropped together with it.
 */
export async function readStream(req: NodeRequest, ticket: AdapterTicket): AdapterTicket['outcome'] {
  if (req.destroyed) {
    ticket.abort();
    return undefined;
  }
  // The remaining bytes stay in the socket: nothing above the limit is read.
  const onData = (chunk: Uint8Array): void => {
    if (!ticket.add(chunk)) req.pause();
  };
  const onEnd = (): void => (isClosing(req) ? ticket.abort() : end());
  const end = (): void => void ticket.end().catch(() => undefined);
  // An upload that breaks off emits `error`, `close` or both, but not `end`.
  const onGone = (): void => ticket.abort();
  req.on('data', onData).on('end', onEnd).on('error', onGone).on('close', onGone);
  // A proxy or a middleware that waits may have paused the stream. A listener alone would wait without end.
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

/** Some shims leave `rawHeaders` empty. `headers` hides repeated lines and is only the fallback. */
const headersOf = (req: NodeRequest): HeadersInput =>
  req.rawHeaders && req.rawHeaders.length > 0 ? req.rawHeaders : req.headers;

const isHttp2 = (req: NodeRequest): boolean => (req.httpVersionMajor ?? 1) >= 2;

/**
 * In HTTP/1.1 a request has a body if it declares a length or a transfer coding (RFC 9112 §6). Node calls a
 * request complete only after its last bytes were given. If all have arrived and none was read, the bytes in
 * its buffer are compared with the declared length.
 */
const declaresMore = ({ headers, readableLength }: NodeRequest): boolean =>
  headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) !== readableLength;

/**
 * True if a part of the body is still to come. Node reads and drops the bytes in its buffer after the answer.
 */
const bodyIsPending = (req: NodeRequest): boolean =>
  !req.readableEnded && (isHttp2(req) || (req.complete !== true && declaresMore(req)));

/**
 * Result of a delivery whose headers passed. Undefined if nobody waits for an answer any more.
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

/** Codes of RFC 9113 §7: nothing went wrong, and something did on our side. */
const HTTP2_NO_ERROR = 0;
const HTTP2_INTERNAL_ERROR = 2;

/**
 * For HTTP/1.1: ends the connection after this answer, because the unread rest of the body is before the next
 * request.
 */
async function writeAndClose(req: NodeRequest, res: NodeResponse, body: Uint8Array): Promise<void> {
  if (body.byteLength > 0) res.write(body);
  else res.flushHeaders?.();
  await linger(req);
  res.end();
}

/**
 * HTTP/2: after the whole answer a reset without an error ends the upload, and the connection stays (RFC 9113
 * §8.1). The headers end the stream; `res.end()` would send trailers later, when the stream is closed. The
 * answers to a body that was not read have no body of their own.
 */
function answerAndReset({ stream }: NodeRequest, { status, headers }: Reply): void {
  const fields = Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value] as const);
  stream?.respond(
    { ':status': status, ...Object.fromEntries(fields), 'content-length': '0' },
    { endStream: true },
  );
  // Waits until the answer has gone out. A reset in this turn would overtake it (Node 22 and 26), and the
  // sender see none.
  setImmediate(() => stream?.close(HTTP2_NO_ERROR));
}

const NOTHING: Uint8Array = new Uint8Array(0);

/** Writes the answer. @returns a promise to wait for, if the connection ends with the answer. */
function writeReply(
  req: NodeRequest,
  res: NodeResponse,
  { reply, unread }: NodeAnswer,
): Promise<void> | undefined {
  // The sender may have gone, or a time-out of the framework may have answered already.
  if (res.headersSent || res.writableEnded || res.destroyed) return undefined;
  if (unread && isHttp2(req)) {
    answerAndReset(req, reply);
    return undefined;
  }
  // Nearly every answer has no body.
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

/** Aborts when the connection ends before the answer. */
export function disconnectSignal(res: Pick<NodeResponse, 'writableEnded' | 'once'>): AbortSignal {
  const controller = new AbortController();
  res.once('close', () => {
    if (!res.writableEnded) controller.abort();
  });
  return controller.signal;
}

/** One Node request that an adapter processes. */
interface NodeExchange {
  /** The change that the owner has to make if the body was read before; each adapter has its own text. */
  readonly fix: string;
  readonly req: NodeRequest;
  readonly res: NodeResponse;
  /** The request target as received; some frameworks shorten it. */
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

/** Calls `serve` and lets no error escape. */
export function serveSafely(receiver: AdapterReceiver, exchange: NodeExchange): void {
  serve(receiver, exchange).catch(() => breakOff(exchange.req));
}

/** Breaks the connection or stream, because the answer cannot be written. The sender notices it and tries again. */
function breakOff(req: NodeRequest): void {
  if (isHttp2(req)) req.stream?.close(HTTP2_INTERNAL_ERROR);
  else req.socket?.destroy();
}
