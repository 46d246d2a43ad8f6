import type { HeadersInput } from '../delivery.ts';
import type { Reply } from '../outcome.ts';
import { consumed, faultReply, isTicket, type DoorReceiver } from './door.ts';
import { linger } from './linger.ts';
import { bytesGiven, CLOSING, isClosing, lostBytes, readStream, type NodeRequest } from './node-body.ts';

/** What is needed of `http.ServerResponse`, `http2.Http2ServerResponse` and what frameworks make of them. */
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

interface Answer {
  readonly reply: Reply;
  /** Bytes of the body are still on their way: the connection cannot carry another request. */
  readonly unread: boolean;
}

/** Some shims leave `rawHeaders` empty; `headers` hides repeated lines and is only the fallback. */
const headersOf = (req: NodeRequest): HeadersInput =>
  req.rawHeaders && req.rawHeaders.length > 0 ? req.rawHeaders : req.headers;

const isHttp2 = (req: NodeRequest): boolean => (req.httpVersionMajor ?? 1) >= 2;

/** RFC 9112 §6: in HTTP/1.1 a request has a body if it declares a length or a transfer coding. */
const declaresBody = ({ headers }: NodeRequest): boolean =>
  headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) !== 0;

/** Something of the body is still on its way. What is there already Node reads away behind the answer. */
const bodyIsPending = (req: NodeRequest): boolean =>
  !req.readableEnded && (isHttp2(req) || (req.complete !== true && declaresBody(req)));

async function answer(
  receiver: DoorReceiver,
  { req, url, fix }: Visit,
  signal: AbortSignal,
): Promise<Answer | undefined> {
  const info = { ...(url !== undefined && { url }), method: req.method ?? '', signal };
  const opened = await receiver.open(headersOf(req), info);
  if (!isTicket(opened)) return { reply: opened.response, unread: bodyIsPending(req) };
  if (isClosing(req)) {
    opened.abort();
    return undefined;
  }
  const given = bytesGiven(req);
  const lost = given ? undefined : lostBytes(req, fix);
  if (lost !== undefined) return { reply: consumed(receiver, opened, lost), unread: bodyIsPending(req) };
  if (given) opened.add(given);
  const outcome = given ? await opened.end() : await readStream(req, opened);
  if (!outcome) return undefined;
  return { reply: outcome.response, unread: !given && bodyIsPending(req) };
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
 * that end the stream, and not `res.end()`: that one sends trailers later, and Node 20 aborts the whole process where
 * the stream is closed by then. The answers to a body that was not read have none of their own.
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

async function writeReply(req: NodeRequest, res: NodeResponse, { reply, unread }: Answer): Promise<void> {
  // The sender may be gone, or a time-out of the framework may have answered already.
  if (res.headersSent || res.writableEnded || res.destroyed) return;
  if (unread && isHttp2(req)) {
    answerAndReset(req, reply);
    return;
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
  if (close) await writeAndClose(req, res, body);
  else if (body === NOTHING) res.end();
  else res.end(body);
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
export interface Visit {
  /** The line to change where the body was read before: one of `consumed.ts`. */
  readonly fix: string;
  readonly req: NodeRequest;
  readonly res: NodeResponse;
  /** The request target as received; some frameworks cut it. */
  readonly url: string | undefined;
}

/** Reads, hands over, answers. Rejects only with what `open` threw. */
async function serve(receiver: DoorReceiver, visit: Visit): Promise<void> {
  const { req, res } = visit;
  const result = await answer(receiver, visit, disconnectSignal(res));
  if (result) await writeReply(req, res, result);
}

/** `serve`, and an exception is answered with 503. Nothing escapes it. */
export function serveSafely(receiver: DoorReceiver, visit: Visit): void {
  const { req, res } = visit;
  serve(receiver, visit)
    .catch((error: unknown) => writeFault(receiver, req, res, error))
    .catch(() => breakOff(req));
}

async function writeFault(
  receiver: DoorReceiver,
  req: NodeRequest,
  res: NodeResponse,
  error: unknown,
): Promise<void> {
  const answer = { reply: faultReply(receiver, error), unread: bodyIsPending(req) };
  await writeReply(req, res, answer);
}

/** For an answer that cannot be written: the sender sees a broken connection or stream, and tries again. */
function breakOff(req: NodeRequest): void {
  if (isHttp2(req)) req.stream?.close(HTTP2_INTERNAL_ERROR);
  else req.socket?.destroy();
}
