// Entry `proto-webhooks/vectors`: conformance vectors, this package's own and those that others publish in the same
// shapes. They run against this library or against an implementation of yours (docs/conformance.md).

export type { CryptoEngine, Jwk } from '../crypto/engine.ts';
export type { HeadersInput } from '../shared/delivery.ts';
export type { Recovery } from '../events/error-codes.ts';
export type { Transport } from '../events/event.ts';
export type { EditionName } from '../shared/editions.ts';
export type { VectorKind } from './vector-case.ts';
export { VectorError } from './vector-case.ts';
export type { VectorResult } from './judge.ts';
export { librarySubject } from './library.ts';
export type { LoadOptions } from './load.ts';
export { formatReport, formatResult, type ReportOptions } from './run.ts';
export type { Skipped } from './vector-case.ts';
export { runVectors, type RunVectorsOptions, type TestFunction } from './run.ts';
export type {
  SubjectAnswer as Answer,
  AnswerData,
  AnswerError,
  Arrival,
  CanonicalUrl,
  Discovered,
  Discovery,
  Extracted,
  OpenReceiver,
  Redirect,
  Setup,
  Subject,
  VectorLimits,
  VectorRequest,
  VectorSender,
} from './subject.ts';
