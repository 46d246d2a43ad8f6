/** Node's modules that connections are made of. */
export interface NetModules {
  readonly dns: typeof import('node:dns');
  readonly http: typeof import('node:http');
  readonly net: typeof import('node:net');
  readonly tls: typeof import('node:tls');
}

export type Socket = import('node:net').Socket;
export type IncomingMessage = import('node:http').IncomingMessage;

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
