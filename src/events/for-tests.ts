// Exports names of `src/events` that tests, benchmarks and scripts need, and no public entry has.
// Nothing in `src` imports this file, and no bundle contains it (CONTRIBUTING.md).

export { recoveryMember, recoveryOfCode } from './error-codes.ts';
export { errorsIn, errorsOf } from './error-object.ts';
export { parseInstant } from './instant.ts';

export { notificationFamily } from './notification-family.ts';
export { readBody } from './reading.ts';
export { isTerminal, normaliseState, taskStatus } from './status.ts';
