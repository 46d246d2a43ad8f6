import { abortReason } from './abort.ts';
import type { IncomingMessage, NetModules, Socket } from './builtin.ts';
import { plainFailure } from './failure.ts';

/** One request. */
export interface Asked {
  readonly url: URL;
  /** The judged address that the socket leads to. */
  readonly address: string;
  readonly method: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: Uint8Array | undefined;
  /** Bytes of the answer's body that its reader takes at most. */
  readonly maxBytes: number;
  /** Whoever fires it destroys the socket; its reason is then what the body fails with. */
  readonly signal: AbortSignal;
}

/** Bytes of all header names and values together. */
const MAX_HEADER_BYTES = 16_384;
/** A line can be empty but for its colon. Node drops those beyond 2000 without a word, so the limit lies below. */
const MAX_HEADER_LINES = 256;

/**
 * Ends the connection once it has brought more than is right for a body of `maxBytes`: head, trailers and the framing of
 * small chunks fit. Interim answers (100, 103), extensions of chunks, empty lines before an answer and zeros before the
 * size of a chunk are no bytes of a body, and some servers never end them.
 */
function capBytes(socket: Socket, maxBytes: number): void {
  const limit = 2 * maxBytes + 65_536;
  socket.on('data', () => {
    if (socket.bytesRead > limit) socket.destroy(new Error(`more than ${limit} bytes on the connection`));
  });
}

/** Says why an answer could not be had. */
type Explain = (error: unknown) => Error;

/** What Node reads and the constructor of `Response` does not take. */
const NULL_BODY = new Set([204, 205, 304]);

/**
 * One request over one connection that exists already, and is used for nothing else: no agent, so `Connection: close`,
 * no pool, and no proxy from the environment. Rejects where no head of an answer comes.
 */
export async function exchange(http: NetModules['http'], socket: Socket, asked: Asked): Promise<Response> {
  const { url, method, body, signal } = asked;
  return await new Promise<Response>((resolve, reject) => {
    let taken = false;
    let first: Error | undefined;
    // A body only learns that its connection is gone; why, if it is known, the request was told before.
    const explain: Explain = (error) => (signal.aborted ? abortReason(signal) : plainFailure(first ?? error));
    const request = http.request({
      createConnection: () => {
        taken = true;
        return socket;
      },
      // Only for a runtime that does its own connecting all the same: even then no name is looked up again.
      host: asked.address,
      path: `${url.pathname}${url.search}`,
      method,
      headers: { ...asked.headers, host: url.host },
      maxHeaderSize: MAX_HEADER_BYTES,
      // Whatever the process was started with.
      insecureHTTPParser: false,
    });
    request.on('error', (error) => {
      first ??= error;
      reject(explain(error));
    });
    // Not before it is read by the request: what came until then would be lost.
    request.once('socket', () => {
      capBytes(socket, asked.maxBytes);
    });
    request.once('response', (message) => {
      try {
        resolve(asResponse(message, explain));
      } catch (error) {
        socket.destroy();
        reject(error);
      }
    });
    // Some answers (101) end the request without an error.
    request.once('close', () => {
      reject(new Error('the connection was closed without an answer'));
    });
    if (taken) request.end(body);
    else request.destroy(new Error('node:http of this runtime takes no given connection: pass a transport'));
  });
}

function asResponse(message: IncomingMessage, explain: Explain): Response {
  // Its failures are the body's reader's to hear of, if there is one.
  message.on('error', () => undefined);
  const { statusCode: status = 0, rawHeaders } = message;
  if (status < 200 || status > 599) throw new Error(`answered ${status}`);
  if (rawHeaders.length / 2 > MAX_HEADER_LINES) throw new Error(`more than ${MAX_HEADER_LINES} header lines`);
  const headers = new Headers();
  for (let index = 0; index + 1 < rawHeaders.length; index += 2) {
    headers.append(rawHeaders[index] ?? '', rawHeaders[index + 1] ?? '');
  }
  if (!NULL_BODY.has(status)) return new Response(bodyOf(message, explain), { status, headers });
  message.resume();
  return new Response(null, { status, headers });
}

/** Reads from the connection only what is asked for: an endless answer waits in the sender's buffers, not in ours. */
function bodyOf(message: IncomingMessage, explain: Explain): ReadableStream<Uint8Array> {
  const chunks = message[Symbol.asyncIterator]() as AsyncIterator<Uint8Array>;
  return new ReadableStream<Uint8Array>(
    {
      pull: async (controller) => {
        try {
          const { done, value } = await chunks.next();
          if (done === true) controller.close();
          else controller.enqueue(value);
        } catch (error) {
          controller.error(explain(error));
        }
      },
      cancel: () => {
        message.destroy();
      },
    },
    { highWaterMark: 0 },
  );
}
