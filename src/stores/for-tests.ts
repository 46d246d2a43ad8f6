// Test face of `src/stores`: what tests, bench and scripts import from it that no public entry exports.
// Nothing in `src` imports it, and no bundle contains it (CONTRIBUTING.md).

export { MARK_RETENTION_MS, operationRowId } from './constants.ts';
export { createBatches, type Queued } from './driver/batches.ts';
export { type Attempt, attemptOf, type Batch, type Entry, newEntry } from './driver/journal.ts';
export {
  type AnyRow,
  fitted,
  nameOf,
  packed,
  PROCESSES,
  type RowData,
  scopeName,
  unpacked,
} from './driver/row-data.ts';
export { storeClock } from './driver/state.ts';
export { countBook, rememberedRows } from './driver/store-of.ts';
export { memoryRows } from './memory/rows.ts';
export { put, senderState } from './memory/state.ts';
export { accept } from './rules/accept.ts';
export { inboxOf, leaseOne } from './rules/inbox.ts';
export { dueAt } from './rules/park.ts';
export { planned, type RegistrationSearch, registrationsOf } from './rules/registrations.ts';
export type { NonceRow, NotificationRow, QueueRows, RecordRow, TaskRow } from './rules/rows.ts';
export { complete, fail, heldBy, peek, renew } from './rules/settle.ts';
export { checkVersion, FIRST_VERSION, lookAgain, missingSteps, newest } from './schema-version.ts';
export type { SqlBackend } from './sql/backend.ts';
export { stepWatch } from './step-watch.ts';
export { columnText, fromColumnText } from './text.ts';
