import { settledWithin } from '../timeout.ts';
import { onAbort } from './abort.ts';
import { sameAddress } from './address.ts';
import type { NetModules, Socket } from './builtin.ts';

/** A socket on its way, and where it turned out to lead. */
export interface Dialled {
  readonly socket: Socket;
  /** The address at the other end, asked once the socket is connected; undefined where it has none. */
  readonly peer: () => string | undefined;
}

/** Begins a connection to an address that was judged; never sees a name. */
export type Dial = (address: string, port: number) => Dialled;

/** RFC 8305 §8: how long an address is tried alone before the next one is tried beside it. */
const STAGGER_MS = 250;

/** A hostile answer can list thousands. */
const MAX_TRIED = 4;

export function systemDial(net: NetModules['net']): Dial {
  return (address, port) => {
    const socket = net.connect({ host: address, port, noDelay: true });
    return { socket, peer: () => socket.remoteAddress };
  };
}

/**
 * Resolves when `event` says that the socket is ready; else destroys it and rejects, on the signal too. Errors after
 * that are the next owner's to hear of, and never nobody's: an `error` without a listener ends the process.
 */
export async function whenReady(
  socket: Socket,
  event: 'connect' | 'secureConnect',
  signal: AbortSignal,
): Promise<void> {
  socket.on('error', () => undefined);
  if (event === 'connect' && !socket.connecting) return;
  let takeBack = (): void => undefined;
  try {
    await new Promise<void>((resolve, reject) => {
      socket.once(event, resolve).once('error', reject);
      socket.once('close', () => {
        reject(new Error('the connection was closed before it was made'));
      });
      takeBack = onAbort(signal, reject);
    });
  } catch (error) {
    socket.destroy();
    throw error;
  } finally {
    takeBack();
  }
}

async function connect(address: string, port: number, dial: Dial, signal: AbortSignal): Promise<Socket> {
  const { socket, peer } = dial(address, port);
  await whenReady(socket, 'connect', signal);
  const at = peer();
  if (at !== undefined && sameAddress(at, address)) return socket;
  socket.destroy();
  throw new Error(`the connection went to ${at ?? 'nowhere'} and not to ${address}, which was judged`);
}

/** RFC 8305 §4: families by turns, so that a name with many addresses of the one is tried at the other too. */
function byTurns(addresses: readonly string[]): string[] {
  const isIpv6 = (address: string): boolean => address.includes(':');
  const [first = ''] = addresses;
  const own = addresses.filter((address) => isIpv6(address) === isIpv6(first));
  const other = addresses.filter((address) => isIpv6(address) !== isIpv6(first));
  const longer = own.length > other.length ? own : other;
  return longer
    .flatMap((_, index) => [own[index], other[index]])
    .filter((address) => address !== undefined)
    .slice(0, MAX_TRIED);
}

/** Connects to the first of the judged addresses that answers; each has a head start before the next one. */
export async function connectAny(
  addresses: readonly string[],
  port: number,
  dial: Dial,
  signal: AbortSignal,
): Promise<Socket> {
  const decided = new AbortController();
  const limit = AbortSignal.any([signal, decided.signal]);
  const attempts: Promise<Socket>[] = [];
  let first: Socket | undefined;
  try {
    for (const address of byTurns(addresses)) {
      attempts.push(connect(address, port, dial, limit));
      // Rejects once all that were begun have failed: then the next one's turn has come.
      first = await settledWithin(Promise.any(attempts), STAGGER_MS).catch(() => undefined);
      if (first !== undefined || signal.aborted) break;
    }
    first ??= await Promise.any(attempts);
    return first;
  } catch (error) {
    throw error instanceof AggregateError ? error.errors[0] : error;
  } finally {
    decided.abort();
    for (const attempt of attempts) void destroyUnless(first, attempt);
  }
}

/** Two may have been connected in the same moment. */
async function destroyUnless(first: Socket | undefined, attempt: Promise<Socket>): Promise<void> {
  const socket = await attempt.catch(() => undefined);
  if (socket !== first) socket?.destroy();
}
