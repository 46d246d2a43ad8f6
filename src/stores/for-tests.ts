// Exports names of `src/stores` that tests, benchmarks and scripts need, and no public entry has.
// Nothing in `src` imports this file, and no bundle contains it (CONTRIBUTING.md).

export {
  FAR_WAIT_MS,
  LONGEST_LEASE_MS,
  LONGEST_WAIT_MS,
  MARK_RETENTION_MS,
  operationRowId,
} from './constants.ts';
export { createBatches, type Queued } from './optimistic/batch-queue.ts';
export { type Attempt, attemptOf, type Batch, type Entry, newEntry } from './optimistic/plan-rows.ts';
export {
  type AnyRow,
  fitted,
  nameOf,
  packed,
  PROCESSES,
  type RowData,
  scopeName,
  unpacked,
} from './optimistic/row-data.ts';
export { storeClock } from './optimistic/clock-and-rows.ts';
export { countBook, rememberedRows } from './optimistic/remembered.ts';
export { memoryRows } from './memory/memory-rows.ts';
export { createMemoryState, type MemoryState, put, senderState } from './memory/memory-state.ts';
export { accept } from './rules/accept-rules.ts';
export { discard, inboxOf, leaseOne } from './rules/claim.ts';
export { dueAt, isDue } from './rules/task-wait.ts';
export { stepWatch } from './step-watch.ts';
export { planned, type RegistrationSearch, registrationsOf } from './rules/registration-rules.ts';
export type { NonceRow, NotificationRow, QueueRows, RecordRow, TaskRow } from './rules/rule-rows.ts';
export { complete, fail, heldBy, peek, renew } from './rules/settle-rules.ts';
export { checkVersion, FIRST_VERSION, lookAgain, missingSteps, newest } from './schema-version.ts';
export type { SqlBackend } from './sql/sql-backend.ts';
export { columnText, fromColumnText } from './text.ts';
