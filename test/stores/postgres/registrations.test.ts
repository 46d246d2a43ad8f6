import * as fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { memoryStore } from '../../../src/stores/memory.ts';
import { listSql, turnSql, turnTexts } from '../../../src/stores/postgres/backend.ts';
import { expectCountsRight, HANDED_CLOCK, ownSchema } from '../postgres-schemas.ts';
import { expectSameRegistrations, registrationCalls } from '../registration-calls.ts';

const START_MS = 1_767_225_600_000;

describe('rows of registrations on Postgres', () => {
  const at = ownSchema();
  beforeEach(() => {
    vi.useFakeTimers({ toFake: ['Date', 'performance'], now: 0 });
  });
  afterEach(() => {
    vi.useRealTimers();
  });

  it('are found by index: those that are due by that of waiting records, listed ones by their names', async () => {
    const explain = async (sql: string, values: readonly (string | number | null)[]): Promise<string> => {
      const text = sql.replaceAll(/\$(\d)/g, (_, place: string) => {
        const value = values[Number(place) - 1];
        return typeof value === 'string'
          ? `E'${value.replaceAll('\u0001', String.raw`\x01`)}'`
          : String(value ?? 'NULL');
      });
      return JSON.stringify(await at.sql(`EXPLAIN (FORMAT JSON) ${text}`));
    };
    const name = `"${at.schema}"`;
    const due = await explain(turnSql(name), [0, 'W', ...turnTexts('watch'), 11, '']);
    expect(due.match(/webhook_row_waits/g)?.length).toBeGreaterThanOrEqual(2);
    expect(due).not.toMatch(/Seq Scan[^{}]*webhook_row"/);
    const listed = await explain(listSql(name), ['W', null, null, 11, null, '']);
    expect(listed).toContain('webhook_row_pkey');
    expect(listed).not.toMatch(/Seq Scan[^{}]*webhook_row"/);
  });

  it('are the same as in memory, by two handles, and counted', async () => {
    await at.sql(HANDED_CLOCK);
    let last = Promise.resolve();
    await fc.assert(
      fc.asyncProperty(registrationCalls, (calls) => {
        const run = async (): Promise<void> => {
          await at.clear();
          let offsetMs = START_MS;
          const clockOffsetMs = (): number => offsetMs;
          const stores = at.pools.map((pool) => at.store(pool, { clockOffsetMs }));
          for (const store of stores) await store.open();
          const memory = memoryStore({ clockOffsetMs });
          await expectSameRegistrations(calls, stores, memory, (ms) => (offsetMs += ms));
          await expectCountsRight(at);
          for (const store of stores) await store.close();
        };
        return (last = run());
      }),
      { numRuns: 40, interruptAfterTimeLimit: 20_000 },
    );
    await last;
  });
});
