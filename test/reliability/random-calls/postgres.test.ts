import { beforeAll } from 'vitest';
import {
  expectCountsRight,
  HANDED_CLOCK,
  ownSchema,
  postgresHarness,
} from '../../stores/postgres-schemas.ts';
import { describeRandomCalls } from './random-calls.ts';

const at = ownSchema();
beforeAll(() => at.sql(HANDED_CLOCK));

describeRandomCalls(
  {
    name: 'Postgres',
    clock: 0,
    listsExpired: true,
    open: async () => ({ ...(await postgresHarness(at)), expectKeptRight: () => expectCountsRight(at) }),
  },
  { events: 20, registrations: 16, atOnce: 20, anyOrder: 24 },
);
