// Looks up host names, in a queue in which sellers take turns, and checks all their addresses (verification.md §5.11,
// §5.22).
// Called by `document-fetch.ts`: `directResolve` asks DNS servers (Node), `systemResolve` the operating system.

import { abortReason, limited, onAbort, orAborted, settledWithin } from '../../shared/time-limits.ts';
import { addressNotPublicReason, parseAddress } from './addresses.ts';
import type { NetModules } from './connection.ts';
import { isError } from '../../shared/realms.ts';

/** The seller for which a name is looked up, and the signal that ends the wait for its addresses. */
interface LookUp {
  /** The seller whose document is fetched; look-ups are queued by seller. */
  readonly seller: string;
  readonly signal: AbortSignal;
}

/** Returns every address of a host name, in order of preference. Rejects if there is none, or the signal aborts. */
export type Resolve = (host: string, lookUp: LookUp) => Promise<readonly string[]>;

/**
 * The maximum numbers of look-ups by the operating system at the same time. Node's libuv runs two at a time in its four
 * threads. More would wait there in order of arrival, so that sellers would not take turns.
 */
const SYSTEM_LIMITS = { perSeller: 1, inAll: 2 };

/**
 * Resolves names as the operating system does: hosts file, search list, split DNS. Such a look-up needs a thread and
 * cannot be stopped. So two sellers whose name servers are silent delay all other sellers until the system's time-out.
 */
export function systemResolve(dns: NetModules['dns']): Resolve {
  const inTurn = createSellerQueue(SYSTEM_LIMITS);
  return async (host, { seller, signal }) => {
    const found = await inTurn(seller, signal, () =>
      dns.promises.lookup(host, { all: true, verbatim: true }),
    );
    return found.map(({ address }) => address);
  };
}

/**
 * Returns the addresses of a URL's host. The name is resolved only once, so a server that answers differently the
 * second time (DNS rebinding) gains nothing. If one address is not public, the whole host is refused. Otherwise the
 * order of the addresses would decide where the connection goes.
 * @param hostname as `URL` writes it; a literal address is checked like a resolved one.
 * @throws Error that names the address that is not public, and the reason, for the owner's log.
 */
export async function publicAddresses(
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
    const why = addressNotPublicReason(address);
    if (why !== undefined) throw new Error(`${bare} resolves to ${address}, which is not public (${why})`);
  }
  return addresses;
}

interface DirectOptions {
  /** DNS servers, `address:port`. Default: those of the system. For tests. */
  readonly servers?: readonly string[];
  /** Time for one look-up, ms. Default 5000. */
  readonly timeoutMs?: number;
}

/**
 * The maximum numbers of look-ups by DNS servers at the same time (verification.md §5.22). Each look-up sends two
 * queries over one socket. The exact total is not critical, but there must be a limit.
 */
const DIRECT_LIMITS = { perSeller: 2, inAll: 64 };
const TIMEOUT_MS = 5_000;
/** The time in ms until an unanswered query is repeated; the second wait is twice as long. */
const TRY_MS = 1_500;
const TRIES = 2;
/**
 * The time in ms for which the second address family (IPv4 or IPv6) is waited for once the first is known. Some name
 * servers drop the queries of one family.
 */
const FAMILY_MS = 250;

/** Matches names that are never sent to a DNS server (RFC 6761 §6.3). */
const LOCALHOST = /(?:^|\.)localhost\.?$/;

/** The advice in the error about a name that no DNS server knows. */
const HINT =
  "only DNS servers were asked: if only the system knows the name (hosts file, split DNS, a container's network), set dns: 'system' (of createReceiver: advanced: { dns: 'system' })";

/**
 * Asks DNS servers, with a time-out; a look-up can be stopped. Look-ups by the system would wait for few threads,
 * where one seller's silent name server would block every other seller.
 */
export function directResolve(dns: NetModules['dns'], options: DirectOptions = {}): Resolve {
  const { servers, timeoutMs = TIMEOUT_MS } = options;
  const inTurn = createSellerQueue(DIRECT_LIMITS);
  const limit = { ms: timeoutMs, reason: `no answer within ${timeoutMs} ms` };
  return async (host, { seller, signal }) => {
    if (LOCALHOST.test(host)) return ['127.0.0.1', '::1'];
    return await inTurn(seller, signal, async () => {
      // Each look-up has its own resolver, because `cancel` ends all look-ups of a resolver.
      const resolver = new dns.promises.Resolver({ timeout: TRY_MS, tries: TRIES });
      if (servers !== undefined) resolver.setServers(servers);
      try {
        return await limited(limit, signal, (within) => addressesOf(resolver, host, within));
      } catch (error) {
        if (signal.aborted) throw error;
        const why = isError(error) ? error.message : 'failed';
        throw new Error(`the look-up of ${host} failed (${why}). ${HINT}`, { cause: error });
      } finally {
        resolver.cancel();
      }
    });
  };
}

type Resolver = InstanceType<NetModules['dns']['promises']['Resolver']>;

/** Queries IPv4 and IPv6 addresses. If one query fails or is late, the addresses of the other are used. */
async function addressesOf(
  resolver: Resolver,
  host: string,
  signal: AbortSignal,
): Promise<readonly string[]> {
  const families = [resolver.resolve4(host), resolver.resolve6(host)];
  const all = Promise.allSettled(families);
  try {
    const first = await orAborted(Promise.any(families), signal);
    const answers = (await settledWithin(all, FAMILY_MS)) ?? [];
    const found = answers.flatMap((answer) => (answer.status === 'fulfilled' ? answer.value : []));
    return found.length > 0 ? found : first;
  } catch (error) {
    throw error instanceof AggregateError ? mostTelling(error.errors) : error;
  }
}

/**
 * Returns the most informative error. "No addresses of this family" says nothing if the query for the other family
 * failed with another error.
 */
function mostTelling(errors: readonly unknown[]): unknown {
  const [first] = errors;
  return errors.find((error) => (error as { readonly code?: unknown }).code !== 'ENODATA') ?? first;
}

/** The maximum numbers of tasks that run at the same time, for one seller and in all. */
interface QueueLimits {
  readonly perSeller: number;
  readonly inAll: number;
}

/**
 * Runs `work` when the seller's turn has come. Rejects with the signal's reason as soon as the signal aborts. Running
 * work counts against the limits until it ends, because it may ignore the signal.
 */
type SellerQueue = <T>(seller: string, signal: AbortSignal, work: () => Promise<T>) => Promise<T>;

/**
 * Creates a queue in which sellers take turns, each with few look-ups at a time. So a seller whose name server does
 * not answer delays only its own look-ups (verification.md §5.22).
 */
export function createSellerQueue(limits: QueueLimits): SellerQueue {
  const places = createSlots(limits);
  const turn = async (seller: string, signal: AbortSignal): Promise<void> => {
    if (signal.aborted) throw abortReason(signal);
    await new Promise<void>((resolve, reject) => {
      const giveUp = places.take(seller, () => {
        takeBack();
        resolve();
      });
      const takeBack = onAbort(signal, (reason) => {
        giveUp();
        reject(reason);
      });
      places.startNext();
    });
  };
  return async (seller, signal, work) => {
    await turn(seller, signal);
    const done = work().finally(() => {
      places.give(seller);
    });
    return await orAborted(done, signal);
  };
}

interface Slots {
  /**
   * Adds `start` to the seller's queue; `startNext` calls it when the seller's turn has come. Returns a function
   * that removes it from the queue.
   */
  take(seller: string, start: () => void): () => void;
  startNext(): void;
  /** Notes that a task of the seller has ended, and starts waiting tasks in its place. */
  give(seller: string): void;
}

function createSlots({ perSeller, inAll }: QueueLimits): Slots {
  const running = new Map<string, number>();
  /** For each seller with waiting tasks, the functions that start them. The seller whose turn is next comes first. */
  const waiting = new Map<string, Set<() => void>>();
  let total = 0;
  const count = (seller: string, change: 1 | -1): void => {
    total += change;
    const left = (running.get(seller) ?? 0) + change;
    if (left === 0) running.delete(seller);
    else running.set(seller, left);
  };
  const startNext = (): void => {
    for (const [seller, queue] of waiting) {
      if (total >= inAll) return;
      if ((running.get(seller) ?? 0) >= perSeller) continue;
      const [start] = queue;
      waiting.delete(seller);
      if (start === undefined) continue;
      queue.delete(start);
      // The seller has more waiting tasks, so the seller moves to the end of the order.
      if (queue.size > 0) waiting.set(seller, queue);
      count(seller, 1);
      start();
    }
  };
  return {
    startNext,
    take: (seller, start) => {
      const queue = waiting.get(seller) ?? new Set();
      queue.add(start);
      waiting.set(seller, queue);
      return () => {
        queue.delete(start);
      };
    },
    give: (seller) => {
      count(seller, -1);
      startNext();
    },
  };
}
