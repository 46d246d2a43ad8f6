// The `fetch` for URLs that counterparties choose. It makes its own connections on Node and Deno, and uses the
// platform's `fetch` elsewhere (verification.md §5.12).
// Used by the key resolver, the registry client and the code that calls sellers, unless the owner passes a `fetch`.

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
 * Returns a fetch that makes its own connections if the runtime allows it, and otherwise uses the runtime's `fetch`.
 * `nodeFetch` and `platformFetch` describe the checks of each.
 * @param allowLoopback for development: allows http and private addresses.
 * @param lookUp the way in which Node looks up names. Other runtimes use the system's look-up.
 */
export function defaultFetch(allowLoopback: boolean, lookUp: NameLookUp = 'direct'): AnyFetch {
  // Created at the first fetch, because loading Node's `dns`, `http` and `tls` takes 10 ms. A receiver with only
  // pinned senders never fetches.
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
   * Returns the addresses of a host name. If set, these addresses are checked before `fetch` resolves the name again.
   */
  readonly resolve?: Resolve;
}

/**
 * Returns the platform's `fetch` with the checks that are possible before the call. They require https, and refuse
 * userinfo, redirects, local names, and literal addresses that are not public, however they are spelled. With
 * `resolve`, a name with an address that is not public is refused too.
 *
 * The connection itself cannot be checked, because `fetch` does not say where it connects. A name that resolves
 * differently the second time is not detected, and a proxy from the environment may be used. On workers at the edge,
 * `fetch` reaches no private network, so nothing is lost. Elsewhere, an owner with internal hosts to protect passes a
 * `fetch` that uses an egress proxy.
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

/** The options of `nodeFetch`, which fetches over the runtime's own sockets. */
export interface NodeFetchOptions {
  /** For development: allows http and private addresses. Default: false. */
  readonly allowLoopback?: boolean;
  /** Returns the addresses of a host name, which are then checked. Default: asks DNS servers. */
  readonly resolve?: Resolve;
  /**
   * Connects to a checked address. Afterwards the address that was reached is compared with the checked one. Default:
   * the system's sockets.
   */
  readonly dial?: Dial;
  /** PEM certificates that are trusted instead of the runtime's own. */
  readonly ca?: string | readonly string[];
  /**
   * Time limit for the connection and its TLS handshake, ms. The caller's signal limits the whole fetch. Default
   * 5000.
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
 * Fetches URLs that counterparties chose, so that no URL leads into the owner's network. The name is resolved once and
 * all its addresses are checked. The connection is made to one of them, and the reached address is compared with it
 * (verification.md §5.12).
 * Each fetch has its own connection. Redirects are not followed, bodies are not decoded, and proxy variables are not
 * read. Rejects with the reason, for the owner's log.
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
  // The abort listener stays after this function has returned, because the body is read later.
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
    // The certificate must be valid for this name or address.
    host,
    // RFC 6066 §3: SNI contains names only, without the root dot.
    servername: parseAddress(host) === undefined ? host : '',
    ALPNProtocols: ['http/1.1'],
    // Certificates are checked even if NODE_TLS_REJECT_UNAUTHORIZED turns that off for the process.
    rejectUnauthorized: true,
    ...(ca !== undefined && { ca: typeof ca === 'string' ? ca : [...ca] }),
  });
  await whenReady(secure, 'secureConnect', signal);
  return secure;
}
