import { settledWithin } from '../timeout.ts';
import { limited, orAborted } from './abort.ts';
import type { NetModules } from './builtin.ts';
import { createFairTurns } from './fair-turns.ts';
import type { Resolve } from './resolve.ts';

export interface DirectOptions {
  /** DNS servers, `address:port`; those of the system where absent. For tests. */
  readonly servers?: readonly string[];
  /** Ms for one look-up. 5000. */
  readonly timeoutMs?: number;
}

/** verification.md §5.22. A look-up is two questions and one socket: what bounds all of them is only to be bounded. */
const LIMITS = { perSeller: 2, inAll: 64 };
const TIMEOUT_MS = 5_000;
/** Ms for an answer until the question is repeated, then twice that. */
const TRY_MS = 1_500;
const TRIES = 2;
/** Ms for which the other family is waited for once the one has addresses: some name servers drop its questions. */
const FAMILY_MS = 250;

/** RFC 6761 §6.3: never asked of a server. */
const LOCALHOST = /(?:^|\.)localhost\.?$/;

/** What no name server can have been asked in vain for. */
const HINT =
  "DNS servers were asked, and no hosts file: where the system alone knows the name (hosts file, split DNS, a container's network), set dns: 'system'";

/**
 * Asks DNS servers (c-ares), with a time-out and so that it can be stopped: the system's look-ups wait in few threads,
 * where one seller's silent name server would keep every other seller's name from being looked up.
 */
export function directResolve(dns: NetModules['dns'], options: DirectOptions = {}): Resolve {
  const { servers, timeoutMs = TIMEOUT_MS } = options;
  const inTurn = createFairTurns(LIMITS);
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
        const why = error instanceof Error ? error.message : 'failed';
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
    throw error instanceof AggregateError ? tellingOf(error.errors) : error;
  }
}

/** That there is no address of one family says nothing where the other one's question failed. */
function tellingOf(errors: readonly unknown[]): unknown {
  const [first] = errors;
  return errors.find((error) => (error as { readonly code?: unknown }).code !== 'ENODATA') ?? first;
}
