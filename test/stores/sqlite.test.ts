import { describe, it } from 'vitest';
import { describeStoreContract } from '../../src/testing/store-contract.ts';
import { DRIVERS, sqliteHarness } from './sqlite-files.ts';

describe.each(Object.keys(DRIVERS))('sqliteStore on %s', (name) => {
  const connect = DRIVERS[name] ?? String;
  describeStoreContract(() => sqliteHarness(connect), {
    describe,
    it,
    transactions: true,
    persistent: true,
    inbox: true,
    registrations: true,
  });
});
