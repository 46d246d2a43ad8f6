import type { Unit } from '../backend.ts';
import { scopeName } from '../optimistic/row-data.ts';

/** Nonces of a sender. */
export interface NonceCount {
  readonly sender: string;
  readonly nonces: number;
}

/**
 * How many nonces each sender has, for the cap on all of them together (admission.md §8.9): as this process was told
 * last; of senders that others have seen since, as they told.
 */
export interface NonceCounts {
  /** Told by a script. @returns those of all senders. */
  seen(sender: string, nonces: number): number;
  /** What was told since the last time, for the other processes. */
  take(): readonly NonceCount[];
  /** What the others were told; of senders that were told of since, this process knows better. */
  merge(counts: readonly NonceCount[]): void;
}

export function nonceCounts(): NonceCounts {
  const counts = new Map<string, number>();
  const noted = new Set<string>();
  let all = 0;
  const put = (sender: string, nonces: number): void => {
    all += nonces - (counts.get(sender) ?? 0);
    counts.set(sender, nonces);
  };
  return {
    seen: (sender, nonces) => {
      put(sender, nonces);
      noted.add(sender);
      return all;
    },
    take: () => {
      const told = [...noted].map((sender) => ({ sender, nonces: counts.get(sender) ?? 0 }));
      noted.clear();
      return told;
    },
    merge: (received) => {
      for (const { sender, nonces } of received) if (!noted.has(sender)) put(sender, nonces);
    },
  };
}

/** After a sweep of all senders it is left alone for so many times what it took. */
const REST = 9;

/** So few senders are swept in one round trip, as many as the accept itself makes. */
const FEW = 64;

/** What a sweep of all senders came to. */
interface Swept {
  /** How many nonces it has deleted. */
  readonly gone: number;
  readonly senders: number;
}

/**
 * Runs a sweep of all senders, which is a script for each of them. Near the cap on all nonces every accept of everybody asks
 * for one. So calls share the one that is under way, and where senders are many it runs for a tenth of the time at most.
 * @param now ms.
 * @returns nonces that were deleted; 0 where it is left out.
 */
export function sweepsOfAll(
  now: () => number = () => performance.now(),
): (sweep: () => Promise<Swept>) => Promise<number> {
  let running: Promise<number> | undefined;
  let restsUntil = -Infinity;
  const swept = async (sweep: () => Promise<Swept>): Promise<number> => {
    const since = now();
    try {
      const { gone, senders } = await sweep();
      if (senders > FEW) restsUntil = now() + REST * (now() - since);
      return gone;
    } finally {
      running = undefined;
    }
  };
  return async (sweep) => {
    if (!running && now() < restsUntil) return 0;
    return (running ??= swept(sweep));
  };
}

/** A key id, and when the last of its nonces is over for certain. Unix ms. */
type KeyidUntil = readonly [keyid: string, untilMs: number];

/** Which key ids a sender has: noted once an hour, and not with each nonce. */
export interface Keyids {
  readonly toNote: (units: readonly Unit[]) => readonly KeyidUntil[];
  /** The script has it. */
  readonly noted: (sender: string, keyids: readonly KeyidUntil[]) => void;
}

/** One write an hour for a key id in use, and one that is not used any more is looked at for an hour in vain. */
const AHEAD_MS = 3_600_000;

/** Remembered at most; beyond, they are noted again. */
const MOST = 10_000;

export function keyidsOf(): Keyids {
  const until = new Map<string, number>();
  return {
    toNote: (units) => {
      const found = new Map<string, number>();
      for (const { writes } of units) {
        for (const { scope, expiresAt } of writes) {
          if (scope.keyid === undefined || expiresAt === null) continue;
          if ((until.get(scopeName(scope)) ?? 0) < expiresAt) found.set(scope.keyid, expiresAt + AHEAD_MS);
        }
      }
      return [...found];
    },
    noted: (sender, keyids) => {
      if (until.size > MOST) until.clear();
      for (const [keyid, untilMs] of keyids) until.set(scopeName({ sender, keyid }), untilMs);
    },
  };
}
