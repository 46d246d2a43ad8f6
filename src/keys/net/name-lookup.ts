import { abortReason, limited, onAbort, orAborted, settledWithin } from '../../shared/time-limits.ts';
import { addressNotPublicReason, parseAddress } from './addresses.ts';
import type { NetModules } from './connection.ts';
import { isError } from '../../shared/realms.ts';

/** For whom a name is looked up, and until when. */
interface LookUp {
  /** Whose document it is: look-ups are queued by seller. */
  readonly seller: string;
  readonly signal: AbortSignal;
}

/** Every address of a host name, in the order of preference. Rejects where there is none, and when the signal fires. */
export type Resolve = (host: string, lookUp: LookUp) => Promise<readonly string[]>;

/** libuv looks up as many at a time in its four threads; more would wait there, in order of arrival and not by seller. */
const SYSTEM_LIMITS = { perSeller: 1, inAll: 2 };

/**
 * As the operating system resolves: hosts file, search list, split DNS. Such a look-up takes a thread and cannot be
 * stopped, so that two sellers whose name servers are silent hold up the others for as long as the system waits.
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
 * What a URL's host stands for, asked once: who answers a second question otherwise (DNS rebinding) is not asked one.
 * All addresses have to be public, or none is used: one that chooses what a mixed answer gives first would choose where
 * the connection goes.
 * @param hostname as `URL` gives it; a literal address takes the same way as a resolved one.
 * @throws Error that says for the owner's log which address is not public, and why.
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
  /** DNS servers, `address:port`; those of the system where absent. For tests. */
  readonly servers?: readonly string[];
  /** Ms for one look-up. 5000. */
  readonly timeoutMs?: number;
}

/** verification.md §5.22. A look-up is two questions and one socket: what bounds all of them is only to be bounded. */
const DIRECT_LIMITS = { perSeller: 2, inAll: 64 };
const TIMEOUT_MS = 5_000;
/** Ms for an answer until the question is repeated, then twice that. */
const TRY_MS = 1_500;
const TRIES = 2;
/** Ms for which the other family is waited for once the one has addresses: some name servers drop its questions. */
const FAMILY_MS = 250;

/** RFC 6761 §6.3: never asked of a server. */
const LOCALHOST = /(?:^|\.)localhost\.?$/;

/** For names that no DNS server knows. */
const HINT =
  "only DNS servers were asked: if only the system knows the name (hosts file, split DNS, a container's network), set dns: 'system' (of createReceiver: advanced: { dns: 'system' })";

/**
 * Asks DNS servers (c-ares), with a time-out and so that it can be stopped: the system's look-ups wait in few threads,
 * where one seller's silent name server would keep every other seller's name from being looked up.
 */
export function directResolve(dns: NetModules['dns'], options: DirectOptions = {}): Resolve {
  const { servers, timeoutMs = TIMEOUT_MS } = options;
  const inTurn = createSellerQueue(DIRECT_LIMITS);
  const limit = { ms: timeoutMs, reason: `no answer within ${timeoutMs} ms` };
  return async (host, { seller, signal }) => {
    if (LOCALHOST.test(host)) return ['127.0.0.1', '::1'];
    return await inTurn(seller, signal, async () => {
      // One each: its `cancel` ends no other's questions.
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

/** Both families. One that fails or is late is left out where the other has addresses: the connection goes to these. */
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

/** That there is no address of one family says nothing where the other one's question failed. */
function mostTelling(errors: readonly unknown[]): unknown {
  const [first] = errors;
  return errors.find((error) => (error as { readonly code?: unknown }).code !== 'ENODATA') ?? first;
}

/** How much runs at a time. */
interface QueueLimits {
  readonly perSeller: number;
  readonly inAll: number;
}

/**
 * Runs `work` when the seller's turn has come. Rejects with the signal's reason as soon as it fires; what has begun by
 * then keeps its place until it has ended, for it may not heed the signal.
 */
type SellerQueue = <T>(seller: string, signal: AbortSignal, work: () => Promise<T>) => Promise<T>;

/**
 * Sellers take turns, each with few things at a time: one whose name server is silent holds up itself
 * (verification.md §5.22).
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
  /** Lines up; `start` is called by `startNext` when the turn has come. Gives what leaves the line. */
  take(seller: string, start: () => void): () => void;
  startNext(): void;
  /** One that has started has ended. */
  give(seller: string): void;
}

function createSlots({ perSeller, inAll }: QueueLimits): Slots {
  const running = new Map<string, number>();
  /** By seller, whose turn is next first. */
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
      // Behind the others.
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
