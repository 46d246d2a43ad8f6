import { columnText, fromColumnText } from '../text.ts';
import type { Keys, Scripts, RowScript } from './scripts.ts';
import type { Pipeline } from './pipeline.ts';
import type { NonceCount, NonceCounts, sweepsOfAll } from './nonce-counts.ts';
import { textOf } from './redis-rows.ts';
import type { Arg } from './redis-client.ts';
import type { Keyids } from './nonce-counts.ts';
import type { StoreIdentity } from '../store.ts';
import type { Durability } from '../store.ts';

/** What processes tell each other through Redis: whose events there are, and how many nonces each sender has. */
export interface Registry {
  /** Before the first commit of a sender: its workers must find it. Undefined once it is so. */
  register(sender: string): Promise<void> | undefined;
  /** After an accept. Every 10 s counts are exchanged and senders registered again; nothing waits for that. */
  tick(): void;
  /** All senders that any process registered. */
  senders(): Promise<readonly string[]>;
}

/** verification.md §2.9a: processes publish their counts every 10 s. */
const EXCHANGE_MS = 10_000;

export interface RegistryParts {
  readonly lane: Pipeline;
  readonly scripts: Scripts;
  readonly keys: Keys;
  readonly counts: NonceCounts;
  /** Done with each exchange. */
  readonly also: () => Promise<void>;
}

export function registryOf(parts: RegistryParts): Registry {
  const { lane, scripts, keys, counts } = parts;
  const registered = new Map<string, Promise<void> | undefined>();
  let exchangedAt = -Infinity;
  return {
    register: (sender) => {
      if (registered.has(sender)) return registered.get(sender);
      // All counts come with the first one alone: they are as many as there are senders.
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
      // Registered again, for a failover may have lost it.
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

/** @param isTold whether all counts are asked for. */
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

/** What a script is told: whose rows it works on, its `ARGV[1]`, as JSON, and what follows. */
export type RunScript = (
  script: RowScript,
  sender: string | readonly string[],
  asked: object,
  args?: readonly Arg[],
) => Promise<unknown>;

/** An open connection and what is known of the servers behind it. */
export interface Session {
  /** Runs a script on a sender's rows; answers once the replicas that are asked for have it. */
  readonly run: RunScript;
  /** For what no answer rests on: waits for no replica. */
  readonly read: RunScript;
  readonly registry: Registry;
  /** Whether keys of two senders may be in two slots, so that no script has both. */
  readonly slots: { areApart: boolean };
  readonly counts: NonceCounts;
  readonly keyids: Keyids;
  readonly sweepsOfAll: ReturnType<typeof sweepsOfAll>;
  readonly identity: () => StoreIdentity;
  /** Ms that are added to the server's clock. */
  readonly offsetMs: () => number;
  /** @throws ConfigError where a newer package has changed the keys meanwhile. */
  durability(): Promise<Durability | 'unknown'>;
  /** What an owner has to change for more. */
  advice(): string;
  /** Of a primary: theirs are one clock, or leases would not hold over a failover. Unix ms. */
  clock(): Promise<number>;
  /** Waits for what runs, then disconnects. */
  close(): Promise<void>;
}
