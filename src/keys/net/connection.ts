import { abortReason, onAbort, settledWithin } from '../../shared/time-limits.ts';
import { sameAddress } from './addresses.ts';
import { isError } from '../../shared/realms.ts';

/** Node's modules that connections are made of. */
export interface NetModules {
  readonly dns: typeof import('node:dns');
  readonly http: typeof import('node:http');
  readonly net: typeof import('node:net');
  readonly tls: typeof import('node:tls');
}

export type Socket = import('node:net').Socket;
type IncomingMessage = import('node:http').IncomingMessage;

/** Its `node:http` runs over its own `fetch`, which does its own connecting. */
const BUN = /^Bun\b/;

/** No private network is within its reach, its names resolve by requests, and its sockets leave out many addresses. */
const WORKERD = /^Cloudflare-Workers\b/;

const userAgent = (): string => globalThis.navigator?.userAgent ?? '';

/** Its `node:dns` asks its own resolver, without time-outs, and its look-ups by the system wait for no thread. */
const DENO = /^Deno\b/;

/** Whether `dns.Resolver` is c-ares, and look-ups by the system share few threads: Node. */
export function hasDirectDns(): boolean {
  return !DENO.test(userAgent());
}

/** The modules where the runtime has them (Node, Deno) and they do what they are named for, without an import. */
export function netModules(): NetModules | undefined {
  if (BUN.test(userAgent())) return undefined;
  const dns = dnsModule();
  const http = globalThis.process?.getBuiltinModule?.('node:http');
  const net = globalThis.process?.getBuiltinModule?.('node:net');
  const tls = globalThis.process?.getBuiltinModule?.('node:tls');
  return dns && http && net && tls ? { dns, http, net, tls } : undefined;
}

/** Resolves names, where the runtime can do that beside its `fetch` (Node, Deno, Bun). */
export function dnsModule(): NetModules['dns'] | undefined {
  return WORKERD.test(userAgent()) ? undefined : globalThis.process?.getBuiltinModule?.('node:dns');
}

/** A socket that is being connected, and the address that it reached. */
interface Dialed {
  readonly socket: Socket;
  /** The address at the other end, asked once the socket is connected; undefined where it has none. */
  readonly peerAddress: () => string | undefined;
}

/** Begins a connection to an address that was judged; never sees a name. */
export type Dial = (address: string, port: number) => Dialed;

/** RFC 8305 §8: how long an address is tried alone before the next one is tried beside it. */
const STAGGER_MS = 250;

/** A hostile answer can list thousands. */
const MAX_TRIED = 4;

export function systemDial(net: NetModules['net']): Dial {
  return (address, port) => {
    const socket = net.connect({ host: address, port, noDelay: true });
    return { socket, peerAddress: () => socket.remoteAddress };
  };
}

/**
 * Resolves when `event` says that the socket is ready; else destroys it and rejects, on the signal too. Errors after
 * that are for the next owner of the socket. One listener always stays: an `error` without a listener ends the process.
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

/** RFC 8305 §4: families alternate, so that a name with many addresses of the one is tried at the other too. */
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

/** Connects to the first of the judged addresses that answers; each has a head start before the next one. */
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
      // Rejects once all that were begun have failed: then the next address is tried.
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

/** Two may have been connected in the same moment. */
async function destroyUnless(first: Socket | undefined, attempt: Promise<Socket>): Promise<void> {
  const socket = await attempt.catch(() => undefined);
  if (socket !== first) socket?.destroy();
}

/** One request. */
interface HttpRequest {
  readonly url: URL;
  /** The judged address that the socket leads to. */
  readonly address: string;
  readonly method: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: Uint8Array | undefined;
  /** Bytes of the answer's body that its reader takes at most. */
  readonly maxBytes: number;
  /** Firing it destroys the socket; its reason is then what the body fails with. */
  readonly signal: AbortSignal;
}

/** Bytes of all header names and values together. */
const MAX_HEADER_BYTES = 16_384;
/** A line can be empty but for its colon. Node drops those beyond 2000 silently, so the limit is below that. */
const MAX_HEADER_LINES = 256;

/**
 * Ends the connection once it has brought more than is right for a body of `maxBytes`: head, trailers and the framing of
 * small chunks fit. Interim answers (100, 103), extensions of chunks, empty lines before an answer and zeros before the
 * size of a chunk do not count as bytes of the body, and some servers never end them.
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
export async function exchange(
  http: NetModules['http'],
  socket: Socket,
  asked: HttpRequest,
): Promise<Response> {
  const { url, method, body, signal } = asked;
  return await new Promise<Response>((resolve, reject) => {
    let taken = false;
    let first: Error | undefined;
    // The body only reports that its connection is gone; the reason was reported to the request before.
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
    else request.destroy(new Error('node:http of this runtime does not accept a connection: pass fetch'));
  });
}

function asResponse(message: IncomingMessage, explain: Explain): Response {
  // Its failures are reported to the reader of the body, if there is one.
  message.on('error', () => undefined);
  const { statusCode: status = 0, rawHeaders } = message;
  if (status < 200 || status > 599) throw new Error(`answered ${status}`);
  if (rawHeaders.length / 2 > MAX_HEADER_LINES) throw new Error(`more than ${MAX_HEADER_LINES} header lines`);
  const headers = new Headers();
  for (let index = 0; index + 1 < rawHeaders.length; index += 2) {
    headers.append(rawHeaders[index] ?? '', rawHeaders[index + 1] ?? '');
  }
  if (!NULL_BODY.has(status)) return new Response(bodyOf(message, explain), { status, headers });
  // What comes behind such a head all the same need not end: nobody reads it, and the connection is used for nothing else.
  message.destroy();
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

const CONNECTION_CLOSED = 'the connection was closed before the whole answer had come';

/** Said plainer than the runtime does, and in no words of the counterparty's: the names in a certificate are its own. */
const PLAIN_MESSAGES: Readonly<Record<string, string>> = {
  ECONNRESET: CONNECTION_CLOSED,
  EPIPE: CONNECTION_CLOSED,
  ERR_STREAM_PREMATURE_CLOSE: CONNECTION_CLOSED,
  ERR_TLS_CERT_ALTNAME_INVALID: 'the certificate is for another host',
  HPE_HEADER_OVERFLOW: 'the headers are larger than 16 KiB',
};

/** A failure of the network as an `Error` whose message is fit for the owner's log. */
export function plainFailure(error: unknown): Error {
  if (!isError(error)) return new Error('the fetch failed');
  const { code } = error as { readonly code?: unknown };
  const plain =
    typeof code === 'string' && Object.hasOwn(PLAIN_MESSAGES, code) ? PLAIN_MESSAGES[code] : undefined;
  return plain === undefined ? error : new Error(plain);
}
