import type { Kind } from './stores.ts';
import type { Mode } from './wire.ts';

/** A store, and how events come to their handlers. */
export interface Row {
  readonly kind: Kind;
  readonly mode: Mode;
}

const KINDS: readonly Kind[] = ['SQLite', 'Postgres', 'MySQL', 'Redis'];
const MODES: readonly Mode[] = ['inline', 'inbox'];

/** Each store in both modes. A suite says which of them `npm test` has. */
export const EVERY_ROW: readonly Row[] = KINDS.flatMap((kind) => MODES.map((mode) => ({ kind, mode })));

/** The same as `kind` and `mode` say. */
export const isRow =
  (kind: Kind, mode: Mode) =>
  (row: Row): boolean =>
    row.kind === kind && row.mode === mode;
