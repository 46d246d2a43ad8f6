// `proto-webhooks/backend`: a store for another database.
export { storeOf } from './driver/store-of.ts';
export type { DrivenStore, DriverOptions } from './driver/store-of.ts';
export { turnText } from './driver/unit.ts';
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
} from './port.ts';
