// Exports names of `src/stages` that tests, benchmarks and scripts need, and no public entry has.
// Nothing in `src` imports this file, and no bundle contains it (CONTRIBUTING.md).

export { acceptRequest, admit, type WonDelivery } from './admit.ts';
export { type Authentic, authenticate, authenticateBody } from './authenticate.ts';
export { dispatch } from './dispatch.ts';
export { errorText } from './error-text.ts';
export {
  declaredLength,
  guard,
  guardAgentPush,
  type GuardContext,
  guardDeclaredLength,
  guardHeaders,
} from './guard.ts';
export { storedId, storedNonce } from './ids.ts';
export { claimOf, read, type ReadEvent, readFrom, terminalHash } from './read.ts';
export { ANSWERS, respond } from './respond.ts';
export { createRunning, type Running, type RunStart } from './running.ts';
export { select } from './select.ts';
export type { Selected } from './selected.ts';
export { clockTrial } from './clock-trial.ts';
export { createSetUpWatch } from './misconfiguration.ts';
export { backoffMs } from './settle.ts';
export { originOf, readStored, started } from './admitted-event.ts';
export { reencoded, urlTrial } from './url-trial.ts';
export { createWaiting } from './wait.ts';
export {
  type DeadlineExceeded,
  endWatch,
  type RunEnd,
  stopWatch,
  type Watch,
  type WatchRequest,
  watchRun,
} from './lease.ts';
