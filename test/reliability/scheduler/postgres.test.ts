import { afterAll, beforeAll, describe, inject, it } from 'vitest';
import type { TestSchema } from '../../stores/postgres-schemas.ts';
import { postgresHarness, testSchema } from '../../stores/postgres-schemas.ts';
import { sharedPostgres } from '../../support/shared-postgres.ts';
import { expectInvariants, SEED } from './explore.ts';

describe('calls of several processes in any order', () => {
  let at: TestSchema;
  beforeAll(async () => {
    at = await testSchema(await sharedPostgres(inject('shared')));
  });
  afterAll(() => at.drop());

  it(
    `Postgres keeps the invariants (seed ${SEED})`,
    () => expectInvariants(() => postgresHarness(at), 80),
    3_600_000,
  );
});
