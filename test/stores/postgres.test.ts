import { afterAll, beforeAll, describe, inject, it } from 'vitest';
import { describeStoreContract } from '../../src/testing/store-contract.ts';
import { sharedPostgres } from '../support/shared-postgres.ts';
import type { TestSchema } from './postgres-schemas.ts';
import { postgresHarness, testSchema } from './postgres-schemas.ts';

describe('postgresStore', () => {
  let at: TestSchema | undefined;
  beforeAll(async () => {
    at = await testSchema(await sharedPostgres(inject('shared')));
  });
  afterAll(() => at?.drop());

  const harness = (): ReturnType<typeof postgresHarness> => {
    if (!at) throw new Error('no schema');
    return postgresHarness(at);
  };
  describeStoreContract(harness, { describe, it, transactions: true, persistent: true, inbox: true });
});
