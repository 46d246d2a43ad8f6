import { ConfigError, Fault } from '../errors.ts';
import type {
  AcceptRequest,
  AcceptResult,
  FailResult,
  PeekResult,
  Store,
  StoreInbox,
  StoreOptions,
} from './contract.ts';
import { requireOptions } from './given.ts';
import { failValues } from './redis/args.ts';
import type { RedisClient } from './redis/client.ts';
import { checkClient, checkPrefix } from './redis/client.ts';
import { inboxOf } from './redis/inbox.ts';
import { keysOf } from './redis/keys.ts';
import { answerOf, textOf } from './redis/replies.ts';
import { nodeDigests, scriptsOf } from './redis/scripts.ts';
import type { Session, SessionOptions, UseSession } from './redis/session.ts';
import { openSession } from './redis/session.ts';
import { ADVICE } from './redis/settings.ts';
import { tracked } from './redis/tracked.ts';

export type { RedisClient } from './redis/client.ts';

/** `redisStore`'s options. */
export interface RedisStoreOptions extends StoreOptions {
  /** Of ioredis, single, with Sentinels, or Cluster. The store works on a duplicate; this one stays yours to close. */
  readonly client: RedisClient;
  /** Begins every key; without `{` and `}`. `webhook:` by default. */
  readonly prefix?: string;
  /**
   * Replicas that must have confirmed what an answer rests on (`WAIT`); fewer: `not_durable`, 503. By default 1 as
   * soon as every primary is seen to have a replica, 0 before; 0 turns it off.
   */
  readonly waitReplicas?: number;
  /** How long replicas are waited for. Ms; 1 000. */
  readonly waitTimeoutMs?: number;
  /** An operation that is not answered by then is `store_unavailable`. Ms; 3 000. */
  readonly timeoutMs?: number;
}

/** A store with an inbox, without transactions. */
export type RedisStore = Store & { readonly inbox: StoreInbox };

/**
 * A store on Redis >= 6.2: any number of processes; best effort across failover, for Redis itself is. Every transition
 * is one Lua script on the keys of one sender, which are in one slot.
 *
 * Durability is `disk` with `appendonly yes` and `appendfsync always`; `failover` where replicas confirm too; else
 * `process`; `unknown` where the settings may not be read. `maxmemory-policy` must be `noeviction`.
 * @throws ConfigError for options that cannot work; from `open()` for servers that cannot keep the promise.
 */
export function redisStore(options: RedisStoreOptions): RedisStore {
  const { open, use, close } = opener(sessionOptions(options));
  return {
    name: 'redis',
    open,
    durability: () => use((session) => session.durability()),
    durabilityAdvice: ADVICE,
    accept: (request) => use((session) => accept(session, request)),
    complete: (request) => use(async ({ complete }) => textOf(await complete(request)) as 'done' | 'lost'),
    fail: (request) =>
      use(async ({ run }) => textOf(await run('fail', request.sender, failValues(request))) as FailResult),
    renew: ({ sender, key, owner, leaseMs }) =>
      use(
        async ({ run }) => textOf(await run('renew', sender, { key, owner, leaseMs })) as 'renewed' | 'lost',
      ),
    peek: (sender, key) => use(async ({ run }) => textOf(await run('peek', sender, { key })) as PeekResult),
    clock: () => use((session) => session.clock()),
    inbox: inboxOf(use),
    close,
  };
}

/** One round trip, but for a sender's first accept in this process. */
async function accept(
  { registry, counts, accept: send }: Session,
  request: AcceptRequest,
): Promise<AcceptResult> {
  const { sender, nonce } = request;
  const registering = registry.register(sender);
  if (registering) await registering;
  const answer = answerOf(await send(request), request);
  if (nonce) {
    const lifeMs = nonce.expiresAtMs - nonce.nowMs;
    counts.note(sender, { nonces: answer.nonces, now: answer.now, lifeMs });
  }
  registry.tick();
  return answer.result;
}

const OPTION_NAMES: Readonly<Record<keyof RedisStoreOptions, true>> = {
  client: true,
  prefix: true,
  waitReplicas: true,
  waitTimeoutMs: true,
  timeoutMs: true,
  clockOffsetMs: true,
};

function sessionOptions(options: RedisStoreOptions): SessionOptions {
  requireOptions('redisStore', options, OPTION_NAMES);
  const { client, prefix = 'webhook:', waitReplicas, waitTimeoutMs = 1000, timeoutMs = 3000 } = options;
  checkClient(client);
  checkPrefix('prefix', prefix);
  const counts = { waitReplicas: waitReplicas ?? 0, waitTimeoutMs, timeoutMs };
  for (const [name, value] of Object.entries(counts)) {
    if (Number.isSafeInteger(value) && value >= (name === 'waitReplicas' ? 0 : 1)) continue;
    throw new ConfigError(`redisStore: ${name} is ${value}. Give a whole number.`);
  }
  const digests = nodeDigests();
  return {
    client,
    keys: keysOf(prefix, digests),
    scripts: scriptsOf(digests),
    clockOffsetMs: options.clockOffsetMs ?? (() => 0),
    timeoutMs,
    waitTimeoutMs,
    waitReplicas,
  };
}

interface Opener {
  readonly open: () => Promise<void>;
  /** @throws Fault `store_unavailable` before `open` and after `close`. */
  readonly use: UseSession;
  readonly close: () => Promise<void>;
}

function opener(options: SessionOptions): Opener {
  const running = new Set<Promise<unknown>>();
  let opening: Promise<Session> | undefined;
  let opened: Session | undefined;
  let closed = false;
  const checkOpen = (): void => {
    if (closed) throw new Fault('store_unavailable', 'The Redis store is closed.');
  };
  return {
    open: async () => {
      checkOpen();
      opening ??= openSession(options);
      try {
        opened = await opening;
      } catch (error) {
        opening = undefined;
        throw error;
      }
    },
    use: async (work) => {
      checkOpen();
      if (!opened) throw new Fault('store_unavailable', 'The Redis store is not open yet.');
      return tracked(running, work(opened));
    },
    close: async () => {
      if (closed) return;
      closed = true;
      const session = await opening?.catch(() => undefined);
      while (running.size > 0) await Promise.allSettled(running);
      await session?.close();
    },
  };
}
