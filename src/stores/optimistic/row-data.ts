// Converts rows to stored JSON texts and back, and makes the names of rows and scopes (`Row.data` and `RowId.id` of
// backend.ts). Ids that are too long for an index are hashed.
// Called by the other files of this folder, by SQLite, and by the backends.
import { Fault } from '../../shared/errors.ts';
import type { RegistrationKind, RegistrationRow } from '../store.ts';
import type { NoncesOf, Row, RowId, RowKind, Scope } from '../backend.ts';
import type { NonceRow, NotificationRow, ProcessRow, RecordRow, TaskRow } from '../rules/rule-rows.ts';
import { columnText, fromColumnText } from '../text.ts';

/** The content of each kind of row. */
export interface RowData extends Readonly<Record<RegistrationKind, RegistrationRow>> {
  readonly record: RecordRow;
  /**
   * `waiting` is true if records may wait for the task. A free task is searched for waiting records only if it is true.
   * Each record that begins to wait sets `waiting`; a search that finds none clears it.
   */
  readonly task: TaskRow & { readonly waiting: boolean };
  readonly nonce: NonceRow;
  readonly notification: NotificationRow;
  readonly process: ProcessRow;
}

export type AnyRow = RowData[RowKind];

/** The longest id that is stored unhashed in an index. UTF-16 units. */
const MOST_ID = 512;

/** The beginning of a hashed id. No other id begins so, because `columnText` encodes the control character. */
const HASHED = '\u0001#';

/**
 * Returns an id in the form that row names contain: as `columnText` encodes it, or hashed if that is too long.
 * Different ids stay different.
 */
export function fitted(id: string): string {
  const text = columnText(id);
  return text.length <= MOST_ID && !text.startsWith(HASHED) ? text : HASHED + sha256Hex(text);
}

/**
 * Hashes a text.
 *
 * @throws Fault `store_unavailable` if the runtime has no `node:crypto`.
 */
function sha256Hex(text: string): string {
  const crypto = nodeCrypto();
  if (!crypto)
    throw new Fault(
      'store_unavailable',
      'An id of over 512 characters needs node:crypto, which this runtime lacks.',
    );
  return crypto.createHash('sha256').update(text).digest('hex');
}

/** The scope (set of rows that is counted by itself) that has the rows of processes. */
export const PROCESSES: Scope = { sender: '' };

/** Returns a row's name as one text. */
export function nameOf({ scope: { sender, keyid }, kind, id }: RowId): string {
  return `${kind} ${sender.length} ${keyid?.length ?? ''} ${sender}${keyid ?? ''}${id}`;
}

export function scopeName({ sender, keyid }: Scope): string {
  return keyid === undefined ? sender : `${keyid.length} ${keyid}${sender}`;
}

/**
 * The set of rows whose expired rows one call of `Backend.sweep` deletes: a scope, the nonces of a sender, or all
 * nonces.
 */
export type Sweep = Scope | NoncesOf | 'nonces';

/** Returns a text that identifies the set of rows that a sweep clears of expired ones. */
export function sweepName(of: Sweep): string {
  if (of === 'nonces') return of;
  return 'noncesOf' in of ? `nonces of ${of.noncesOf}` : scopeName(of);
}

/**
 * The members that a row's stored text may lack: those that the row's name contains, and those with their default
 * value. This halves the stored size.
 */
type Absent<K extends RowKind> = { readonly [M in keyof RowData[K]]?: RowData[K][M] };

const REGISTRATION = { dueAt: null, list: null, expiresAt: null } as const;

const DEFAULTS: { readonly [K in RowKind]: Absent<K> } = {
  record: {
    owner: null,
    runs: 0,
    leaseUntil: 0,
    attempts: 0,
    crashes: 0,
    suspect: false,
    process: null,
    crashedIn: null,
    acked: false,
    parkedUntil: 0,
    lastError: null,
    canonicalHash: null,
    task: null,
    reemission: false,
    afterTerminal: false,
    ahead: false,
    afterFinal: false,
    windows: null,
    claimedState: null,
    bodyBytes: 0,
    expiresAt: null,
  },
  task: { holder: null, mark: null, markTerminal: false, terminal: null, told: null, waiting: false },
  nonce: { key: null },
  notification: { instant: null },
  process: {},
  operation: REGISTRATION,
  route: REGISTRATION,
  watch: REGISTRATION,
  stream: REGISTRATION,
  subscription: REGISTRATION,
  snapshot: REGISTRATION,
  move: REGISTRATION,
};

/**
 * For each kind of row, the member of its content that holds the row's id. It is stored only if the row's name has a
 * hash in place of the id. The scope has the other parts of the name, e.g. the sender.
 */
const ID_MEMBER = {
  record: 'key',
  task: 'id',
  nonce: 'nonce',
  notification: 'id',
  process: 'id',
  operation: 'id',
  route: 'id',
  watch: 'id',
  stream: 'id',
  subscription: 'id',
  snapshot: 'id',
  move: 'id',
} as const;

const REGISTRATIONS: ReadonlySet<RowKind> = new Set<RegistrationKind>([
  'operation',
  'route',
  'watch',
  'stream',
  'subscription',
  'snapshot',
  'move',
]);

export function isRegistration(kind: RowKind): kind is RegistrationKind {
  return REGISTRATIONS.has(kind);
}

const packRegistration = (row: RegistrationRow, id: string | undefined): object => ({
  id,
  value: row.value,
  dueAt: row.dueAt ?? undefined,
  list: row.list ?? undefined,
  expiresAt: row.expiresAt ?? undefined,
});

const unless = <T>(value: T, absent: T): T | undefined => (value === absent ? undefined : value);

export const ROW_KINDS: readonly RowKind[] = Object.keys(ID_MEMBER) as RowKind[];

/**
 * For each kind of row, makes the object whose JSON is stored. All objects of a kind have the same members; JSON leaves
 * out those that are undefined.
 */
const PACK: { readonly [K in RowKind]: (row: RowData[K], id: string | undefined) => object } = {
  record: (row, key) => ({
    key,
    state: row.state,
    claim: row.claim,
    claimedBy: row.claimedBy,
    owner: row.owner ?? undefined,
    runs: unless(row.runs, 0),
    leaseUntil: unless(row.leaseUntil, 0),
    attempts: unless(row.attempts, 0),
    crashes: unless(row.crashes, 0),
    suspect: unless(row.suspect, false),
    process: row.process ?? undefined,
    crashedIn: row.crashedIn ?? undefined,
    acked: unless(row.acked, false),
    insertedAt: row.insertedAt,
    notBefore: row.notBefore,
    parkedUntil: unless(row.parkedUntil, 0),
    lastError: row.lastError ?? undefined,
    rawHash: row.rawHash,
    canonicalHash: row.canonicalHash ?? undefined,
    task: row.task ?? undefined,
    traceparent: row.traceparent,
    url: row.url,
    reemission: unless(row.reemission, false),
    afterTerminal: unless(row.afterTerminal, false),
    ahead: unless(row.ahead, false),
    afterFinal: unless(row.afterFinal, false),
    windows: row.windows ?? undefined,
    claimedState: row.claimedState ?? undefined,
    bodyBytes: unless(row.bodyBytes, 0),
    expiresAt: row.expiresAt ?? undefined,
  }),
  task: (row, id) => ({
    id,
    holder: row.holder ?? undefined,
    mark: row.mark ?? undefined,
    markTerminal: unless(row.markTerminal, false),
    terminal: row.terminal ?? undefined,
    told: row.told ?? undefined,
    waiting: unless(row.waiting, false),
    expiresAt: row.expiresAt,
  }),
  nonce: (row, nonce) => ({
    nonce,
    key: row.key ?? undefined,
    acceptId: row.acceptId,
    expiresAt: row.expiresAt,
  }),
  notification: (row, id) => ({
    id,
    key: row.key,
    instant: row.instant ?? undefined,
    expiresAt: row.expiresAt,
  }),
  process: (row, id) => ({ id, expiresAt: row.expiresAt }),
  operation: packRegistration,
  route: packRegistration,
  watch: packRegistration,
  stream: packRegistration,
  subscription: packRegistration,
  snapshot: packRegistration,
  move: packRegistration,
};

/** Makes the stored text of a row. JSON escapes any text that a sender may send, so nothing else has to. */
export function packed({ kind, id }: Pick<RowId, 'kind' | 'id'>, row: AnyRow): string {
  const named = row as unknown as Readonly<Record<string, string>>;
  const name = id.startsWith(HASHED) ? named[ID_MEMBER[kind]] : undefined;
  return JSON.stringify((PACK[kind] as (row: AnyRow, id: string | undefined) => object)(row, name));
}

export function unpacked({ scope, kind, id, data }: Pick<Row, 'scope' | 'kind' | 'id' | 'data'>): AnyRow {
  return {
    ...DEFAULTS[kind],
    ...(kind !== 'process' && { sender: scope.sender }),
    ...(isRegistration(kind) && { kind }),
    ...(scope.keyid !== undefined && { keyid: scope.keyid }),
    ...(!id.startsWith(HASHED) && { [ID_MEMBER[kind]]: fromColumnText(id) }),
    ...(JSON.parse(data) as object),
  } as unknown as AnyRow;
}

/** Returns the original id of a row. If the row's name has only a hash of the id, reads it from the row's text. */
export function idOf(row: Pick<Row, 'scope' | 'kind' | 'id' | 'data'>): string {
  const { id, kind } = row;
  if (!id.startsWith(HASHED)) return fromColumnText(id);
  return (unpacked(row) as unknown as Readonly<Record<string, string>>)[ID_MEMBER[kind]] ?? '';
}

interface Hash {
  update(text: string): Hash;
  digest(encoding: 'hex' | 'base64url'): string;
}

/**
 * Returns `node:crypto`, for hashing; undefined if the runtime has none. Runtimes that have database clients have it.
 */
export function nodeCrypto(): { createHash(name: 'sha1' | 'sha256'): Hash } | undefined {
  return globalThis.process?.getBuiltinModule?.('node:crypto');
}
