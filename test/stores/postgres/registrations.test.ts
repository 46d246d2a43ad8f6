import { expect, it } from 'vitest';
import { listSql } from '../../../src/stores/postgres/for-tests.ts';
import { ownSchema } from '../postgres-schemas.ts';

const at = ownSchema();

it('finds listed rows of registrations by index', async () => {
  const explain = async (sql: string, values: readonly (string | number | null)[]): Promise<string> => {
    const text = sql.replaceAll(/\$(\d)/g, (_, place: string) => {
      const value = values[Number(place) - 1];
      return typeof value === 'string' ? `'${value}'` : String(value ?? 'NULL');
    });
    return JSON.stringify(await at.sql(`EXPLAIN (FORMAT JSON) ${text}`));
  };
  const name = `"${at.schema}"`;
  const listed = await explain(listSql(name), ['W', null, null, 11, null, '']);
  expect(listed).toContain('webhook_row_pkey');
  expect(listed).not.toMatch(/Seq Scan[^{}]*webhook_row"/);
});
