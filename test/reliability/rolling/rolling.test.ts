import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { Agent } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Pool } from 'pg';
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import { signDelivery } from '../../../src/sender/sign.ts';
import { sellerKey } from '../../receiver/setup.ts';
import { ON_DISK, startServer } from '../../support/redis.ts';
import { sharedPostgres } from '../../support/shared-postgres.ts';
import { tempFile } from '../../stores/sqlite-files.ts';
import { LONG } from '../form.ts';
import { owedOf, placesOf, trafficOf } from '../kill/traffic.ts';
import type { EffectRow } from '../processes/backends.ts';
import type { Build } from '../processes/build.ts';
import { buildIn, OWN } from '../processes/build.ts';
import type { Fleet } from '../processes/fleet.ts';
import { startFleet } from '../processes/fleet.ts';
import { type FinalState, judge, KEPT, type Verdict } from '../processes/judge.ts';
import { ledgerReader } from '../processes/ledger.ts';
import { post } from '../processes/post.ts';
import { randomOf } from '../processes/random.ts';
import { AGENT_URL, PUBLIC_URL, sellerOf } from '../processes/seller.ts';
import { inTurns } from '../processes/strikes.ts';
import type { Kind, OpenStore, StoreLocation } from '../processes/stores.ts';
import { openStore } from '../processes/stores.ts';
import type { Mode } from '../processes/wire.ts';
import { versionBefore } from './before.ts';

const FORM = LONG ? { events: 10_000, seed: Date.now() % 2 ** 31 } : { events: 400, seed: 20_260_103 };
const DEADLINE_MS = LONG ? 1_800_000 : 300_000;

/** A backend that the version before has made. */
interface Made {
  readonly place: StoreLocation;
  /** What a deploy does beside starting the new processes. */
  readonly upgrade: () => Promise<unknown>;
  /** What `ctx.transaction` has committed. */
  readonly effects: () => Promise<readonly EffectRow[]>;
  readonly remove: () => Promise<void>;
}

interface Rolling {
  readonly make: (before: Build) => Promise<Made>;
}

/** MySQL had no store then. */
type Older = Exclude<Kind, 'MySQL'>;

const KINDS: Readonly<Record<Older, Rolling>> = {
  Postgres: {
    make: async ({ migrate }) => {
      const url = await sharedPostgres(inject('shared'));
      const schema = `test_${randomBytes(8).toString('hex')}`;
      const pool = new Pool({ connectionString: url, max: 2, options: `-c search_path=${schema}` });
      await migrate(pool, { schema });
      await pool.query('CREATE TABLE effect (key text NOT NULL, copy text NOT NULL)');
      return {
        place: { kind: 'Postgres', url, schema },
        upgrade: () => OWN.migrate(pool, { schema }),
        effects: async () => (await pool.query<EffectRow>('SELECT key, copy FROM effect')).rows,
        remove: async () => {
          await pool.query(`DROP SCHEMA ${schema} CASCADE`);
          await pool.end();
        },
      };
    },
  },
  SQLite: {
    make: async ({ sqliteStore }) => {
      const { file, remove } = tempFile();
      const store = sqliteStore(file);
      await store.open();
      await store.close();
      return {
        place: { kind: 'SQLite', file },
        upgrade: async () => undefined,
        effects: async () => [],
        remove: async () => remove(),
      };
    },
  },
  Redis: {
    make: async () => {
      const { port, remove } = await startServer(ON_DISK);
      return {
        place: { kind: 'Redis', port },
        upgrade: async () => undefined,
        effects: async () => [],
        remove: async () => remove(),
      };
    },
  },
};

let before: ReturnType<typeof versionBefore>;
beforeAll(() => {
  before = versionBefore();
});
afterAll(() => before.remove());

/** What has not come to its end yet. */
async function drained({ store }: OpenStore, signal: AbortSignal): Promise<void> {
  for (const state of ['queued', 'leased', 'queued'] as const) {
    for (;;) {
      const [record] = (await store.inbox.list({ state, limit: 1 })).records;
      if (!record) break;
      if (signal.aborted) throw new Error(`never done: ${JSON.stringify(record)}`);
      await sleep(20);
    }
  }
}

interface Ended {
  readonly acknowledged: number;
  /** Completions are what stores told: the old schema has no ledger. In which order they were written down says nothing. */
  readonly verdict: Omit<Verdict, 'backwards'>;
  /** What doors of before answered once the schema was the new one. */
  readonly late: readonly (number | undefined)[];
  readonly unexpected: readonly string[];
}

/** A third of the load on the version before, then the upgrade under load, and the rest with both versions at the doors. */
async function deploy(kind: Older, mode: Mode): Promise<Ended> {
  const { make } = KINDS[kind];
  const made = await make(await buildIn(before.build));
  const folder = mkdtempSync(join(tmpdir(), 'proto-webhooks-rolling-'));
  const ledger = join(folder, 'ledger');
  const { publicJwk, privateJwk } = await sellerKey();
  const random = randomOf(FORM.seed);
  const signal = AbortSignal.timeout(DEADLINE_MS);
  const urls = { agentUrl: AGENT_URL, publicUrl: PUBLIC_URL, publicJwk };
  const told = { place: made.place, mode, ledger, leaseMs: 2000, waitMs: 2000, ...urls };
  const cache = join(inject('shared'), 'compiled');
  const roles = [mode === 'inline' ? 'door' : 'both', 'door'] as const;
  const old = startFleet({ ...told, build: before.build }, roles, random, cache);
  const fleets: Fleet[] = [old];
  const seller = sellerOf({
    fleet: { door: (until) => random.pick(fleets).door(until) },
    privateJwk,
    random,
    timeoutMs: 5000,
    signal,
  });
  const reader = ledgerReader(ledger);
  try {
    await old.whole(signal);
    const hasTransactions = kind === 'Postgres';
    const none = { pauses: 0, deaths: 0, failures: 0 };
    const { deliveries, events } = trafficOf(
      { ...FORM, ...none, hasTransactions, hasDuplicates: true },
      random,
    );
    const acknowledged = new Set<string>();
    const third = Math.floor(events.length / 3);
    const upgrade = async (): Promise<void> => {
      while (acknowledged.size < third) await sleep(5, undefined, { signal });
      await made.upgrade();
      const fresh = startFleet(told, roles, random, cache);
      fleets.push(fresh);
      await fresh.whole(signal);
    };
    const upgraded = upgrade();
    const sold = inTurns(deliveries, 16, async ({ event, copy }) => {
      // What is left is for both versions.
      if (acknowledged.size >= 2 * third) await upgraded;
      if (await seller.deliver(event.payload(copy), 'either')) acknowledged.add(event.key);
    });
    await Promise.all([upgraded, sold]);
    const late: (number | undefined)[] = [];
    const agent = new Agent();
    for (const { payload } of events.slice(0, 5)) {
      const delivery = await signDelivery({ url: PUBLIC_URL, key: privateJwk, body: payload(1) });
      const { port } = await old.door(signal);
      late.push((await post(delivery, { agent, port, timeoutMs: 30_000, signal })).status);
    }
    agent.destroy();
    await old.stop();
    const open = openStore(made.place);
    await open.store.open();
    await drained(open, signal);
    const states = new Map<string, FinalState>();
    for (const { key } of events) {
      states.set(key, (await open.store.inbox.inspect(AGENT_URL, key))?.state ?? 'absent');
    }
    await open.store.close();
    await open.end();
    for (const fleet of fleets.slice(1)) await fleet.stop();
    const { backwards: _unknown, ...verdict } = judge({
      owed: owedOf(events, acknowledged, states),
      places: placesOf(events),
      completions: reader.read().filter((line) => line.what === 'told'),
      ledger: reader.read(),
      effects: await made.effects(),
    });
    return {
      acknowledged: acknowledged.size,
      verdict,
      late,
      unexpected: seller.unexpected,
    };
  } finally {
    for (const fleet of fleets) fleet.destroy();
    seller.close();
    reader.close();
    await made.remove();
    rmSync(folder, { recursive: true, force: true });
  }
}

describe.each(Object.entries(KINDS))('a deploy under load, %s', (kind) => {
  it.each(['inline', 'inbox'] as const)(
    `%s: nothing is lost or completed twice; processes of the previous version answer 503`,
    async (mode) => {
      const ended = await deploy(kind as Older, mode);
      expect(ended.unexpected).toEqual([]);
      expect(ended.acknowledged).toBe(FORM.events);
      const { backwards: _unknown, ...kept } = KEPT;
      expect(ended.verdict).toEqual(kept);
      expect(new Set(ended.late)).toEqual(new Set([503]));
    },
    DEADLINE_MS + 60_000,
  );
});
