import type { AnyTransport } from '../contract.ts';
import { dnsModule, netModules } from './builtin.ts';
import { fetchTransport } from './fetch-transport.ts';
import { nodeTransport } from './node-transport.ts';
import { systemResolve } from './resolve.ts';

/**
 * Connections of our own where the runtime lets us make them, its `fetch` elsewhere: what each enforces is said there.
 * @param allowLoopback development: http and private addresses.
 */
export function defaultTransport(allowLoopback: boolean): AnyTransport {
  const modules = netModules();
  if (modules !== undefined) return nodeTransport(modules, { allowLoopback });
  const dns = dnsModule();
  return fetchTransport({ allowLoopback, ...(dns !== undefined && { resolve: systemResolve(dns) }) });
}
