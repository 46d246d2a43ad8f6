import { describe, expect, it } from 'vitest';
import type { PgClient } from '../../src/stores/postgres.ts';
import { ownSchema } from '../stores/postgres-schemas.ts';
import { testReceiver, payloads, said, type TestReceiverOptions } from './setup.ts';

const at = ownSchema(2);

const stuck = async (): Promise<void> => {
  await new Promise(() => {});
};
const open = (
  handler: NonNullable<TestReceiverOptions['handler']>,
  more: Partial<TestReceiverOptions> = {},
) => testReceiver({ store: at.store(), handlerDeadlineMs: 50, advanced: { waitMs: 50 }, handler, ...more });
const inTransaction = async (): Promise<number> => {
  const rows = await at.sql(
    "SELECT count(*)::int AS n FROM pg_stat_activity WHERE state = 'idle in transaction' AND query LIKE $1",
    [`%${at.schema}%`],
  );
  return Number(rows[0]?.['n']);
};

describe('ctx.transaction on Postgres with a function that never ends', () => {
  it('gives its place to the next transaction after maxRunMs, and stop() ends', async () => {
    let first = true;
    const { deliver, receiver, alarms } = await open(
      async (_, ctx) => {
        const ends = !first;
        first = false;
        await ctx.transaction(async (tx) => {
          await (ends ? (tx as PgClient).query('SELECT 1') : stuck());
        });
      },
      { advanced: { maxRunMs: 500 }, handlerDeadlineMs: 250 },
    );
    expect(said(await deliver(payloads.tool('completed')))).toBe('unavailable handler_timeout 503');
    await expect.poll(async () => said(await deliver(payloads.tool('completed')))).toBe('accepted 200');
    expect(alarms.map(({ code }) => code)).toEqual(['store_created']);
    // Those that came before there was a place may be under way.
    await expect.poll(inTransaction).toBe(0);
    await receiver.stop();
  });

  it('does not block stop()', async () => {
    const { deliver, receiver } = await open((_, ctx) => ctx.transaction(stuck), { leaseMs: 300 });
    expect(said(await deliver(payloads.tool('completed')))).toBe('unavailable handler_timeout 503');
    await receiver.stop();
    await expect.poll(inTransaction).toBe(0);
  });

  it('refuses one transaction inside another at once, and the event is not completed', async () => {
    const { deliver, receiver } = await open(
      (_, ctx) => ctx.transaction(() => ctx.transaction((tx) => (tx as PgClient).query('SELECT 1'))),
      { handlerDeadlineMs: 60_000 },
    );
    expect(said(await deliver(payloads.tool('completed')))).toBe('unavailable handler_failed 503');
    await receiver.stop();
  });
});
