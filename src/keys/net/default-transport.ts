import type { AnyTransport, NameLookUp } from '../contract.ts';
import { dnsModule, hasDirectDns, netModules } from './builtin.ts';
import { directResolve } from './direct-resolve.ts';
import { fetchTransport } from './fetch-transport.ts';
import { nodeTransport } from './node-transport.ts';
import { systemResolve } from './resolve.ts';

/**
 * Connections of our own where the runtime lets us make them, its `fetch` elsewhere: what each enforces is said there.
 * @param allowLoopback development: http and private addresses.
 * @param lookUp how Node looks names up. A platform's `fetch` does it as the system does, and so do what judges before it.
 */
export function defaultTransport(allowLoopback: boolean, lookUp: NameLookUp = 'direct'): AnyTransport {
  const modules = netModules();
  if (modules !== undefined) {
    const direct = lookUp === 'direct' && hasDirectDns();
    const resolve = direct ? directResolve(modules.dns) : systemResolve(modules.dns);
    return nodeTransport(modules, { allowLoopback, resolve });
  }
  const dns = dnsModule();
  return fetchTransport({ allowLoopback, ...(dns !== undefined && { resolve: systemResolve(dns) }) });
}
