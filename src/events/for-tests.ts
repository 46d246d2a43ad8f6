// Test face of `src/events`: what tests, bench and scripts import from it that no public entry exports.
// Nothing in `src` imports it, and no bundle contains it (CONTRIBUTING.md).

export { recoveryMember, recoveryOfCode } from './error-codes.ts';
export { errorsIn, errorsOf } from './error-object.ts';
export { parseInstant } from './instant.ts';

export { notificationFamily } from './notification-family.ts';
export { readBody } from './reading.ts';
export { isTerminal, normaliseState, taskStatus } from './status.ts';
