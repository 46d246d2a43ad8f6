import type { AnyTransport, AnyTransportInit } from '../contract.ts';
import { refusedUrl } from '../url-policy.ts';
import { limited, onAbort, orAborted } from './abort.ts';
import { parseAddress } from './address.ts';
import type { NetModules, Socket } from './builtin.ts';
import { directResolve } from './direct-resolve.ts';
import { connectAny, type Dial, systemDial, whenReady } from './connect.ts';
import { exchange } from './exchange.ts';
import { plainFailure } from './failure.ts';
import { judgedAddresses, type Resolve } from './resolve.ts';

/** What a transport over the runtime's own sockets can be told. */
export interface NodeTransportOptions {
  /** Development: http and private addresses. Default false. */
  readonly allowLoopback?: boolean;
  /** Addresses of a host name; as DNS servers give them by default. What it gives is judged. */
  readonly resolve?: Resolve;
  /** Connects to a judged address; the system's by default. Where it leads is compared with what was judged. */
  readonly dial?: Dial;
  /** PEM certificates that are trusted instead of the runtime's own. */
  readonly ca?: string | readonly string[];
  /** Ms for the connection and its TLS handshake; the whole is bounded by the caller's signal. Default 5000. */
  readonly connectMs?: number;
}

interface Parts {
  readonly modules: NetModules;
  readonly allowLoopback: boolean;
  readonly resolve: Resolve;
  readonly dial: Dial;
  readonly ca: string | readonly string[] | undefined;
  readonly connectMs: number;
}

/** verification.md §5.13. */
const CONNECT_MS = 5_000;

/**
 * Fetches URLs that counterparties chose, so that none of them leads into the owner's network: the name is resolved
 * once, all its addresses are judged, and the connection goes to one of those and is compared with it
 * (verification.md §5.12). Each fetch has a connection of its own; redirects are handed back, bodies are not
 * decoded, proxy variables are not read. Rejects with the reason, for the owner's log.
 */
export function nodeTransport(modules: NetModules, options: NodeTransportOptions = {}): AnyTransport {
  const parts: Parts = {
    modules,
    allowLoopback: options.allowLoopback ?? false,
    resolve: options.resolve ?? directResolve(modules.dns),
    dial: options.dial ?? systemDial(modules.net),
    ca: options.ca,
    connectMs: options.connectMs ?? CONNECT_MS,
  };
  return async (url, init) => {
    const refused = refusedUrl(url, parts.allowLoopback);
    if (refused !== undefined) throw new TypeError(refused);
    try {
      return await fetchOnce(parts, new URL(url), init);
    } catch (error) {
      throw plainFailure(error);
    }
  };
}

async function fetchOnce(parts: Parts, url: URL, init: AnyTransportInit): Promise<Response> {
  const { method, headers, body, signal, maxBytes = Number.POSITIVE_INFINITY } = init;
  const lookUp = { seller: init.seller ?? url.hostname, signal };
  const judging = judgedAddresses(url.hostname, parts.resolve, parts.allowLoopback, lookUp);
  const addresses = await orAborted(judging, signal);
  const limit = { ms: parts.connectMs, reason: `no connection within ${parts.connectMs} ms` };
  const socket = await limited(limit, signal, (within) => open(parts, url, addresses, within));
  // It goes on to hold for the body, which is read after this has settled.
  const takeBack = onAbort(signal, (reason) => socket.destroy(reason));
  socket.once('close', takeBack);
  return await exchange(parts.modules.http, socket, {
    url,
    address: addresses[0] ?? '',
    method,
    body,
    maxBytes,
    headers: { 'accept-encoding': 'identity', ...headers },
    signal,
  });
}

async function open(
  parts: Parts,
  url: URL,
  addresses: readonly string[],
  signal: AbortSignal,
): Promise<Socket> {
  const secure = url.protocol === 'https:';
  const port = url.port === '' ? (secure ? 443 : 80) : Number(url.port);
  const socket = await connectAny(addresses, port, parts.dial, signal);
  return secure ? await handshake(parts, url.hostname, socket, signal) : socket;
}

async function handshake(
  parts: Parts,
  hostname: string,
  socket: Socket,
  signal: AbortSignal,
): Promise<Socket> {
  const host = hostname.replace(/^\[|\]$|\.$/g, '');
  const { ca } = parts;
  const secure = parts.modules.tls.connect({
    socket,
    // The certificate has to be for this, name or address.
    host,
    // RFC 6066 §3: names only, without the root dot.
    servername: parseAddress(host) === undefined ? host : '',
    ALPNProtocols: ['http/1.1'],
    // Whatever NODE_TLS_REJECT_UNAUTHORIZED says.
    rejectUnauthorized: true,
    ...(ca !== undefined && { ca: typeof ca === 'string' ? ca : [...ca] }),
  });
  await whenReady(secure, 'secureConnect', signal);
  return secure;
}
