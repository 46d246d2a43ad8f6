import { expectCountsRight, mysqlHarness, ownDatabase } from '../../stores/mysql-databases.ts';
import { inThisForm } from '../form.ts';
import { describeRandomCalls, type Histories } from './random-calls.ts';

// Of these connections the server’s own clock stands at 1 s.
const at = ownDatabase({ first: 'SET timestamp = 1' });

const STORES: readonly Histories[] = [
  { events: 40, registrations: 16 },
  { atOnce: 20, anyOrder: 40 },
];

for (const histories of inThisForm(STORES, (_, index) => index === 0)) {
  describeRandomCalls(
    {
      name: 'MySQL',
      clock: 1000,
      listsExpired: true,
      longestSender: 1500,
      open: async () => ({ ...(await mysqlHarness(at)), expectKeptRight: () => expectCountsRight(at) }),
    },
    histories,
  );
}
