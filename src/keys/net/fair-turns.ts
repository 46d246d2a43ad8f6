import { abortReason, onAbort, orAborted } from './abort.ts';

/** How much runs at a time. */
export interface FairLimits {
  readonly perSeller: number;
  readonly inAll: number;
}

/**
 * Runs `work` when the seller's turn has come. Rejects with the signal's reason as soon as it fires; what has begun by
 * then keeps its place until it has ended, for it may not heed the signal.
 */
export type FairTurns = <T>(seller: string, signal: AbortSignal, work: () => Promise<T>) => Promise<T>;

/**
 * Sellers take turns, each with few things at a time: one whose name server is silent holds up itself
 * (verification.md §5.22).
 */
export function createFairTurns(limits: FairLimits): FairTurns {
  const places = createPlaces(limits);
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

interface Places {
  /** Lines up; `start` is called by `startNext` when the turn has come. Gives what leaves the line. */
  take(seller: string, start: () => void): () => void;
  startNext(): void;
  /** One that has started has ended. */
  give(seller: string): void;
}

function createPlaces({ perSeller, inAll }: FairLimits): Places {
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
