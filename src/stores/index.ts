// `proto-webhooks/backend`: a store for another database.
export { storeOf } from './optimistic/optimistic-store.ts';
export type { DrivenStore, DriverOptions } from './optimistic/optimistic-store.ts';
export { turnText } from './optimistic/commit-unit.ts';
export type {
  Backend,
  CommitRequest,
  CommitResult,
  Counted,
  DueRequest,
  DueResult,
  DueSuspect,
  Expected,
  FarRequest,
  FarResult,
  ListRequest,
  LoadRequest,
  LoadResult,
  NoncesOf,
  Page,
  Row,
  RowId,
  RowKind,
  Scope,
  TurnRequest,
  TurnResult,
  Unit,
  Within,
  Write,
} from './backend.ts';
