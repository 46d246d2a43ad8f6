import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { Agent } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { setTimeout as sleep } from 'node:timers/promises';
import { createPool } from 'mysql2/promise';
import { Pool } from 'pg';
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import { signDelivery } from '../../../src/sender/sign.ts';
import { sellerKey } from '../../receiver/setup.ts';
import { ON_DISK, startServer } from '../../support/redis.ts';
import { INSTALL_MS } from '../../support/packed.ts';
import { sharedMariadb } from '../../support/shared-mariadb.ts';
import { sharedPostgres } from '../../support/shared-postgres.ts';
import { newName } from '../../stores/mysql-databases.ts';
import { tempFile } from '../../stores/sqlite-files.ts';
import { LONG } from '../form.ts';
import { owedOf, type Planned, placesOf, trafficOf } from '../kill/traffic.ts';
import type { EffectRow } from '../processes/backends.ts';
import type { Build } from '../processes/build.ts';
import { buildIn } from '../processes/build.ts';
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
import { BEFORE, twoBuilds } from './builds.ts';

const FORM = LONG ? { events: 10_000, seed: Date.now() % 2 ** 31 } : { events: 240, seed: 20_260_103 };
/** Deliveries that are under way at once, so that no step of the deploy waits for a delivery that waits for it. */
const LANES = 16;
const DEADLINE_MS = LONG ? 1_800_000 : 300_000;

/** A backend that the build before has made. */
interface Made {
  readonly place: StoreLocation;
  /** What a deploy does beside starting the new processes. */
  readonly upgrade: (after: Build) => Promise<unknown>;
  /** What `ctx.transaction` has committed. */
  readonly effects: () => Promise<readonly EffectRow[]>;
  readonly remove: () => Promise<unknown>;
}

const KINDS: Readonly<Record<Kind, (before: Build) => Promise<Made>>> = {
  Postgres: async ({ migrate }) => {
    const url = await sharedPostgres(inject('shared'));
    const schema = `test_${randomBytes(8).toString('hex')}`;
    const pool = new Pool({ connectionString: url, max: 2, options: `-c search_path=${schema}` });
    await migrate(pool, { schema });
    await pool.query('CREATE TABLE effect (key text NOT NULL, copy text NOT NULL)');
    return {
      place: { kind: 'Postgres', url, schema },
      upgrade: (after) => after.migrate(pool, { schema }),
      effects: async () => (await pool.query<EffectRow>('SELECT key, copy FROM effect')).rows,
      remove: async () => {
        await pool.query(`DROP SCHEMA ${schema} CASCADE`);
        await pool.end();
      },
    };
  },
  MySQL: async ({ migrateMysql }) => {
    const server = await sharedMariadb(inject('shared'));
    const database = newName();
    const maker = createPool({ uri: server, connectionLimit: 1 });
    await maker.query(`CREATE DATABASE ${database}`);
    const url = `${server}/${database}`;
    const pool = createPool({ uri: url, connectionLimit: 2 });
    await migrateMysql(pool);
    await pool.query('CREATE TABLE effect (event VARCHAR(64) NOT NULL, copy VARCHAR(64) NOT NULL)');
    return {
      place: { kind: 'MySQL', url },
      upgrade: (after) => after.migrateMysql(pool),
      effects: async () =>
        (await pool.query('SELECT event AS `key`, copy FROM effect'))[0] as unknown as EffectRow[],
      remove: async () => {
        await maker.query(`DROP DATABASE ${database}`);
        await Promise.all([maker.end(), pool.end()]);
      },
    };
  },
  SQLite: async ({ sqliteStore }) => {
    const { file, remove } = tempFile();
    const store = sqliteStore(file);
    await store.open();
    await store.close();
    const db = new DatabaseSync(file);
    db.exec('CREATE TABLE effect (key TEXT NOT NULL, copy TEXT NOT NULL)');
    return {
      place: { kind: 'SQLite', file },
      upgrade: async () => undefined,
      effects: async () => db.prepare('SELECT key, copy FROM effect').all() as unknown as EffectRow[],
      remove: async () => {
        db.close();
        remove();
      },
    };
  },
  Redis: async () => {
    const { port, remove } = await startServer(ON_DISK);
    return {
      place: { kind: 'Redis', port },
      upgrade: async () => undefined,
      effects: async () => [],
      remove,
    };
  },
};

let builds: Awaited<ReturnType<typeof twoBuilds>>;
beforeAll(async () => {
  builds = await twoBuilds();
}, INSTALL_MS);
afterAll(() => {
  builds.before.remove();
  builds.after.remove();
});

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
  /** Completions are what stores told: a ledger in the database would be of one build's schema. Their order says nothing. */
  readonly verdict: Omit<Verdict, 'backwards'>;
  /** What doors of the build before answered to copies of events once the new processes served. */
  readonly late: readonly (number | undefined)[];
  readonly unexpected: readonly string[];
}

/**
 * A third of the load on the build before, then the deploy under load: the next third with both builds at the doors, the last
 * one on the new build alone, while the old processes stop.
 */
async function deploy(kind: Kind, mode: Mode): Promise<Ended> {
  const { before, after } = builds;
  const isRaised = BEFORE.raised.includes(kind);
  const [older, newer] = await Promise.all([buildIn(before.dist), buildIn(after.dist)]);
  const made = await KINDS[kind](older);
  const folder = mkdtempSync(join(tmpdir(), 'proto-webhooks-rolling-'));
  const ledger = join(folder, 'ledger');
  const { publicJwk, privateJwk } = await sellerKey();
  const random = randomOf(FORM.seed);
  const signal = AbortSignal.timeout(DEADLINE_MS);
  const urls = { agentUrl: AGENT_URL, publicUrl: PUBLIC_URL, publicJwk };
  const told = { place: made.place, mode, ledger, leaseMs: 2000, waitMs: 2000, ...urls };
  const cache = join(inject('shared'), 'compiled');
  const roles = [mode === 'inline' ? 'door' : 'both', 'door'] as const;
  const old = startFleet({ ...told, build: before.dist }, roles, random, cache);
  const fresh: Fleet[] = [];
  /** Which fleets deliveries go to. */
  let serving: readonly Fleet[] = [old];
  const seller = sellerOf({
    fleet: { door: (until) => random.pick(serving).door(until) },
    privateJwk,
    random,
    timeoutMs: 5000,
    signal,
  });
  const reader = ledgerReader(ledger);
  try {
    await old.whole(signal);
    const none = { pauses: 0, deaths: 0, failures: 0 };
    const { deliveries, events } = trafficOf(
      { ...FORM, ...none, hasTransactions: kind !== 'Redis', hasDuplicates: true },
      random,
    );
    const acknowledged = new Set<string>();
    const third = Math.floor(events.length / 3);
    const acknowledging = async (most: number): Promise<void> => {
      while (acknowledged.size < most) await sleep(5, undefined, { signal });
    };
    const late: (number | undefined)[] = [];
    const rollOut = async (): Promise<void> => {
      await acknowledging(third);
      await made.upgrade(newer);
      const fleet = startFleet({ ...told, build: after.dist }, roles, random, cache);
      fresh.push(fleet);
      await fleet.whole(signal);
      serving = [old, fleet];
    };
    const switchOver = async (): Promise<void> => {
      await acknowledging(2 * third);
      const agent = new Agent();
      const copies = events.filter((event) => acknowledged.has(event.key)).slice(0, 5);
      const answerTo = async ({ payload }: Planned): Promise<number | undefined> => {
        const delivery = await signDelivery({ url: PUBLIC_URL, key: privateJwk, body: payload(1) });
        const { port } = await old.door(signal);
        return (await post(delivery, { agent, port, timeoutMs: 30_000, signal })).status;
      };
      const answers = async (): Promise<void> => {
        late.length = 0;
        for (const event of copies) late.push(await answerTo(event));
      };
      await answers();
      // Until they look at the version again old processes work on.
      const workOn = (): boolean => isRaised && late.some((status) => status !== 503);
      while (workOn()) {
        await sleep(100, undefined, { signal });
        await answers();
      }
      agent.destroy();
      serving = fresh;
    };
    const rolledOut = rollOut();
    const switched = rolledOut.then(switchOver);
    const stopped = switched.then(() => old.stop());
    const sold = inTurns(deliveries, LANES, async ({ event, copy }) => {
      // What is left is for both builds; then for the new one.
      if (acknowledged.size >= third) await rolledOut;
      if (acknowledged.size >= 2 * third) await switched;
      if (await seller.deliver(event.payload(copy), 'either')) acknowledged.add(event.key);
    });
    await Promise.all([stopped, sold]);
    const open = openStore(made.place, newer);
    await open.store.open();
    await drained(open, signal);
    const states = new Map<string, FinalState>();
    for (const { key } of events) {
      states.set(key, (await open.store.inbox.inspect(AGENT_URL, key))?.state ?? 'absent');
    }
    await open.store.close();
    await open.end();
    for (const fleet of fresh) await fleet.stop();
    const { backwards: _unknown, ...verdict } = judge({
      owed: owedOf(events, acknowledged, states),
      places: placesOf(events),
      completions: reader.read().filter((line) => line.what === 'told'),
      ledger: reader.read(),
      effects: await made.effects(),
    });
    return { acknowledged: acknowledged.size, verdict, late, unexpected: seller.unexpected };
  } finally {
    for (const fleet of [old, ...fresh]) fleet.destroy();
    seller.close();
    reader.close();
    await made.remove();
    rmSync(folder, { recursive: true, force: true });
  }
}

const MODES: readonly Mode[] = ['inline', 'inbox'];

/** The others differ from one of these in the store's statements alone, or in the mode alone. */
const FEW: readonly (readonly [Kind, Mode])[] = [
  ['Postgres', 'inline'],
  ['MySQL', 'inbox'],
  ['SQLite', 'inbox'],
  ['Redis', 'inline'],
];
const ALL = (Object.keys(KINDS) as Kind[]).flatMap((kind) => MODES.map((mode) => [kind, mode] as const));

describe('a deploy under load', () => {
  it.each(LONG ? ALL : FEW)(
    '%s, %s: nothing is lost or completed twice, and old processes answer as their schema version says',
    async (kind, mode) => {
      const ended = await deploy(kind, mode);
      expect(ended.unexpected).toEqual([]);
      expect(ended.acknowledged).toBe(FORM.events);
      const { backwards: _unknown, ...kept } = KEPT;
      expect(ended.verdict).toEqual(kept);
      const answer = BEFORE.raised.includes(kind) ? 503 : 200;
      expect(ended.late).toEqual([answer, answer, answer, answer, answer]);
    },
    DEADLINE_MS + 60_000,
  );
});
