// Connects to an address that was checked before, and makes one HTTP request over that connection (verification.md
// §5.12, §5.13).
// Called by `document-fetch.ts` and the code that calls sellers, on runtimes with Node's modules.

import { abortReason, onAbort, settledWithin } from '../../shared/time-limits.ts';
import { sameAddress } from './addresses.ts';
import { isError } from '../../shared/realms.ts';

/** The modules of Node with which connections are made. */
export interface NetModules {
  readonly dns: typeof import('node:dns');
  readonly http: typeof import('node:http');
  readonly net: typeof import('node:net');
  readonly tls: typeof import('node:tls');
}

export type Socket = import('node:net').Socket;
type IncomingMessage = import('node:http').IncomingMessage;

/** Matches the user agent of Bun. There, `node:http` uses Bun's own `fetch`, which ignores a given connection. */
const BUN = /^Bun\b/;

/**
 * Matches the user agent of workerd. That runtime reaches no private network, resolves names by HTTP requests, and its
 * sockets exclude many addresses.
 */
const WORKERD = /^Cloudflare-Workers\b/;

const userAgent = (): string => globalThis.navigator?.userAgent ?? '';

/**
 * Matches the user agent of Deno. Deno implements `node:dns` itself, without time-outs; its look-ups by the system do
 * not queue for threads.
 */
const DENO = /^Deno\b/;

/**
 * True if look-ups are to ask DNS servers directly: on every runtime but Deno. On Node, `dns.Resolver` does so (library
 * c-ares), while look-ups by the system share few threads.
 */
export function hasDirectDns(): boolean {
  return !DENO.test(userAgent());
}

/**
 * Returns Node's modules, without an import. Undefined on runtimes that lack one of the modules or whose modules work
 * differently. They work on Node and Deno.
 */
export function netModules(): NetModules | undefined {
  if (BUN.test(userAgent())) return undefined;
  const dns = dnsModule();
  const http = globalThis.process?.getBuiltinModule?.('node:http');
  const net = globalThis.process?.getBuiltinModule?.('node:net');
  const tls = globalThis.process?.getBuiltinModule?.('node:tls');
  return dns && http && net && tls ? { dns, http, net, tls } : undefined;
}

/** Returns the DNS module, if the runtime can resolve names without its `fetch` (Node, Deno, Bun). */
export function dnsModule(): NetModules['dns'] | undefined {
  return WORKERD.test(userAgent()) ? undefined : globalThis.process?.getBuiltinModule?.('node:dns');
}

/** A socket that is being connected, and the address that it reached. */
interface Dialed {
  readonly socket: Socket;
  /** Returns the address at the other end, once the socket is connected. Undefined if there is none. */
  readonly peerAddress: () => string | undefined;
}

/** Starts a connection to an address that was checked before. `address` is never a host name. */
export type Dial = (address: string, port: number) => Dialed;

/** If an address has not connected after this time, the next one is tried in parallel (RFC 8305 §8). */
const STAGGER_MS = 250;

/** The maximum number of addresses tried. There is a limit, because a hostile DNS answer can list thousands. */
const MAX_TRIED = 4;

export function systemDial(net: NetModules['net']): Dial {
  return (address, port) => {
    const socket = net.connect({ host: address, port, noDelay: true });
    return { socket, peerAddress: () => socket.remoteAddress };
  };
}

/**
 * Resolves when the socket emits `event`. If the socket fails or the signal aborts, destroys the socket and rejects.
 * Errors after that are left to the next user of the socket. One empty error listener stays, because an `error` event
 * without a listener ends the process.
 */
export async function whenReady(
  socket: Socket,
  event: 'connect' | 'secureConnect',
  signal: AbortSignal,
): Promise<void> {
  socket.on('error', () => undefined);
  if (event === 'connect' && !socket.connecting) return;
  let takeBack = (): void => undefined;
  try {
    await new Promise<void>((resolve, reject) => {
      socket.once(event, resolve).once('error', reject);
      socket.once('close', () => {
        reject(new Error('the connection was closed before it was made'));
      });
      takeBack = onAbort(signal, reject);
    });
  } catch (error) {
    socket.destroy();
    throw error;
  } finally {
    takeBack();
  }
}

async function connect(address: string, port: number, dial: Dial, signal: AbortSignal): Promise<Socket> {
  const { socket, peerAddress: peer } = dial(address, port);
  await whenReady(socket, 'connect', signal);
  const at = peer();
  if (at !== undefined && sameAddress(at, address)) return socket;
  socket.destroy();
  throw new Error(`the connection went to ${at ?? 'nowhere'} instead of ${address}, which was checked`);
}

/**
 * Sorts addresses so that IPv4 and IPv6 alternate (RFC 8305 §4). So both families are tried, even if a name has many
 * addresses of one family.
 */
function alternateFamilies(addresses: readonly string[]): string[] {
  const isIpv6 = (address: string): boolean => address.includes(':');
  const [first = ''] = addresses;
  const own = addresses.filter((address) => isIpv6(address) === isIpv6(first));
  const other = addresses.filter((address) => isIpv6(address) !== isIpv6(first));
  const longer = own.length > other.length ? own : other;
  return longer
    .flatMap((_, index) => [own[index], other[index]])
    .filter((address) => address !== undefined)
    .slice(0, MAX_TRIED);
}

/**
 * Connects to the first address that answers. Each address has 250 ms alone; then the next one is tried in parallel.
 */
export async function connectAny(
  addresses: readonly string[],
  port: number,
  dial: Dial,
  signal: AbortSignal,
): Promise<Socket> {
  const decided = new AbortController();
  const limit = AbortSignal.any([signal, decided.signal]);
  const attempts: Promise<Socket>[] = [];
  let first: Socket | undefined;
  try {
    for (const address of alternateFamilies(addresses)) {
      attempts.push(connect(address, port, dial, limit));
      // The promise rejects if all attempts so far have failed; then the next address is tried immediately.
      first = await settledWithin(Promise.any(attempts), STAGGER_MS).catch(() => undefined);
      if (first !== undefined || signal.aborted) break;
    }
    first ??= await Promise.any(attempts);
    return first;
  } catch (error) {
    throw error instanceof AggregateError ? error.errors[0] : error;
  } finally {
    decided.abort();
    for (const attempt of attempts) void destroyUnless(first, attempt);
  }
}

/** Destroys the socket of an attempt, unless it is the socket in use. Two attempts may connect at the same moment. */
async function destroyUnless(first: Socket | undefined, attempt: Promise<Socket>): Promise<void> {
  const socket = await attempt.catch(() => undefined);
  if (socket !== first) socket?.destroy();
}

/** One HTTP request over an existing connection. */
interface HttpRequest {
  readonly url: URL;
  /** The address that the socket is connected to; it was checked before. */
  readonly address: string;
  readonly method: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: Uint8Array | undefined;
  /** The maximum number of bytes of the body that the caller will read. */
  readonly maxBytes: number;
  /** When the signal aborts, the socket is destroyed, and reading the body fails with the signal's reason. */
  readonly signal: AbortSignal;
}

/** The maximum number of bytes of all header names and values together. */
const MAX_HEADER_BYTES = 16_384;
/**
 * The maximum number of header lines. A limit of bytes alone is not enough, because a line can be a mere colon. Node
 * silently drops lines beyond 2000, so the limit is lower.
 */
const MAX_HEADER_LINES = 256;

/**
 * Closes the connection if it receives far more bytes than a body of `maxBytes` needs, with headers, trailers and the
 * framing of small chunks.
 * Some servers send bytes without end that are no part of the body. Examples are interim answers (100, 103), chunk
 * extensions, empty lines before an answer, and zeros before a chunk's size.
 */
function capBytes(socket: Socket, maxBytes: number): void {
  const limit = 2 * maxBytes + 65_536;
  socket.on('data', () => {
    if (socket.bytesRead > limit) socket.destroy(new Error(`more than ${limit} bytes on the connection`));
  });
}

/** Converts the error of a socket or request to an error that says why no answer came. */
type Explain = (error: unknown) => Error;

/** Statuses for which Node accepts a body but the constructor of `Response` does not. */
const NULL_BODY = new Set([204, 205, 304]);

/**
 * Makes one request over an existing connection that serves no other request. The request has no `http.Agent`, so it
 * sends `Connection: close`, and uses no pool and no proxy from the environment. Rejects if no response headers
 * arrive.
 */
export async function exchange(
  http: NetModules['http'],
  socket: Socket,
  asked: HttpRequest,
): Promise<Response> {
  const { url, method, body, signal } = asked;
  return await new Promise<Response>((resolve, reject) => {
    let taken = false;
    let first: Error | undefined;
    // An error of the body only says that the connection is gone. The first error of the request has the reason.
    const explain: Explain = (error) => (signal.aborted ? abortReason(signal) : plainFailure(first ?? error));
    const request = http.request({
      createConnection: () => {
        taken = true;
        return socket;
      },
      // Some runtimes ignore `createConnection` and connect by themselves. The host is an IP address, so that they do
      // not look up the name again.
      host: asked.address,
      path: `${url.pathname}${url.search}`,
      method,
      headers: { ...asked.headers, host: url.host },
      maxHeaderSize: MAX_HEADER_BYTES,
      // The response is parsed strictly, even if a flag of the process asks for lenient parsing.
      insecureHTTPParser: false,
    });
    request.on('error', (error) => {
      first ??= error;
      reject(explain(error));
    });
    // `capBytes` adds a `data` listener, which starts the flow of bytes. It is added only after the request has taken
    // over the socket, because earlier bytes would be lost.
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
    // Some responses (e.g. with status 101) end the request without an error.
    request.once('close', () => {
      reject(new Error('the connection was closed without an answer'));
    });
    if (taken) request.end(body);
    else request.destroy(new Error('node:http of this runtime does not accept a connection: pass fetch'));
  });
}

function asResponse(message: IncomingMessage, explain: Explain): Response {
  // Errors of the message reach the reader of the body too. This empty listener is needed because an `error` event
  // without a listener ends the process.
  message.on('error', () => undefined);
  const { statusCode: status = 0, rawHeaders } = message;
  if (status < 200 || status > 599) throw new Error(`answered ${status}`);
  if (rawHeaders.length / 2 > MAX_HEADER_LINES) throw new Error(`more than ${MAX_HEADER_LINES} header lines`);
  const headers = new Headers();
  for (let index = 0; index + 1 < rawHeaders.length; index += 2) {
    headers.append(rawHeaders[index] ?? '', rawHeaders[index + 1] ?? '');
  }
  if (!NULL_BODY.has(status)) return new Response(bodyOf(message, explain), { status, headers });
  // A response with this status has no body, but more bytes may follow without end. Nobody reads them, and the
  // connection is not used again.
  message.destroy();
  return new Response(null, { status, headers });
}

/**
 * Reads from the connection only on demand, so that an endless answer fills the server's buffers, not this process's
 * memory.
 */
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

const CONNECTION_CLOSED = 'the connection was closed before the whole answer had come';

/**
 * Messages by error code. They replace the runtime's messages, which are less clear or contain text of a counterparty,
 * such as the names in a certificate.
 */
const PLAIN_MESSAGES: Readonly<Record<string, string>> = {
  ECONNRESET: CONNECTION_CLOSED,
  EPIPE: CONNECTION_CLOSED,
  ERR_STREAM_PREMATURE_CLOSE: CONNECTION_CLOSED,
  ERR_TLS_CERT_ALTNAME_INVALID: 'the certificate is for another host',
  HPE_HEADER_OVERFLOW: 'the headers are larger than 16 KiB',
};

/** Converts a network failure to an `Error` whose message may be logged. */
export function plainFailure(error: unknown): Error {
  if (!isError(error)) return new Error('the fetch failed');
  const { code } = error as { readonly code?: unknown };
  const plain =
    typeof code === 'string' && Object.hasOwn(PLAIN_MESSAGES, code) ? PLAIN_MESSAGES[code] : undefined;
  return plain === undefined ? error : new Error(plain);
}
