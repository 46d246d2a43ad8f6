// The `fetch` for counterparties' URLs: own connections on Node and Deno, the platform's `fetch` elsewhere
// (verification.md §5.12).
// Made by the key resolver, calls to sellers and the registry client, unless the owner passes a `fetch`.

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
 * Uses connections of our own if the runtime allows them, and its `fetch` otherwise; each function below says
 * what it enforces.
 * @param allowLoopback development: allows http and private addresses.
 * @param lookUp the way in which Node looks up names. A platform's `fetch`, and the judgement before it, use
 * the system's.
 */
export function defaultFetch(allowLoopback: boolean, lookUp: NameLookUp = 'direct'): AnyFetch {
  // Made with the first fetch: a receiver with pinned senders needs none, and Node's `dns`, `http` and `tls`
  // take 10 ms to load.
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
  /**
   * Present if the runtime can resolve names: the addresses are then judged before its `fetch` resolves them
   * again.
   */
  readonly resolve?: Resolve;
}

/**
 * The platform's `fetch` behind all that can be enforced in front of it. That is https, no userinfo, no
 * redirect followed, no literal address that is not public in any spelling, no local name. If names can be
 * resolved here, none may have an address that is not public.
 *
 * One thing cannot be enforced: `fetch` does not say where it connects. A name that answers differently the
 * second time is not caught, and a proxy of the environment may be used. If `fetch` reaches no private
 * network (workers at the edge), nothing is lost by that. Elsewhere, an owner with inner hosts to protect
 * passes a `fetch` that uses an egress proxy.
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
  /** Development: allows http and private addresses. Default false. */
  readonly allowLoopback?: boolean;
  /** Returns the addresses of a host name, which are then judged. Default: asks DNS servers. */
  readonly resolve?: Resolve;
  /** Connects to a judged address; the reached address is compared with it. Default: the system's sockets. */
  readonly dial?: Dial;
  /** PEM certificates that are trusted instead of the runtime's own. */
  readonly ca?: string | readonly string[];
  /**
   * Time for the connection and its TLS handshake, ms; the caller's signal bounds the whole. Default 5000.
   */
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

/** Default of `connectMs` (verification.md §5.13). */
const CONNECT_MS = 5_000;

/**
 * Fetches URLs that counterparties chose, so that none of them leads into the owner's network. The name is
 * resolved once, all its addresses are judged, and the connection goes to one of them and is compared with it
 * (verification.md §5.12). Each fetch has a connection of its own. Redirects are returned, bodies are not
 * decoded, and proxy variables are not read. Rejects with the reason, for the owner's log.
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
  // The listener stays for the body, which is read after this promise has settled.
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
    // The certificate has to be for this name or address.
    host,
    // RFC 6066 §3: names only, without the root dot.
    servername: parseAddress(host) === undefined ? host : '',
    ALPNProtocols: ['http/1.1'],
    // Certificates are checked even if NODE_TLS_REJECT_UNAUTHORIZED turns that off for the process.
    rejectUnauthorized: true,
    ...(ca !== undefined && { ca: typeof ca === 'string' ? ca : [...ca] }),
  });
  await whenReady(secure, 'secureConnect', signal);
  return secure;
}
