import { parseAddress } from './address.ts';
import type { NetModules } from './builtin.ts';
import { createFairTurns } from './fair-turns.ts';
import { addressRefused } from './judge-address.ts';

/** For whom a name is looked up, and until when. */
export interface LookUp {
  /** Whose document it is: sellers take turns. */
  readonly seller: string;
  readonly signal: AbortSignal;
}

/** Every address of a host name, in the order of preference. Rejects where there is none, and when the signal fires. */
export type Resolve = (host: string, lookUp: LookUp) => Promise<readonly string[]>;

/** libuv looks up as many at a time in its four threads; more would wait there, where nobody takes turns. */
const SYSTEM = { perSeller: 1, inAll: 2 };

/**
 * As the operating system resolves: hosts file, search list, split DNS. Such a look-up takes a thread and cannot be
 * stopped, so that two sellers whose name servers are silent hold up the others for as long as the system waits.
 */
export function systemResolve(dns: NetModules['dns']): Resolve {
  const inTurn = createFairTurns(SYSTEM);
  return async (host, { seller, signal }) => {
    const found = await inTurn(seller, signal, () =>
      dns.promises.lookup(host, { all: true, verbatim: true }),
    );
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
  lookUp: LookUp,
): Promise<readonly string[]> {
  const bare = hostname.startsWith('[') ? hostname.slice(1, -1) : hostname;
  const addresses = parseAddress(bare) === undefined ? await resolve(bare, lookUp) : [bare];
  if (addresses.length === 0) throw new Error(`${bare} has no address`);
  if (allowLoopback) return addresses;
  for (const address of addresses) {
    const why = addressRefused(address);
    if (why !== undefined) throw new Error(`${bare} resolves to ${address}, which is not public (${why})`);
  }
  return addresses;
}
