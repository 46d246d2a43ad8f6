import { MEMORY, onDriver, SQLITE_ON_FILES, SQLITE_WITHOUT_FILE } from './in-process.ts';
import { describeRandomCalls } from './random-calls.ts';

describeRandomCalls(MEMORY, { anyOrder: 1000 });
describeRandomCalls(onDriver(), { events: 60, registrations: 60, atOnce: 40, anyOrder: 150 });
describeRandomCalls(SQLITE_WITHOUT_FILE, { events: 40, registrations: 60 });
describeRandomCalls(SQLITE_ON_FILES, { anyOrder: 40 });
