/** Live nonces of a sender. */
export interface NonceCount {
  readonly sender: string;
  readonly nonces: number;
  /** By then all of them are forgotten. Unix ms, store's clock. */
  readonly untilMs: number;
}

/**
 * How many live nonces each sender has, for the cap on all of them together (verification.md §2.9a:
 * approximate). Exact for what this process saw last; of others as they told.
 */
export interface NonceCounts {
  /** What an accept said; `now` is the store's clock, `lifeMs` how long its nonce lives. */
  note(
    sender: string,
    seen: { readonly nonces: number; readonly now: number; readonly lifeMs: number },
  ): void;
  others(sender: string): number;
  /** What was noted since the last time, to tell the other processes. */
  take(): readonly NonceCount[];
  /** What the others told; of senders that were noted since, this process knows better. */
  hear(counts: readonly NonceCount[]): void;
}

export function nonceCounts(): NonceCounts {
  const counts = new Map<string, NonceCount>();
  const noted = new Set<string>();
  let storeNow = 0;
  return {
    note: (sender, { nonces, now, lifeMs }) => {
      storeNow = now;
      const untilMs = Math.max(counts.get(sender)?.untilMs ?? 0, now + lifeMs);
      counts.set(sender, { sender, nonces, untilMs });
      noted.add(sender);
    },
    others: (sender) => {
      let sum = 0;
      for (const count of counts.values()) {
        if (count.untilMs <= storeNow) counts.delete(count.sender);
        else if (count.sender !== sender) sum += count.nonces;
      }
      return sum;
    },
    take: () => {
      const told = [...noted].flatMap((sender) => counts.get(sender) ?? []);
      noted.clear();
      return told;
    },
    hear: (heard) => {
      for (const count of heard) if (!noted.has(count.sender)) counts.set(count.sender, count);
    },
  };
}
