import { describe, it } from 'vitest';
import { mysqlHarness, ownDatabase } from '../../stores/mysql-databases.ts';
import { expectInvariants, SEED } from './explore.ts';

describe('calls of several processes in any order', () => {
  const at = ownDatabase();

  it(
    `MySQL keeps the invariants (seed ${SEED})`,
    () => expectInvariants(() => mysqlHarness(at), 80),
    3_600_000,
  );
});
