import { expectCountsRight, ownDatabase } from '../mysql-databases.ts';
import { describeSameRegistrations } from '../sql/memory-comparison.ts';

// Of these connections the server’s own clock stands at 1 s.
const at = ownDatabase(5, 'SET timestamp = 1');

describeSameRegistrations('MySQL', { at, clockMs: 1000, expectCountsRight: () => expectCountsRight(at) });
