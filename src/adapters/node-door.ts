import type { HeadersInput } from '../delivery.ts';
import type { RequestInfo } from '../options.ts';
import type { Reply } from '../outcome.ts';
import { faultReply, type DoorReceiver } from './door.ts';
import { withRoom } from './body.ts';
import { linger } from './linger.ts';
import { CLOSING, nodeBody, type NodeRequest } from './node-body.ts';

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

const bodyIsPending = (req: NodeRequest): boolean =>
  !req.readableEnded && (isHttp2(req) || declaresBody(req));

/** RFC 9112 §9.6: what is pipelined behind an answer with `Connection: close` must not be processed; Node would. */
const isClosing = (req: NodeRequest): boolean => req.socket?.[CLOSING] === true;

async function answer(
  receiver: DoorReceiver,
  req: NodeRequest,
  info: RequestInfo,
  fix: string,
): Promise<Answer | undefined> {
  const headers = headersOf(req);
  const early = receiver.door.check(headers, info);
  if (early) return { reply: early.response, unread: bodyIsPending(req) };
  return withRoom(receiver, async (limits) => {
    const body = await nodeBody(req, limits, fix);
    if (isClosing(req)) return undefined;
    switch (body.kind) {
      case 'aborted':
        return undefined;
      case 'refused':
        return { reply: receiver.door.refuse(body.code, body.detail).response, unread: bodyIsPending(req) };
      case 'whole': {
        const outcome = await receiver.verifyAndDispatch(body.bytes, headers, info);
        return { reply: outcome.response, unread: false };
      }
    }
  });
}

/** RFC 9113 §7: nothing went wrong; something did, on our side. */
const HTTP2_NO_ERROR = 0;
const HTTP2_INTERNAL_ERROR = 2;

/** HTTP/1.1: the connection ends with this answer, since what is left of the body stands in front of the next request. */
async function writeAndClose(
  req: NodeRequest,
  res: NodeResponse,
  body: Uint8Array,
  maxBodyBytes: number,
): Promise<void> {
  if (body.byteLength > 0) res.write(body);
  else res.flushHeaders?.();
  await linger(req, maxBodyBytes);
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

async function writeReply(
  req: NodeRequest,
  res: NodeResponse,
  { reply, unread }: Answer,
  maxBodyBytes: number,
): Promise<void> {
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
  if (close) await writeAndClose(req, res, body, maxBodyBytes);
  else if (body === NOTHING) res.end();
  else res.end(body);
}

function disconnectSignal(res: NodeResponse): AbortSignal {
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

/** Reads, hands over, answers. Rejects only with what `check` or `verifyAndDispatch` threw. */
async function serve(receiver: DoorReceiver, { fix, req, res, url }: Visit): Promise<void> {
  const signal = disconnectSignal(res);
  const info = { ...(url !== undefined && { url }), method: req.method ?? '', signal };
  const result = await answer(receiver, req, info, fix);
  if (result) await writeReply(req, res, result, receiver.door.maxBodyBytes);
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
  await writeReply(req, res, answer, receiver.door.maxBodyBytes);
}

/** For an answer that cannot be written: the sender sees a broken connection or stream, and tries again. */
function breakOff(req: NodeRequest): void {
  if (isHttp2(req)) req.stream?.close(HTTP2_INTERNAL_ERROR);
  else req.socket?.destroy();
}
