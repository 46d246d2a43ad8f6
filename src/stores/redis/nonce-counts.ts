// Counts the nonces of all senders over their slots, and limits how often all senders are swept (admission.md §6.7,
// §8.9).
// Called by redis-session.ts. Commits and sweeps bring new counts, and sender-list.ts exchanges them between
// processes.
import type { Unit } from '../backend.ts';
import { scopeName } from '../optimistic/row-data.ts';

/** The number of a sender's nonces. */
export interface NonceCount {
  readonly sender: string;
  readonly nonces: number;
}

/**
 * The number of nonces of each sender, for the cap on all of them together (admission.md §8.9). It is the last number
 * that a script returned to this process, or a newer one from another process.
 */
export interface NonceCounts {
  /** Saves a number that a script returned. @returns the number of nonces of all senders. */
  seen(sender: string, nonces: number): number;
  /** Returns the numbers saved since the last call, to publish them to the other processes. */
  take(): readonly NonceCount[];
  /** Takes over the numbers of other processes, except for senders whose number was saved since the last `take`. */
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

/** The pause after a sweep of all senders, as a multiple of its duration. So sweeps run for a tenth of the time. */
const REST = 9;

/** The most senders that are swept without a pause afterwards. So few are swept in one round trip. */
const FEW = 64;

/** The result of a sweep of all senders. */
interface Swept {
  /** The number of deleted nonces. */
  readonly gone: number;
  readonly senders: number;
}

/**
 * Runs sweeps of all senders, each of which runs a script for every sender. Near the cap on all nonces every accept
 * asks for such a sweep. So calls share a running sweep, and with many senders sweeps run for at most a tenth of the
 * time.
 *
 * @param now returns ms.
 * @returns a function that returns the number of deleted nonces; 0 if no sweep was run.
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

/** A key id, and a time at which all its nonces have expired for certain. Unix ms. */
type KeyidUntil = readonly [keyid: string, untilMs: number];

/** The key ids of each sender. Each is written once an hour, and not with each nonce. */
export interface Keyids {
  readonly toNote: (units: readonly Unit[]) => readonly KeyidUntil[];
  /** Remembers that a script has written them. */
  readonly noted: (sender: string, keyids: readonly KeyidUntil[]) => void;
}

/**
 * The time that is added when a key id is written. So a key id in use is written once an hour, and an unused one is
 * still checked for an hour. Ms.
 */
const AHEAD_MS = 3_600_000;

/** The most key ids that are remembered; above this number some are written again. */
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
