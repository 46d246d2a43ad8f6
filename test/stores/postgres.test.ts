import { describe, it } from 'vitest';
import { describeStoreContract } from '../../src/testing/index.ts';
import { ownSchema, postgresHarness } from './postgres-schemas.ts';

describe('postgresStore', () => {
  const at = ownSchema();
  describeStoreContract(() => postgresHarness(at), {
    describe,
    it,
    transactions: true,
    persistent: true,
    inbox: true,
    registrations: true,
  });
});
