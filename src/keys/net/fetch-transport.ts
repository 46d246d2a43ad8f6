import type { AnyTransport } from '../contract.ts';
import { refusedUrl } from '../url-policy.ts';
import { orAborted } from './abort.ts';
import { judgedAddresses, type Resolve } from './resolve.ts';

export interface FetchTransportOptions {
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
 * has inner hosts to protect passes a transport that goes out through an egress proxy.
 */
export function fetchTransport({ allowLoopback, resolve }: FetchTransportOptions): AnyTransport {
  return async (url, init) => {
    const refused = refusedUrl(url, allowLoopback);
    if (refused !== undefined) throw new TypeError(refused);
    if (resolve !== undefined) {
      const { hostname } = new URL(url);
      const lookUp = { seller: init.seller ?? hostname, signal: init.signal };
      await orAborted(judgedAddresses(hostname, resolve, allowLoopback, lookUp), init.signal);
    }
    return await globalThis.fetch(url, init);
  };
}
