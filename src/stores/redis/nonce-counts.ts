// Counts nonces of all senders over their slots, and limits sweeps of all (admission.md §6.7, §8.9).
// Called by redis-session.ts; commits and sweeps tell the counts, sender-list.ts exchanges them.
import type { Unit } from '../backend.ts';
import { scopeName } from '../optimistic/row-data.ts';

/** The nonces of a sender. */
export interface NonceCount {
  readonly sender: string;
  readonly nonces: number;
}

/**
 * The nonces of each sender, for the cap on all of them together (admission.md §8.9). They are as this process was told
 * last; for senders that others have seen since, as these told.
 */
export interface NonceCounts {
  /** Notes a count that a script told. @returns the nonces of all senders. */
  seen(sender: string, nonces: number): number;
  /** Returns the counts that were noted since the last call, for the other processes. */
  take(): readonly NonceCount[];
  /** Takes the counts of the others. For senders whose counts were noted since, this process knows better. */
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

/** The rest after a sweep of all senders, as a multiple of its duration: so sweeps take a tenth of the time. */
const REST = 9;

/** The most senders that are swept without a rest: they are one round trip, as many as the accept itself makes. */
const FEW = 64;

/** The result of a sweep of all senders. */
interface Swept {
  /** The number of deleted nonces. */
  readonly gone: number;
  readonly senders: number;
}

/**
 * Runs sweeps of all senders, each of which is a script for every sender. Near the cap on all nonces every accept of
 * everybody asks for one. So calls share the one under way, and with many senders sweeps run for at most a tenth of the
 * time.
 *
 * @param now returns ms.
 * @returns a function that returns the number of deleted nonces; 0 if the sweep is left out.
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

/** A key id, and the time at which the last of its nonces is over for certain. Unix ms. */
type KeyidUntil = readonly [keyid: string, untilMs: number];

/** The key ids that each sender has. They are noted once an hour, and not with each nonce. */
export interface Keyids {
  readonly toNote: (units: readonly Unit[]) => readonly KeyidUntil[];
  /** Remembers that a script has noted them. */
  readonly noted: (sender: string, keyids: readonly KeyidUntil[]) => void;
}

/**
 * The time that is noted ahead. It means one write an hour for a key id in use. An unused key id is still checked for
 * an hour. Ms.
 */
const AHEAD_MS = 3_600_000;

/** The most key ids that are remembered; beyond, they are noted again. */
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
