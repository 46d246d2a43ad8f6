import { Pool } from 'pg';
import { afterEach, beforeEach, expect, it } from 'vitest';
import type { Store } from '../../../src/index.ts';
import { migrate, postgresStore } from '../../../src/stores/postgres.ts';
import type { TestReceiver } from '../../receiver/setup.ts';
import { said } from '../../receiver/setup.ts';
import type { PostgresServer } from '../../support/postgres.ts';
import { startServer, startStandby } from '../../support/postgres.ts';
import type { Event } from '../faults/at-door.ts';
import { delivered, doorOf, LEASE_MS, newEvent } from '../faults/at-door.ts';
import { LONG } from '../form.ts';
import { storeWith } from '../processes/breaks.ts';
import type { Mode } from '../processes/wire.ts';
import { print } from './figures.ts';

/** Of each mode and at each step. */
const EVENTS = LONG ? 500 : 20;
const MODES = ['inline', 'inbox'] as const;

let primary: PostgresServer;
let standby: PostgresServer;
const pools: Pool[] = [];

function poolOf(url: string): Pool {
  const pool = new Pool({ connectionString: url, max: 4 });
  pool.on('error', () => undefined);
  pools.push(pool);
  return pool;
}

/** Of each test: it leaves none that another one can use. */
beforeEach(async () => {
  primary = await startServer();
  await migrate(poolOf(primary.url));
  standby = await startStandby(primary);
});
afterEach(async () => {
  for (const pool of pools.splice(0)) await pool.end();
  standby.remove();
  primary.remove();
});

const STATES =
  "SELECT id AS key, data::json ->> 'state' AS state FROM proto_webhooks.webhook_row WHERE kind = 'r'";
const CANCEL =
  "SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep' AND pid <> pg_backend_pid()";

const setNames = async (owner: Pool, names: string): Promise<void> => {
  await owner.query(`ALTER SYSTEM SET synchronous_standby_names = '${names}'`);
  await owner.query('SELECT pg_reload_conf()');
};

const doorAt = (mode: Mode, store: Store): Promise<TestReceiver> =>
  doorOf(store, { mode, durability: { require: 'failover' } });
const storeAt = (url: string): ReturnType<typeof postgresStore> =>
  postgresStore({ pool: poolOf(url), timeoutMs: 60_000 });

/** Events that were answered 200, by the mode of their receiver. */
type Acknowledged = Readonly<Record<Mode, Event[]>>;

interface Outcome {
  /** Acknowledged, and not there; of mode inbox also: never handled. */
  readonly lost: number;
  /** Acknowledged inline, and not completed. */
  readonly unapplied: number;
  /** Runs of handlers on the promoted server, of what was handled before, or beyond the first. */
  readonly twice: number;
}

/** Promotes the standby, delivers all that was acknowledged once more, has a worker handle the rest, and counts. */
async function afterFailover(acknowledged: Acknowledged): Promise<Outcome> {
  primary.crash();
  standby.start();
  const promoted = poolOf(standby.url);
  await promoted.query('SELECT pg_promote(false)');
  // What it has yet to replay may cancel a statement.
  const isReplica = (): Promise<unknown> =>
    promoted.query<{ is: boolean }>('SELECT pg_is_in_recovery() AS is').then(
      ({ rows: [row] }) => row?.is,
      () => undefined,
    );
  await expect.poll(isReplica, { timeout: 60_000 }).toBe(false);
  const { rows } = await promoted.query<{ key: string; state: string }>(STATES);
  const states = new Map(rows.map(({ key, state }) => [key, state]));
  // No lease of the primary's time holds up a handler that is to run again.
  const store = (): Store =>
    postgresStore({ pool: poolOf(standby.url), clockOffsetMs: () => 2 * LEASE_MS, timeoutMs: 60_000 });
  const runs = { inline: [] as string[], inbox: [] as string[] };
  for (const mode of MODES) {
    const at = await doorOf(store(), { mode, worker: { pollMs: 20 } });
    const keys = new Set(acknowledged[mode].map((event) => event.idempotency_key));
    for (const event of acknowledged[mode]) await delivered(at, event);
    const handled = (): string[] =>
      at.seen.map(({ event }) => event.idempotencyKey).filter((key) => keys.has(key));
    if (mode === 'inbox') {
      const working = at.receiver.start();
      await expect.poll(() => new Set(handled()).size, { timeout: 60_000 }).toBe(keys.size);
      await at.receiver.stop();
      await working;
    } else {
      await at.receiver.stop();
    }
    runs[mode].push(...handled());
  }
  const stateOf = (event: Event): string | undefined => states.get(event.idempotency_key);
  const { inline, inbox } = acknowledged;
  return {
    lost: [...inline, ...inbox].filter((event) => stateOf(event) === undefined).length,
    unapplied: inline.filter((event) => stateOf(event) !== 'applied').length,
    twice: runs.inline.length + runs.inbox.length - new Set(runs.inbox).size,
  };
}

const KEPT: Outcome = { lost: 0, unapplied: 0, twice: 0 };

it(
  'failover settings: with cancelled waits for the standby, or its names removed, nothing is answered 200; earlier 200s survive the primary',
  async () => {
    const owner = poolOf(primary.url);
    await setNames(owner, '*');
    const doors = await Promise.all(
      MODES.map(async (mode) => ({ mode, at: await doorAt(mode, storeAt(primary.url)) })),
    );
    type Door = (typeof doors)[number];
    const acknowledged: Acknowledged = { inline: [], inbox: [] };
    let faults = 0;
    const answers = ({ at, mode }: Door): Promise<string[]> =>
      Promise.all(
        Array.from({ length: EVENTS }, async () => {
          const event = newEvent();
          const outcome = await at.deliver(event);
          if (outcome.response.status === 503) faults += 1;
          else acknowledged[mode].push(event);
          return said(outcome);
        }),
      );
    /** Some wait for others before they come to their commit. */
    const cancelling = async (told: Promise<unknown>): Promise<void> => {
      const over = new AbortController();
      void told.finally(() => over.abort()).catch(() => undefined);
      while (!over.signal.aborted) await owner.query(`${CANCEL}; SELECT pg_sleep(0.02)`);
    };
    for (const door of doors) {
      await delivered(door.at, newEvent());
      expect(new Set(await answers(door))).toEqual(new Set(['accepted 200']));
    }

    // The standby dies amid answers: what it has not got was not to be answered 200.
    const count = (): number => acknowledged.inline.length + acknowledged.inbox.length;
    const amid = Promise.all(doors.map(answers));
    while (count() < 2.5 * EVENTS) await new Promise((resolve) => setTimeout(resolve, 1));
    standby.crash();
    await cancelling(amid);
    const fewest = count();
    expect(['accepted 200', 'unavailable not_durable 503']).toEqual(
      expect.arrayContaining([...new Set((await amid).flat())]),
    );
    for (const door of doors) {
      const told = answers(door);
      await cancelling(told);
      expect(new Set(await told)).toEqual(new Set(['unavailable not_durable 503']));
    }
    await setNames(owner, '');
    for (const door of doors) {
      const { at } = door;
      // A connection reads its settings before its next statement.
      await expect.poll(async () => said(await at.deliver(newEvent()))).toBe('unavailable not_durable 503');
      expect(new Set(await answers(door))).toEqual(new Set(['unavailable not_durable 503']));
      expect(at.alarms.map(({ code }) => code)).toContain('durability_lowered');
      await at.receiver.stop();
    }
    expect(count()).toBe(fewest);

    const outcome = await afterFailover(acknowledged);
    print({ run: 'failover watched', events: count(), faults, ...outcome });
    expect(outcome).toEqual(KEPT);
  },
  LONG ? 600_000 : 120_000,
);

it('the judge of a failover catches a store that says that an event is completed, and the standby has not got that', async () => {
  await setNames(poolOf(primary.url), '*');
  const acknowledged: Acknowledged = { inline: [], inbox: [] };
  const store = storeWith(storeAt(primary.url), { complete: async () => 'done' });
  const at = await doorAt('inline', store);
  await delivered(at, newEvent());
  for (let n = 0; n < 5; n += 1) {
    const event = newEvent();
    expect(said(await at.deliver(event))).toBe('accepted 200');
    acknowledged.inline.push(event);
  }
  await at.receiver.stop();
  standby.crash();
  expect(await afterFailover(acknowledged)).toEqual({ ...KEPT, unapplied: 5, twice: 5 });
}, 120_000);
