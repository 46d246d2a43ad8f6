import { expect, it } from 'vitest';
import { listSql, turnSql, turnTexts } from '../../../src/stores/postgres/for-tests.ts';
import { ownSchema } from '../postgres-schemas.ts';

const at = ownSchema();

it('finds due and listed rows of registrations by index', async () => {
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
