import { beforeAll } from 'vitest';
import {
  expectCountsRight,
  HANDED_CLOCK,
  ownSchema,
  postgresHarness,
} from '../../stores/postgres-schemas.ts';
import { inThisForm } from '../form.ts';
import { describeRandomCalls, type Histories } from './random-calls.ts';

const at = ownSchema();
beforeAll(() => at.sql(HANDED_CLOCK));

/** `npm test` has those at once here, and those one after the other on MySQL. */
const KINDS: readonly Histories[] = [
  { atOnce: 20, anyOrder: 24 },
  { events: 40, registrations: 16 },
];

for (const histories of inThisForm(KINDS, (_, index) => index === 0)) {
  describeRandomCalls(
    {
      name: 'Postgres',
      clock: 0,
      listsExpired: true,
      open: async () => ({ ...(await postgresHarness(at)), expectKeptRight: () => expectCountsRight(at) }),
    },
    histories,
  );
}
