import { parseAddress } from './address.ts';
import type { NetModules } from './builtin.ts';
import { addressRefused } from './judge-address.ts';

/** Every address of a host name, in the order of preference. Rejects where there is none. */
export type Resolve = (host: string) => Promise<readonly string[]>;

/** As the operating system resolves: hosts file, search list, DNS. */
export function systemResolve(dns: NetModules['dns']): Resolve {
  return async (host) => {
    const found = await dns.promises.lookup(host, { all: true, verbatim: true });
    return found.map(({ address }) => address);
  };
}

/**
 * What a URL's host stands for, asked once: who answers a second question otherwise (DNS rebinding) is not asked one.
 * All addresses have to be public, or none is used: one that chooses what a mixed answer gives first would choose where
 * the connection goes.
 * @param hostname as `URL` gives it; a literal address takes the same way as a resolved one.
 * @throws Error that says for the owner's log which address is not public, and why.
 */
export async function judgedAddresses(
  hostname: string,
  resolve: Resolve,
  allowLoopback: boolean,
): Promise<readonly string[]> {
  const bare = hostname.startsWith('[') ? hostname.slice(1, -1) : hostname;
  const addresses = parseAddress(bare) === undefined ? await resolve(bare) : [bare];
  if (addresses.length === 0) throw new Error(`${bare} has no address`);
  if (allowLoopback) return addresses;
  for (const address of addresses) {
    const why = addressRefused(address);
    if (why !== undefined) throw new Error(`${bare} resolves to ${address}, which is not public (${why})`);
  }
  return addresses;
}
