// The list of senders, with the numbers of their nonces, that all processes on one Redis share (admission.md §8.9,
// §9.5). Also the type of a session (an open connection).
// Called by commits, loads and searches; made by redis-session.ts.
import { columnText, fromColumnText } from '../text.ts';
import type { Keys, Scripts, RowScript } from './scripts.ts';
import type { Pipeline } from './pipeline.ts';
import type { NonceCount, NonceCounts, sweepsOfAll } from './nonce-counts.ts';
import { textOf } from './redis-rows.ts';
import type { Arg } from './redis-client.ts';
import type { Keyids } from './nonce-counts.ts';
import type { StoreIdentity } from '../store.ts';
import type { Durability } from '../store.ts';

/**
 * The list that processes share through Redis: the senders that have stored events, and the number of nonces of each.
 */
export interface Registry {
  /**
   * Registers a sender before its first commit, so that the workers of all processes find it. Returns undefined if it
   * is registered already.
   */
  register(sender: string): Promise<void> | undefined;
  /**
   * Called after a commit. Every 10 s it exchanges the numbers of nonces with other processes, and registers the
   * senders again. No call waits for that.
   */
  tick(): void;
  /** Returns all senders that any process has registered. */
  senders(): Promise<readonly string[]>;
}

/** The interval at which processes publish the numbers of their senders' nonces (verification.md §2.9a). Ms: 10 s. */
const EXCHANGE_MS = 10_000;

export interface RegistryParts {
  readonly lane: Pipeline;
  readonly scripts: Scripts;
  readonly keys: Keys;
  readonly counts: NonceCounts;
  /** Does further regular work after each exchange: counts the replicas, and deletes expired rows of one sender. */
  readonly also: () => Promise<void>;
}

export function registryOf(parts: RegistryParts): Registry {
  const { lane, scripts, keys, counts } = parts;
  const registered = new Map<string, Promise<void> | undefined>();
  let exchangedAt = -Infinity;
  return {
    register: (sender) => {
      if (registered.has(sender)) return registered.get(sender);
      // Only the first registration fetches the numbers of all senders' nonces, because that list is as long as the
      // list of senders.
      const isFirst = exchangedAt === -Infinity;
      if (isFirst) exchangedAt = performance.now();
      const running = exchange(parts, [sender], [], isFirst);
      registered.set(sender, running);
      running.then(
        () => registered.set(sender, undefined),
        () => {
          registered.delete(sender);
          if (isFirst) exchangedAt = -Infinity;
        },
      );
      return running;
    },
    tick: () => {
      if (performance.now() - exchangedAt < EXCHANGE_MS) return;
      exchangedAt = performance.now();
      // Senders are registered again, because a failover may have lost their registration.
      exchange(parts, [...registered.keys()], counts.take(), true)
        .then(parts.also)
        .catch(() => undefined);
    },
    senders: async () => {
      const reply = await lane.read({ script: scripts.senders, keys: keys.registry, args: [] });
      return (reply as readonly unknown[]).map((sender) => fromColumnText(textOf(sender)));
    },
  };
}

/**
 * Registers senders, and exchanges numbers of nonces with other processes.
 *
 * @param isTold true if the numbers of all senders are requested.
 */
async function exchange(
  { lane, scripts, keys, counts }: RegistryParts,
  senders: readonly string[],
  ownCounts: readonly NonceCount[],
  isTold: boolean,
): Promise<void> {
  const encoded = ownCounts.map(({ sender, nonces }) => [columnText(sender), nonces]);
  const args = [JSON.stringify({ senders: senders.map(columnText), counts: encoded, told: isTold })];
  const reply = await lane.run({ script: scripts.register, keys: keys.registry, args });
  const texts = (reply as readonly unknown[]).map(textOf);
  const received: NonceCount[] = [];
  for (let at = 0; at + 1 < texts.length; at += 2) {
    received.push({ sender: fromColumnText(texts[at] ?? ''), nonces: Number(texts[at + 1]) });
  }
  counts.merge(received);
}

/** Runs a script on the rows of a sender. `asked` becomes `ARGV[1]` as JSON, and `args` follow. */
export type RunScript = (
  script: RowScript,
  sender: string | readonly string[],
  asked: object,
  args?: readonly Arg[],
) => Promise<unknown>;

/** An open connection to Redis, with the state and the operations that all calls of the store share. */
export interface Session {
  /** Runs a script on a sender's rows, and answers once enough replicas have its writes. */
  readonly run: RunScript;
  /** Runs a script on whose writes no answer depends: it does not wait for replicas. */
  readonly read: RunScript;
  readonly registry: Registry;
  /** True if the keys of two senders may be in different slots, so that one script cannot use both. */
  readonly slots: { areApart: boolean };
  readonly counts: NonceCounts;
  readonly keyids: Keyids;
  readonly sweepsOfAll: ReturnType<typeof sweepsOfAll>;
  readonly identity: () => StoreIdentity;
  /** Returns the offset that is added to the server's time, ms. */
  readonly offsetMs: () => number;
  /**
   * Returns the durability under the servers' present settings.
   *
   * @throws ConfigError if a newer package has changed the keys meanwhile.
   */
  durability(): Promise<Durability | 'unknown'>;
  /** Returns the settings that the operator has to change for more durability. */
  advice(): string;
  /**
   * Returns the time of one primary, Unix ms, with the offset. Leases survive a failover only if the clocks of all
   * primaries agree.
   */
  clock(): Promise<number>;
  /** Waits for running calls, then disconnects. */
  close(): Promise<void>;
}
