import { Pool } from 'pg';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { migrate, postgresStore } from '../../../src/stores/postgres.ts';
import type { TestReceiver } from '../../receiver/setup.ts';
import { said } from '../../receiver/setup.ts';
import type { PostgresServer } from '../../support/postgres.ts';
import { startServer, startStandby } from '../../support/postgres.ts';
import type { Event } from '../faults/at-door.ts';
import { delivered, doorOf, newEvent } from '../faults/at-door.ts';
import { LONG } from '../form.ts';
import { print } from './figures.ts';

/** Of each mode and at each step. */
const EVENTS = LONG ? 500 : 20;

let primary: PostgresServer;
let standby: PostgresServer;
const pools: Pool[] = [];
beforeAll(async () => {
  primary = await startServer();
  await migrate(poolOf(primary.url));
  standby = await startStandby(primary);
});
afterAll(async () => {
  for (const pool of pools) await pool.end();
  standby.remove();
  primary.remove();
});

function poolOf(url: string): Pool {
  const pool = new Pool({ connectionString: url, max: 4 });
  pool.on('error', () => undefined);
  pools.push(pool);
  return pool;
}

const KEYS = "SELECT id AS key FROM proto_webhooks.webhook_row WHERE kind = 'r'";
const CANCEL =
  "SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep' AND pid <> pg_backend_pid()";

it(
  'failover settings: with cancelled waits for the standby, or its names removed, nothing is answered 200; earlier 200s survive the primary',
  async () => {
    const owner = poolOf(primary.url);
    const set = async (names: string): Promise<void> => {
      await owner.query(`ALTER SYSTEM SET synchronous_standby_names = '${names}'`);
      await owner.query('SELECT pg_reload_conf()');
    };
    await set('*');
    const receivers = await Promise.all(
      (['inline', 'inbox'] as const).map((mode) =>
        doorOf(postgresStore({ pool: poolOf(primary.url), timeoutMs: 60_000 }), {
          mode,
          durability: { require: 'failover' },
        }),
      ),
    );
    const acknowledged: Event[] = [];
    let faults = 0;
    const answers = (at: TestReceiver): Promise<string[]> =>
      Promise.all(
        Array.from({ length: EVENTS }, async () => {
          const event = newEvent();
          const outcome = await at.deliver(event);
          if (outcome.response.status === 503) faults += 1;
          else acknowledged.push(event);
          return said(outcome);
        }),
      );
    for (const at of receivers) {
      await delivered(at, newEvent());
      expect(new Set(await answers(at))).toEqual(new Set(['accepted 200']));
    }

    standby.crash();
    for (const at of receivers) {
      const over = new AbortController();
      const told = answers(at).finally(() => over.abort());
      // Some wait for others before they come to their commit.
      while (!over.signal.aborted) await owner.query(`${CANCEL}; SELECT pg_sleep(0.02)`);
      expect(new Set(await told)).toEqual(new Set(['unavailable not_durable 503']));
    }
    await set('');
    for (const at of receivers) {
      // A connection reads its settings before its next statement.
      await expect.poll(async () => said(await at.deliver(newEvent()))).toBe('unavailable not_durable 503');
      expect(new Set(await answers(at))).toEqual(new Set(['unavailable not_durable 503']));
      expect(at.alarms.map(({ code }) => code)).toContain('durability_lowered');
      await at.receiver.stop();
    }

    primary.crash();
    standby.start();
    const promoted = poolOf(standby.url);
    await promoted.query('SELECT pg_promote()');
    const kept = new Set((await promoted.query<{ key: string }>(KEYS)).rows.map(({ key }) => key));
    const lost = acknowledged.filter((event) => !kept.has(event.idempotency_key)).length;
    print({ run: 'failover watched', events: acknowledged.length, faults, lost, twice: 0, dead: 0 });
    expect({ lost, acknowledged: acknowledged.length }).toEqual({ lost: 0, acknowledged: 2 * EVENTS });
  },
  LONG ? 600_000 : 120_000,
);
