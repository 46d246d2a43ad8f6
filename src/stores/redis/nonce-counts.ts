import type { Unit } from '../backend.ts';
import { scopeName } from '../optimistic/row-data.ts';

/** Nonces of a sender. */
export interface NonceCount {
  readonly sender: string;
  readonly nonces: number;
  /** By then all of them are over. Unix ms, store's clock. */
  readonly untilMs: number;
}

/** What a script said of the sender's nonces; undefined: it was not asked. */
interface Seen {
  readonly nonces: number | undefined;
  readonly now: number;
  /** By when those that it wrote are over; 0: none. */
  readonly untilMs: number;
}

/**
 * How many nonces each sender has, for the cap on all of them together (verification.md §2.9a: approximate). Exact for
 * what this process saw last; of others as they told.
 */
export interface NonceCounts {
  /** @returns those of all senders; undefined where the script was not asked. */
  seen(sender: string, seen: Seen): number | undefined;
  /** What was noted since the last time, to tell the other processes. */
  take(): readonly NonceCount[];
  /** What the others told; of senders that were noted since, this process knows better. */
  merge(counts: readonly NonceCount[]): void;
}

export function nonceCounts(): NonceCounts {
  const counts = new Map<string, NonceCount>();
  const noted = new Set<string>();
  const others = (sender: string, now: number): number => {
    let sum = 0;
    for (const count of counts.values()) {
      if (count.untilMs <= now) counts.delete(count.sender);
      else if (count.sender !== sender) sum += count.nonces;
    }
    return sum;
  };
  return {
    seen: (sender, { nonces, now, untilMs }) => {
      const known = counts.get(sender);
      const until = Math.max(known?.untilMs ?? 0, untilMs);
      if (until > 0) counts.set(sender, { sender, nonces: nonces ?? known?.nonces ?? 0, untilMs: until });
      if (nonces === undefined) return undefined;
      noted.add(sender);
      return nonces + others(sender, now);
    },
    take: () => {
      const told = [...noted].flatMap((sender) => counts.get(sender) ?? []);
      noted.clear();
      return told;
    },
    merge: (received) => {
      for (const count of received) if (!noted.has(count.sender)) counts.set(count.sender, count);
    },
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
