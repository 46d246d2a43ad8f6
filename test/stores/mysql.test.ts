import { describe, it } from 'vitest';
import { describeStoreContract } from '../../src/testing/index.ts';
import { mysqlHarness, ownDatabase } from './mysql-databases.ts';

describe('mysqlStore', () => {
  const at = ownDatabase();
  describeStoreContract(() => mysqlHarness(at), {
    describe,
    it,
    transactions: true,
    persistent: true,
    inbox: true,
    registrations: true,
  });
});
