// Sends one HTTP request, on a connection that is kept open, and reads the beginning of the answer (serve.md §2.2).
// `http-sink.ts` calls it.
import {
  Agent as HttpAgent,
  type ClientRequest,
  type IncomingMessage,
  request as httpRequest,
} from 'node:http';
import { Agent as HttpsAgent, request as httpsRequest } from 'node:https';
import { urlToHttpOptions } from 'node:url';
import { ConfigError } from '../../index.ts';
import { onAbort } from './on-abort.ts';
import { SinkFault } from './sink.ts';

/** The number of bytes of an answer's body after which no more is read (serve.md §2.2). */
const MOST_READ = 65_536;
/** The number of bytes of an answer's body that are kept for a message: 200 characters of UTF-8. */
const MOST_KEPT = 800;

/** The parts of an HTTP answer that are used. */
export interface Answer {
  readonly status: number;
  readonly reject: string | undefined;
  readonly retryAfter: string | undefined;
  /** The beginning of the answer's body. */
  readonly text: string;
}

export interface Exchange {
  readonly method: 'POST' | 'OPTIONS';
  /**
   * Returns the headers and the body to send.
   * @param isFresh true if the request is sent a second time, on a new connection. This happens if the kept-open
   *   connection was closed, perhaps after the first request was sent.
   */
  readonly request: (isFresh: boolean) => {
    readonly headers: Readonly<Record<string, string>>;
    readonly body?: Uint8Array;
  };
  readonly signal: AbortSignal;
  readonly timeoutMs: number;
}

/** Sends requests to one URL, on connections that are kept open. */
export interface HttpTarget {
  /** Resolves with the answer of any status, redirects included. Rejects if there was no answer. */
  readonly exchange: (exchange: Exchange) => Promise<Answer>;
  readonly close: () => void;
}

const KEEP = { keepAlive: true, scheduling: 'lifo' } as const;

const PROTOCOLS: ReadonlyMap<string, { agent: () => HttpAgent; request: typeof httpRequest }> = new Map([
  ['http:', { agent: () => new HttpAgent(KEEP), request: httpRequest }],
  ['https:', { agent: () => new HttpsAgent(KEEP), request: httpsRequest }],
]);

/** Prepares requests to a URL. @throws ConfigError if the URL cannot be called. */
export function httpTarget(url: URL): HttpTarget {
  const protocol = PROTOCOLS.get(url.protocol);
  if (!protocol)
    throw new ConfigError(`url: is ${url.protocol} Give one that begins with http:// or https://.`);
  const options = optionsOf(url);
  const agent = protocol.agent();
  return {
    async exchange(exchange) {
      const { method, request, signal } = exchange;
      signal.throwIfAborted();
      return answerTo(exchange, (isFresh) => {
        const { headers, body } = request(isFresh);
        const started = protocol.request({ ...options, method, headers, agent: isFresh ? false : agent });
        return started.end(body);
      });
    },
    close: () => agent.destroy(),
  };
}

function optionsOf(url: URL): ReturnType<typeof urlToHttpOptions> {
  try {
    return urlToHttpOptions(url);
  } catch {
    throw new ConfigError(
      'url: has a name or password with a "%" that begins no character. Write it as "%25".',
    );
  }
}

/** Passed to `end` once the answer is known, so that no error is needed. */
const NOT_NEEDED = (): undefined => undefined;

/** Sends a request, and resolves with its answer. @param start begins a request; `isFresh`: on a new connection. */
function answerTo(
  { signal, timeoutMs }: Exchange,
  start: (isFresh: boolean) => ClientRequest,
): Promise<Answer> {
  return new Promise((resolve, reject) => {
    let request: ClientRequest | undefined;
    let reading: Reading | undefined;
    let isOver = false;
    const timer = setTimeout(() => end(() => new SinkFault(`no answer within ${timeoutMs} ms`)), timeoutMs);
    const takeBack = onAbort(signal, () => end(() => signal.reason));

    /**
     * Ends the exchange with the answer, or with an error if no status was received. Once a status was received, a
     * later fault or delay in the body makes no difference.
     */
    function end(why: () => unknown): void {
      if (isOver) return;
      isOver = true;
      clearTimeout(timer);
      takeBack();
      if (reading) resolve(reading.answer());
      else reject(why());
      if (!reading?.isWhole()) request?.destroy();
    }

    function begin(isFresh: boolean): void {
      const own = start(isFresh);
      request = own;
      own.on('response', (response) => {
        reading = read(response, () => end(NOT_NEEDED));
      });
      own.on('error', (error) => {
        // A request that `end` has aborted reports the same error as a stale connection, so `isOver` is checked first.
        if (!isOver && !reading && !isFresh && isStale(own, error)) begin(true);
        else end(() => new SinkFault(wordsOf(error), undefined, { cause: error }));
      });
      own.on('close', () => {
        if (own === request) end(() => new SinkFault('the connection was closed without an answer'));
      });
    }

    begin(false);
  });
}

/** True if the sink closed a kept-open connection just as it was used again, as servers do with idle connections. */
const isStale = ({ reusedSocket }: ClientRequest, { code }: NodeJS.ErrnoException): boolean =>
  reusedSocket && (code === 'ECONNRESET' || code === 'EPIPE');

/**
 * Returns the text of an error. If all of several addresses of a host fail, Node's error has no message, but a code.
 */
const wordsOf = (error: NodeJS.ErrnoException): string => error.message || (error.code ?? error.name);

interface Reading {
  readonly answer: () => Answer;
  /** True if the answer was received to its end, so that its connection can be used again. */
  readonly isWhole: () => boolean;
}

/** Reads an answer. @param done called when the answer has ended in any way, or when enough of it was read. */
function read(response: IncomingMessage, done: () => void): Reading {
  const kept: Buffer[] = [];
  let bytes = 0;
  response.on('data', (chunk: Buffer) => {
    if (bytes < MOST_KEPT) kept.push(chunk.subarray(0, MOST_KEPT - bytes));
    bytes += chunk.length;
    if (bytes > MOST_READ) done();
  });
  response.on('error', done);
  response.on('close', done);
  const { statusCode = 0, headers } = response;
  return {
    answer: () => ({
      status: statusCode,
      reject: textOf(headers['webhook-reject']),
      retryAfter: headers['retry-after'],
      text: Buffer.concat(kept).toString('utf8'),
    }),
    isWhole: () => response.complete,
  };
}

const textOf = (header: string | readonly string[] | undefined): string | undefined =>
  typeof header === 'string' ? header : header?.[0];
