// Counts the nonces (random texts of signatures) of all senders, and limits how often all senders are cleared of
// expired ones (admission.md §6.7, §8.9).
// Called by redis-session.ts. Commits and sweeps bring new counts, and sender-list.ts exchanges them between processes.
import type { Unit } from '../backend.ts';
import { scopeName } from '../optimistic/row-data.ts';

export interface NonceCount {
  readonly sender: string;
  readonly nonces: number;
}

/**
 * The last known number of nonces of each sender, for the cap on all nonces together (admission.md §8.9). A script
 * returned it to this process, or another process has published it.
 */
export interface NonceCounts {
  /**
   * Saves the number of a sender's nonces that a script returned.
   *
   * @returns the number of nonces of all senders.
   */
  seen(sender: string, nonces: number): number;
  /** Returns the numbers saved since the last call, to publish them to the other processes. */
  take(): readonly NonceCount[];
  /**
   * Takes over the numbers that other processes have published. Senders whose number was saved here since the last
   * `take` are skipped.
   */
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

/**
 * The pause after a sweep (deletion of expired nonces) of all senders, as a multiple of the sweep's duration. So sweeps
 * run for a tenth of the time.
 */
const REST = 9;

/** A sweep of at most this many senders is followed by no pause, because it takes only one round trip. */
const FEW = 64;

/** The result of a sweep (deletion of expired nonces) of all senders. */
interface Swept {
  /** The number of deleted nonces. */
  readonly gone: number;
  readonly senders: number;
}

/**
 * Limits sweeps (deletions of expired nonces) of all senders. A sweep runs a script for every sender. Near the cap on
 * all nonces, every call of `accept` requests a sweep. So calls share a running sweep, and with many senders sweeps run
 * for at most a tenth of the time.
 *
 * @param now returns ms.
 * @returns a function that sweeps, or waits for the running sweep. It returns the number of deleted nonces; 0 if it did
 *   not sweep because of a pause.
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

/** A key id, and a time by which all its nonces have certainly expired. Unix ms. */
type KeyidUntil = readonly [keyid: string, untilMs: number];

/** Decides when a sender's key id is written to its list in Redis: once an hour, and not with each nonce. */
export interface Keyids {
  readonly toNote: (units: readonly Unit[]) => readonly KeyidUntil[];
  /** Remembers that a script has written the key ids. */
  readonly noted: (sender: string, keyids: readonly KeyidUntil[]) => void;
}

/**
 * The time that is added to a nonce's expiry when its key id is written. So a key id in use is written once an hour. An
 * unused one is searched for expired nonces an hour longer. Ms.
 */
const AHEAD_MS = 3_600_000;

/**
 * The largest number of key ids that are remembered as written. Above it all are forgotten, and written again when
 * used.
 */
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
