import type { DatabaseSync } from 'node:sqlite';
import type { Event } from '../../src/events/index.ts';
import { createReceiver, type Handler, type Receiver, type Store } from '../../src/index.ts';
import { signDelivery, type SignedDelivery } from '../../src/sender/sign.ts';
import type { SqliteStore } from '../../src/stores/sqlite.ts';
import { samplePayloads } from '../../src/testing/index.ts';
import { AGENT, URL_GIVEN, sellerKey } from '../receiver/setup.ts';
import { tempFile } from '../stores/sqlite-files.ts';
import type { Life } from './crash-points-life.ts';
import { lifeUntil, mortalStore } from './crash-points-life.ts';
import { sqliteLedger } from './processes/backends.ts';
import { judge, type Verdict } from './processes/judge.ts';
import type { Line } from './processes/ledger.ts';

const LEASE_MS = 8_000;

export interface ProcessOptions {
  readonly mode?: 'inline' | 'inbox';
  /** Where handlers write: outside the store, or in `ctx.transaction`. */
  readonly effect?: 'outside' | 'transaction';
  /** Its handlers throw after their effect. */
  readonly fails?: boolean;
  /** Its handlers go on until their lease has been renewed. */
  readonly renews?: boolean;
  /** See `lifeUntil`. */
  readonly diesAt?: number | string;
  /** Called before each look at an event that another delivery handles. */
  readonly onPeek?: () => void;
  /** A store with a mistake in it. */
  readonly breaks?: (store: SqliteStore) => SqliteStore;
}

/** What a handler writes by `ctx.transaction`, with points around it. On SQLite it is synchronous. */
type WriteEffect = (tx: unknown, key: string, life: Life) => void | Promise<void>;

const writeBySqlite: WriteEffect = (tx, key, life) => {
  life.instant('before the write');
  (tx as DatabaseSync).prepare('INSERT INTO effect (key, copy) VALUES (?, ?)').run(key, '');
  life.instant('after the write');
};

/** A receiver in a process of its own. */
export interface Process {
  readonly life: Life;
  readonly receiver: Receiver;
  /** Status, or undefined where the process died before the answer left. */
  readonly tell: (delivery: SignedDelivery) => Promise<number | undefined>;
  /** Stops, as an operator would have it, unless it is dead. */
  readonly end: () => Promise<void>;
}

/** One database file with its ledger, on which processes come and go. */
export interface Ground {
  readonly start: (options?: ProcessOptions) => Promise<Process>;
  /** A fresh delivery of the event under `key`. */
  readonly sign: (key: string) => Promise<SignedDelivery>;
  /** More than a lease passes, on the store's clock. */
  readonly leasePasses: () => void;
  /** So does the wait of a suspect that was charged once. */
  readonly firstWaitPasses: () => void;
  /** How often the event became `applied`, by a trigger in the database itself. */
  readonly completions: (key: string) => number;
  /** Effects: outside the store, and committed in transactions. */
  readonly effects: (key: string) => number;
  /** By the judge of processes that are truly killed. */
  readonly verdict: (key: string) => Verdict;
  /** Whether there is a record of it that is acknowledged. */
  readonly isSafe: (key: string) => boolean;
  readonly remove: () => void;
}

const SAFE = `SELECT 1 FROM webhook_row WHERE kind = 'record' AND data ->> 'acked' AND name = ?`;

const silent = (): void => {};
const QUIET = { debug: silent, info: silent, warn: silent, error: silent };

export async function ground(): Promise<Ground> {
  const { file, remove } = tempFile();
  const { privateJwk } = await sellerKey();
  const payload = samplePayloads().tool('completed');
  const { db, ...ledger } = await sqliteLedger(file);
  const outside: Line[] = [];
  let offsetMs = 0;
  const countOf = (rows: readonly { readonly key: string }[], key: string): number =>
    rows.filter((row) => row.key === key).length;
  return {
    start: async (options = {}) => {
      const life = lifeUntil(options.diesAt ?? Infinity);
      const store = mortalStore(file, life, () => offsetMs);
      const { breaks = (one: SqliteStore) => one } = options;
      const receiver = await receiverOf(options, { life, store: breaks(store), outside });
      await receiver.ready();
      life.begin();
      return processOf(receiver, life);
    },
    sign: (key) => {
      const body = { ...payload, task_id: key, idempotency_key: key };
      return signDelivery({ url: URL_GIVEN, key: privateJwk, body });
    },
    leasePasses: () => {
      offsetMs += LEASE_MS + 1;
    },
    firstWaitPasses: () => {
      offsetMs += 60_000;
    },
    completions: (key) => countOf(ledger.completions(), key),
    effects: (key) => countOf([...ledger.effects(), ...outside], key),
    verdict: (key) =>
      judge({
        owed: [{ name: key, keys: [key] }],
        completions: ledger.completions(),
        ledger: outside,
        effects: ledger.effects(),
      }),
    isSafe: (key) => db.prepare(SAFE).get(key) !== undefined,
    remove: () => {
      db.close();
      remove();
    },
  };
}

export async function receiverOf<Tx>(
  options: Omit<ProcessOptions, 'breaks'>,
  on: {
    readonly life: Life;
    readonly store: Store<Tx>;
    readonly outside: Line[];
    readonly write?: WriteEffect;
  },
): Promise<Receiver> {
  const { mode = 'inline', onPeek = silent, renews } = options;
  const { life, store, outside, write = writeBySqlite } = on;
  const { publicJwk } = await sellerKey();
  return createReceiver({
    publicUrl: URL_GIVEN,
    senders: async () => {
      await life.point('the sender is looked up');
      return [{ agentUrl: AGENT, pins: [publicJwk] }];
    },
    store: { ...store, peek: (sender, key) => (onPeek(), store.peek(sender, key)) },
    mode,
    leaseMs: LEASE_MS,
    advanced: { renewMs: renews ? 1 : LEASE_MS - 1 },
    logger: QUIET,
    handlers: { other: handlerOf(life, outside, options, write) },
  });
}

function handlerOf(
  life: Life,
  outside: Line[],
  { effect, fails, renews }: Omit<ProcessOptions, 'breaks'>,
  write: WriteEffect,
): Handler<Event> {
  const failing = (): void => {
    if (fails) throw new Error('the handler fails');
  };
  return async ({ idempotencyKey: key }, ctx) => {
    await life.point('before the effect');
    if (renews) await life.reached(/^after renew$/);
    if (effect === 'transaction') {
      await ctx.transaction((tx) => {
        const written = write(tx, key, life);
        return written ? written.then(failing) : failing();
      });
    } else outside.push({ what: 'effect', key, pid: process.pid, copy: '' });
    await life.point('after the effect');
    failing();
  };
}

export function processOf(receiver: Receiver, life: Life): Process {
  async function answer({ body, headers }: SignedDelivery): Promise<number> {
    const { response } = await receiver.verifyAndDispatch(body, headers);
    await life.point('before the reply');
    return response.status;
  }
  return {
    life,
    receiver,
    tell: (delivery) => Promise.race([answer(delivery), life.died.then(() => undefined)]),
    // It can die while it stops, too.
    end: async () => {
      if (!life.isOver()) await Promise.race([receiver.stop(), life.died]);
    },
  };
}

/** Runs `play` with a process that dies at its first point, at its second one, and so on, until one lives. */
export async function sweep(
  place: Pick<Ground, 'start'>,
  options: ProcessOptions,
  play: (mortal: Process, key: string, where: string) => Promise<void>,
): Promise<readonly string[]> {
  for (let diesAt = 0; ; diesAt += 1) {
    const mortal = await place.start({ ...options, diesAt });
    const key = `event-${String(diesAt).padStart(4, '0')}-of-a-sweep`;
    await play(mortal, key, `the process died at point ${diesAt}`);
    await mortal.end();
    const { passed } = mortal.life;
    if (!mortal.life.isOver()) return passed;
    if (passed.length !== diesAt + 1) throw new Error(`died at ${passed.length - 1}, not at ${diesAt}`);
  }
}

const BEGIN = ['BEGIN IMMEDIATE'];
const BEGUN = ['SAVEPOINT webhook'];
const ENDED = ['RELEASE webhook'];
const COMMIT = ['COMMIT'];

/** The points of one call of the store: around it, and around what begins and ends its transaction. */
export function pointsOf(call: string, within: readonly string[] = []): readonly string[] {
  const points = (of: readonly string[]): string[] => of.flatMap((sql) => [`before ${sql}`, `after ${sql}`]);
  const inside = within.length > 0 ? [...points(BEGUN), ...within, ...points(ENDED)] : [];
  return [`before ${call}`, ...points(BEGIN), ...inside, ...points(COMMIT), `after ${call}`];
}
