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

/** Long enough for an answer to cross the world and for the sender to hang up. Ms. */
const LINGER_MS = 1_000;

/** What a sender may have written before it reads, by and large. */
const LINGER_BYTES = 65_536;

/**
 * Waits, after an answer was written, for the sender to read it. RFC 9112 §9.6: closing while a body still arrives
 * resets the connection, and the reset can overtake the answer; a seller that never sees its 413 keeps trying.
 * What arrives is forgotten, at most 64 KiB of it; beyond that it is not even read. Ends when the body does, when
 * the sender hangs up, and after a second in any case.
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

/** Marks a connection of HTTP/1.1 on which the last answer was given. */
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

/** RFC 9112 §9.6: what is pipelined behind an answer with `Connection: close` must not be processed; Node would. */
const isClosing = (req: NodeRequest): boolean => req.socket?.[CLOSING] === true;

const DECODED_FIX = 'req.setEncoding() was called: remove the call.';

/** A body that something else read and kept as bytes. */
function bytesGiven({ rawBody, body }: NodeRequest): Uint8Array | undefined {
  if (isBytes(rawBody)) return rawBody;
  return isBytes(body) ? body : undefined;
}

/**
 * What to change where the stream cannot give the bytes any more.
 * @param fix the line to change where it was read before.
 */
function lostBytes(req: NodeRequest, fix: string): string | undefined {
  // Not `req.body`: Express 4 sets it to {} without reading anything.
  if (req.readableDidRead) return fix;
  return req.readableEncoding === null ? undefined : DECODED_FIX;
}

/**
 * Reads the stream to its end, or as far as it is wanted. Listeners of one that has ended go with it. Never rejects.
 */
export async function readStream(req: NodeRequest, ticket: AdapterTicket): AdapterTicket['outcome'] {
  if (req.destroyed) {
    ticket.abort();
    return undefined;
  }
  // Whatever is still to come stays in the socket: nothing beyond the cap is read, let alone kept.
  const onData = (chunk: Uint8Array): void => {
    if (!ticket.add(chunk)) req.pause();
  };
  const onEnd = (): void => (isClosing(req) ? ticket.abort() : end());
  const end = (): void => void ticket.end().catch(() => undefined);
  // An upload that breaks off ends with `error`, `close` or both, and without `end`.
  const onGone = (): void => ticket.abort();
  req.on('data', onData).on('end', onEnd).on('error', onGone).on('close', onGone);
  // What paused it (a proxy, a middleware that waits) has handed it over: a listener alone would wait without end.
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
  /** Bytes of the body are still on their way: the connection cannot carry another request. */
  readonly unread: boolean;
}

/** Some shims leave `rawHeaders` empty; `headers` hides repeated lines and is only the fallback. */
const headersOf = (req: NodeRequest): HeadersInput =>
  req.rawHeaders && req.rawHeaders.length > 0 ? req.rawHeaders : req.headers;

const isHttp2 = (req: NodeRequest): boolean => (req.httpVersionMajor ?? 1) >= 2;

/**
 * RFC 9112 §6: in HTTP/1.1 a request has a body if it declares a length or a transfer coding. Node says that one is
 * complete after it has given its last bytes: where all are there and none was read, they are counted.
 */
const declaresMore = ({ headers, readableLength }: NodeRequest): boolean =>
  headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) !== readableLength;

/** Something of the body is still on its way. What is there already Node reads away behind the answer. */
const bodyIsPending = (req: NodeRequest): boolean =>
  !req.readableEnded && (isHttp2(req) || (req.complete !== true && declaresMore(req)));

/**
 * What becomes of a delivery whose headers passed; undefined: nobody waits for an answer any more.
 * @param received its body, where something else has read it.
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

/** RFC 9113 §7: nothing went wrong; something did, on our side. */
const HTTP2_NO_ERROR = 0;
const HTTP2_INTERNAL_ERROR = 2;

/** HTTP/1.1: the connection ends with this answer, since what is left of the body stands in front of the next request. */
async function writeAndClose(req: NodeRequest, res: NodeResponse, body: Uint8Array): Promise<void> {
  if (body.byteLength > 0) res.write(body);
  else res.flushHeaders?.();
  await linger(req);
  res.end();
}

/**
 * HTTP/2, RFC 9113 §8.1: after the whole answer a reset without an error ends the upload; the connection stays. Headers
 * that end the stream, and not `res.end()`: that one sends trailers later, when the stream is closed. The answers to a
 * body that was not read have none of their own.
 */
function answerAndReset({ stream }: NodeRequest, { status, headers }: Reply): void {
  const fields = Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value] as const);
  stream?.respond(
    { ':status': status, ...Object.fromEntries(fields), 'content-length': '0' },
    { endStream: true },
  );
  // When the answer has gone out: a reset of this turn would overtake it (Node 22 and 26), and the sender see none.
  setImmediate(() => stream?.close(HTTP2_NO_ERROR));
}

const NOTHING: Uint8Array = new Uint8Array(0);

/** @returns what is to be waited for, where the connection ends with the answer. */
function writeReply(
  req: NodeRequest,
  res: NodeResponse,
  { reply, unread }: NodeAnswer,
): Promise<void> | undefined {
  // The sender may be gone, or a time-out of the framework may have answered already.
  if (res.headersSent || res.writableEnded || res.destroyed) return undefined;
  if (unread && isHttp2(req)) {
    answerAndReset(req, reply);
    return undefined;
  }
  // Nearly every answer has none.
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

/** One request of Node's, on its way through a door. */
interface NodeExchange {
  /** The line of the user's to change where the body was read before: a text of the door's own. */
  readonly fix: string;
  readonly req: NodeRequest;
  readonly res: NodeResponse;
  /** The request target as received; some frameworks cut it. */
  readonly url: string | undefined;
}

/** Reads, hands over, answers; an exception is answered with 503. */
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

/** `serve`, of which nothing escapes. */
export function serveSafely(receiver: AdapterReceiver, exchange: NodeExchange): void {
  serve(receiver, exchange).catch(() => breakOff(exchange.req));
}

/** For an answer that cannot be written: the sender sees a broken connection or stream, and tries again. */
function breakOff(req: NodeRequest): void {
  if (isHttp2(req)) req.stream?.close(HTTP2_INTERNAL_ERROR);
  else req.socket?.destroy();
}
