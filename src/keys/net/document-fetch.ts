import { limited, onAbort, orAborted } from '../../shared/time-limits.ts';
import type { AnyFetch, AnyFetchInit, NameLookUp } from '../key-resolver.ts';
import { parseAddress, urlRefusedReason } from './addresses.ts';
import {
  connectAny,
  type Dial,
  dnsModule,
  exchange,
  hasDirectDns,
  netModules,
  type NetModules,
  plainFailure,
  type Socket,
  systemDial,
  whenReady,
} from './connection.ts';
import { directResolve, publicAddresses, type Resolve, systemResolve } from './name-lookup.ts';

/**
 * Connections of our own where the runtime lets us make them, its `fetch` elsewhere: what each enforces is said there.
 * @param allowLoopback development: http and private addresses.
 * @param lookUp how Node looks names up. A platform's `fetch` does it as the system does, and so do what judges before it.
 */
export function defaultFetch(allowLoopback: boolean, lookUp: NameLookUp = 'direct'): AnyFetch {
  // By the first fetch: a receiver whose senders are all pinned needs none, and Node's `dns`, `http` and `tls` take 10 ms.
  let made: AnyFetch | undefined;
  return (url, init) => (made ??= runtimeTransport(allowLoopback, lookUp))(url, init);
}

function runtimeTransport(allowLoopback: boolean, lookUp: NameLookUp): AnyFetch {
  const modules = netModules();
  if (modules !== undefined) {
    const direct = lookUp === 'direct' && hasDirectDns();
    const resolve = direct ? directResolve(modules.dns) : systemResolve(modules.dns);
    return nodeFetch(modules, { allowLoopback, resolve });
  }
  const dns = dnsModule();
  return platformFetch({ allowLoopback, ...(dns !== undefined && { resolve: systemResolve(dns) }) });
}

interface PlatformFetchOptions {
  readonly allowLoopback: boolean;
  /** Where the runtime can resolve names: the addresses are then judged before its `fetch` resolves them again. */
  readonly resolve?: Resolve;
}

/**
 * The platform's `fetch` behind what can be enforced in front of it: https, no userinfo, no literal address that is not
 * public in whatever spelling, no name that says it is local, no redirect followed; and, where names can be resolved
 * here, none with an address that is not public. What cannot be: `fetch` does not say where it connects, so a name
 * that answers otherwise the second time is not caught, and a proxy of the environment may be used. On a platform whose
 * `fetch` reaches no private network (workers at the edge) nothing is lost by that; elsewhere an owner whose network
 * has inner hosts to protect passes a `fetch` that goes out through an egress proxy.
 */
export function platformFetch({ allowLoopback, resolve }: PlatformFetchOptions): AnyFetch {
  return async (url, init) => {
    const refused = urlRefusedReason(url, allowLoopback);
    if (refused !== undefined) throw new TypeError(refused);
    if (resolve !== undefined) {
      const { hostname } = new URL(url);
      const lookUp = { seller: init.seller ?? hostname, signal: init.signal };
      await orAborted(publicAddresses(hostname, resolve, allowLoopback, lookUp), init.signal);
    }
    return await globalThis.fetch(url, init);
  };
}

/** Options of fetching over the runtime's own sockets. */
export interface NodeFetchOptions {
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

interface TransportContext {
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
export function nodeFetch(modules: NetModules, options: NodeFetchOptions = {}): AnyFetch {
  const parts: TransportContext = {
    modules,
    allowLoopback: options.allowLoopback ?? false,
    resolve: options.resolve ?? directResolve(modules.dns),
    dial: options.dial ?? systemDial(modules.net),
    ca: options.ca,
    connectMs: options.connectMs ?? CONNECT_MS,
  };
  return async (url, init) => {
    const refused = urlRefusedReason(url, parts.allowLoopback);
    if (refused !== undefined) throw new TypeError(refused);
    try {
      return await fetchOnce(parts, new URL(url), init);
    } catch (error) {
      throw plainFailure(error);
    }
  };
}

async function fetchOnce(parts: TransportContext, url: URL, init: AnyFetchInit): Promise<Response> {
  const { method, headers, body, signal, maxBytes = Number.POSITIVE_INFINITY } = init;
  const lookUp = { seller: init.seller ?? url.hostname, signal };
  const judging = publicAddresses(url.hostname, parts.resolve, parts.allowLoopback, lookUp);
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
  parts: TransportContext,
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
  parts: TransportContext,
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
