import { describe, it } from 'vitest';
import { ownSchema, postgresHarness } from '../../stores/postgres-schemas.ts';
import { expectInvariants, SEED } from './explore.ts';

describe('calls of several processes in any order', () => {
  const at = ownSchema();

  it(
    `Postgres keeps the invariants (seed ${SEED})`,
    () => expectInvariants(() => postgresHarness(at), 80),
    3_600_000,
  );
});
