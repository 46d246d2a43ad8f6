// The backend on PostgreSQL: calls a database function for each operation, and runs a few further SELECTs (admission.md
// §9.3).
// Called by `src/stores/postgres.ts`; sql-backend.ts has the parts that MySQL shares.
import type { CommitRequest, DueResult, LoadRequest, RowId } from '../backend.ts';
import type { InboxQuery, RegistrationKind, StoreIdentity } from '../store.ts';
import { turnText } from '../optimistic/commit-unit.ts';
import { type Calls, LOCK_SHARE, type SqlBackend, sqlBackend, type SqlOptions } from '../sql/sql-backend.ts';
import { type MadeAt, onConnection } from '../sql/connections.ts';
import type { Query } from '../sql/sql-transaction.ts';
import { LETTER, scopeFrom, type ScopeIds } from '../sql/row-lines.ts';
import { columnText } from '../text.ts';
import {
  connectionsOf,
  type PgClient,
  type PgPool,
  poolMax,
  query,
  survive,
  asFault,
  isRetryable,
  mayBeOneCalls,
  wronglyGiven,
} from './postgres-client.ts';
import { commitValues, countsOf, nameValues, type RowColumns, rowOf } from './postgres-rows.ts';
import { checkVersion, quoted } from './postgres-schema.ts';
import { checkTransactions, sessionsOf } from './postgres-sessions.ts';
import {
  adviceOf,
  checkSchema,
  checkSettings,
  durabilityOf,
  type Kept,
  keptText,
  levelOf,
  type Settings,
  SETTINGS_SQL,
} from './postgres-settings.ts';

interface PostgresOptions extends SqlOptions {
  readonly pool: PgPool;
  readonly schema: string;
}

export type PostgresBackend = SqlBackend<PgClient>;

type Rows = readonly unknown[];

/**
 * The answer of `webhook_commit`, the database function that writes a commit. It always has the clock, `now`. The
 * other members are present only if there is something to report.
 */
interface TurnRow {
  readonly now: number;
  readonly kept?: readonly [names: string, sync: string, fsync: string] | null;
  readonly old?: boolean;
  readonly refused?: readonly number[];
  readonly rows?:
    readonly (readonly [scope: number, kind: string, id: string, version: number, data: string])[] | null;
  readonly counts?: Parameters<typeof countsOf>[0];
}

/**
 * Makes the backend on PostgreSQL. It keeps no state in a database session, so any connection pooler works. Each
 * statement is a transaction of its own.
 */
export function postgresBackend(options: PostgresOptions): PostgresBackend {
  const { pool, timeoutMs, schema } = options;
  const name = quoted(schema);
  const madeAt: MadeAt = new WeakMap();
  const connections = connectionsOf(pool, timeoutMs, madeAt);
  const once: Query<Rows> = (text, values) =>
    onConnection(connections, (client) => query(client, timeoutMs, text, [...values]));
  const readVersion = async (): Promise<number> =>
    Number(
      answerOf(
        await once(`SELECT coalesce(max(version), 0)::text AS answer FROM ${name}.webhook_schema`, []),
      ),
    );
  const readSettings = async (): Promise<Settings> => {
    const settings = await onConnection(
      connections,
      async (client) =>
        JSON.parse(answerOf(await query(client, timeoutMs, SETTINGS_SQL, [schema]))) as Settings,
      ({ standby, readOnly }) => standby || readOnly,
    );
    if (settings.schemaVersion === 0 || settings.grants.length > 0) return settings;
    return { ...settings, schemaVersion: await readVersion() };
  };
  const sessions = sessionsOf(pool, timeoutMs);
  const as = { standbyNames: '', synchronousCommit: 'off', fsync: 'on' };
  let seen: Settings | undefined;
  let endSurvival: (() => void) | undefined;
  return sqlBackend(
    {
      name: 'postgres',
      who: 'Postgres',
      max: poolMax(pool),
      maxOption: 'max',
      once,
      sessions,
      callsOn: (ask, offset) =>
        callsOn(ask, { name, offset, lockMs: Math.ceil(timeoutMs * LOCK_SHARE), kept: as }),
      clock: async (offset) =>
        Number(answerOf(await once(`SELECT ${name}.webhook_clock($1)::text AS answer`, [offset]))),
      open: async () => {
        // `survive` listens for errors of connections, because an error without a listener would end the process. The
        // pool replaces a broken connection by itself.
        endSurvival ??= survive(pool, madeAt);
        seen = await readSettings();
        checkSettings(seen, schema);
        await onConnection(connections, (client) => checkTransactions(client, sessions));
        as.synchronousCommit = seen.synchronousCommit;
        as.standbyNames = seen.standbyNames;
      },
      look: async () => checkVersion(await readVersion(), schema),
      durability: async () => {
        seen = await readSettings();
        checkSchema(seen, schema);
        as.standbyNames = seen.standbyNames;
        return durabilityOf(seen);
      },
      advice: () => (seen ? adviceOf(seen) : ''),
      close: () => {
        endSurvival?.();
        endSurvival = undefined;
      },
      isRetryable,
      isAboutOne: mayBeOneCalls,
      asFault,
      wronglyGiven: (error) => wronglyGiven('postgresStore', error),
    },
    options,
  );
}

interface Called {
  /** The name of the schema, quoted. */
  readonly name: string;
  readonly offset: () => number;
  readonly lockMs: number;
  /**
   * The durability settings that the server had when they were last read. `webhook_commit` reports settings that
   * differ.
   */
  readonly kept: Kept;
}

function callsOn(query: Query<Rows>, { name, offset, lockMs, kept }: Called): Calls {
  const call = (what: string, count: number, columns = ''): string =>
    `SELECT ${columns || '*'} FROM ${name}.webhook_${what}(${Array.from({ length: count }, (_, at) => `$${at + 1}`).join(', ')})`;
  const texts = {
    commit: call('commit', 33, 'webhook_commit AS answer'),
    load: call('load', 6),
    due: call('due', 5),
    suspect: call('suspect', 3),
    turns: call('turns', 6),
    page: call('page', 5),
    clear: call('clear', 3, 'webhook_clear::text AS answer'),
    scopes: call('scopes', 2),
  };
  return {
    idsOf: async (senders, keys) => {
      const rows = (await query(texts.scopes, [senders, keys])) as readonly { readonly id: number }[];
      return rows.map(({ id }) => id);
    },
    commit: async (request: CommitRequest, ids: ScopeIds, started) => {
      const as = { ...kept };
      const settings = [as.synchronousCommit, ...commitValues(request, ids), as.standbyNames];
      const answer = answerOf(
        await query(texts.commit, [request.at, offset(), lockMs, ...settings, started]),
      );
      const reply: TurnRow = answer.startsWith('{')
        ? (JSON.parse(answer) as TurnRow)
        : { now: Number(answer) };
      const { now, old = false, refused = [], rows, counts } = reply;
      const is = reply.kept ? keptOf(reply.kept) : as;
      return {
        now,
        isOld: old,
        refused,
        rows: (rows ?? []).map(([scope_id, kind, id, version, data]) =>
          rowOf({ scope_id, kind, id, version: String(version), data, body: null }, ids),
        ),
        ...countsOf(counts, ids),
        level: levelOf(is),
        settings: () => keptText(is),
      };
    },
    load: async ({ rows, bodies, counts }: LoadRequest, ids) => {
      const all: readonly RowId[] = [...rows, ...bodies];
      const withBody = all.length > 0 ? all.map((_, at) => at >= rows.length) : null;
      const counted = counts.length > 0 ? counts.map(ids.idOf) : null;
      const answer = await query(texts.load, [offset(), ...nameValues(all, ids), withBody, counted]);
      const [head, ...found] = answer as readonly RowColumns[];
      return {
        now: Number(head?.version),
        rows: found.map((columns) => rowOf(columns, ids)),
        ...countsOf(head?.data ? (JSON.parse(head.data) as TurnRow['counts']) : undefined, ids),
      };
    },
    due: async ({ suspects, max, holdMs, longestMs, after }, ids) => {
      const answer = suspects
        ? await query(texts.suspect, [offset(), holdMs, longestMs])
        : await query(texts.due, [offset(), max, holdMs, longestMs, columnText(after)]);
      const [head, ...rows] = answer as readonly RowColumns[];
      const due = rows
        .filter(({ place }) => place != null)
        .toSorted((a, b) => Number(a.place) - Number(b.place));
      const result: DueResult = {
        now: Number(head?.version),
        rows: rows.map((columns) => rowOf(columns, ids)),
        due: due.map((columns) => rowOf(columns, ids)),
        nextDueMs: head?.data == null ? undefined : Math.max(0, Number(head.data)),
        isSuspectDue: head?.kind === 's',
        counts: [],
        nonces: undefined,
      };
      return result;
    },
    page: async ({ state, sender, limit, after = '0' }, ids) => {
      const values = [offset(), state, sender === undefined ? null : columnText(sender), after, limit + 1];
      const rows = (await query(texts.page, values)) as readonly RowColumns[];
      return rows.map((columns) => ({ ...rowOf(columns, ids), place: String(columns.place) }));
    },
    listCounts: async () => {
      const rows = (await query(countsSql(name), [offset()])) as readonly (RowColumns & ListColumns)[];
      return rows.map((row) => ({ list: row.list, count: Number(row.count), oldest: rowOf(row, NO_IDS) }));
    },
    overdueMs: async () => {
      const [row] = (await query(overdueSql(name), [offset()])) as readonly {
        readonly answer: string | null;
      }[];
      const ms = Number(row?.answer ?? -1);
      return ms < 0 ? undefined : ms;
    },
    turns: async ({ kind, max, longestMs, after }) => {
      const longest = Math.min(longestMs, Number.MAX_SAFE_INTEGER);
      const values = [offset(), LETTER[kind], turnPrefix(kind), max + 1, longest, columnText(after)];
      const [head, ...rows] = (await query(texts.turns, values)) as readonly RowColumns[];
      return {
        now: Number(head?.version),
        next: head?.data ?? null,
        rows: rows.map((row) => rowOf(row, NO_IDS)),
      };
    },
    listed: async ({ kind, list = null, sender, limit, after }) => {
      const of = sender === undefined ? null : columnText(sender);
      const behind = after ? [columnText(after.sender), after.id] : [null, ''];
      const rows = await query(listSql(name), [LETTER[kind], list, of, limit, ...behind]);
      return (rows as readonly RowColumns[]).map((row) => rowOf(row, NO_IDS));
    },
    clear: async (scope, most) => Number(answerOf(await query(texts.clear, [scope, most, offset()]))),
    identity: async () => {
      const [row] = (await query(identitySql(name), [])) as readonly StoreIdentity[];
      return row && { id: row.id, isNew: row.isNew };
    },
    scopes: async () => {
      const rows = await query(`SELECT sender, key FROM ${name}.webhook_scope ORDER BY id`, []);
      return (rows as readonly { readonly sender: string; readonly key: string }[]).map(scopeFrom);
    },
  };
}

interface ListColumns {
  readonly list: InboxQuery['state'];
  readonly count: string;
}

/**
 * Makes the statement that counts, for each sender, the rows of each list; $1 is the clock's offset. The statement
 * reads all rows that are on a list once, and then the oldest row of each list.
 *
 * @param name of the schema, quoted.
 */
export function countsSql(name: string): string {
  return `SELECT c.sender, g.scope_id, g.list, g.count::text AS count, r.kind, r.id, r.version::text AS version, r.data, NULL AS body
    FROM (SELECT x.scope_id, x.list, count(*) AS count, min(x.seq) AS seq FROM ${name}.webhook_row x WHERE x.list IS NOT NULL
      AND (x.expires_at IS NULL OR x.expires_at > (SELECT ${name}.webhook_clock($1))) GROUP BY x.scope_id, x.list) g
    JOIN ${name}.webhook_scope c ON c.id = g.scope_id CROSS JOIN LATERAL (SELECT x.kind, x.id, x.version, x.data
      FROM ${name}.webhook_row x WHERE x.list IS NOT NULL AND x.seq = g.seq OFFSET 0) r`;
}

/**
 * Makes the statement that returns the time for which the earliest due row has been due, ms; $1 is the clock's offset.
 * The statement reads the first entry of each of two indexes.
 *
 * @param name of the schema, quoted.
 */
export function overdueSql(name: string): string {
  return `SELECT (${name}.webhook_clock($1) - least(
    (SELECT r.due_at FROM ${name}.webhook_row r WHERE r.due_at IS NOT NULL ORDER BY -r.due_at DESC LIMIT 1),
    (SELECT min(r.suspect_at) FROM ${name}.webhook_row r WHERE r.suspect_at IS NOT NULL)))::text AS answer`;
}

/** Used instead of looked-up ids of scopes by statements whose result rows name their senders. */
const NO_IDS: ScopeIds = { idOf: () => 0, scopeOf: () => undefined };

/** Returns the beginning that the `turnText` (due time as a text) of all rows of a kind have in common. */
const turnPrefix = (kind: RegistrationKind): string => turnText(kind, 0).slice(0, 2);

/**
 * Makes the statement that lists registrations: $1 kind, $2 list, $3 sender, $4 the largest number of rows. The
 * list begins after the row with the sender $5 and the id $6.
 *
 * The statement goes from sender to sender until it has enough rows, and counts the rows of each along the primary key.
 * A join of all senders would read all their rows if the planner has no statistics of the senders. The table of senders
 * is often too small to get statistics.
 *
 * @param name of the schema, quoted.
 */
export function listSql(name: string): string {
  const rowsOf = (scope: string, columns: string): string =>
    `SELECT ${columns} FROM ${name}.webhook_row r WHERE r.scope_id = ${scope}.id AND r.kind = $1 COLLATE "C"
      AND ($2::text IS NULL OR r.link = $2 COLLATE "C")
      AND r.id > CASE WHEN ${scope}.sender = $5::text COLLATE "C" THEN $6::text ELSE '' END COLLATE "C" ORDER BY r.id`;
  const counted = (scope: string, most: string): string =>
    `(SELECT count(*) FROM (${rowsOf(scope, '1')} LIMIT ${most}) found)`;
  return `WITH RECURSIVE s (sender, id, before, upto) AS (
      (SELECT c.sender, c.id, 0::bigint, ${counted('c', '$4')} FROM ${name}.webhook_scope c
        WHERE c.key = '' AND CASE WHEN $3::text IS NULL THEN c.sender <> '' ELSE c.sender = $3 COLLATE "C" END
          AND c.sender >= coalesce($5, '') COLLATE "C" ORDER BY c.sender LIMIT 1)
      UNION ALL
      SELECT c.sender, c.id, s.upto, s.upto + ${counted('c', '$4 - s.upto')} FROM s CROSS JOIN LATERAL (
          SELECT x.sender, x.id FROM ${name}.webhook_scope x WHERE x.key = '' AND x.sender > s.sender ORDER BY x.sender LIMIT 1) c
        WHERE s.upto < $4 AND $3::text IS NULL)
    SELECT s.sender, $1::text AS kind, r.*, NULL AS body FROM s CROSS JOIN LATERAL (
        ${rowsOf('s', 'r.scope_id, r.id, r.version::text AS version, r.data')} LIMIT $4 - s.before) r
      WHERE s.upto > s.before ORDER BY s.sender, r.id`;
}

/**
 * Makes the statement that reads the store's identity. If several processes run it together, only one is told that the
 * store is new.
 */
function identitySql(name: string): string {
  return `WITH told AS (UPDATE ${name}.webhook_identity SET told = true WHERE NOT told RETURNING id)
    SELECT id, EXISTS (SELECT FROM told) AS "isNew" FROM ${name}.webhook_identity`;
}

function keptOf([standbyNames, synchronousCommit, fsync]: NonNullable<TurnRow['kept']>): Kept {
  return { standbyNames, synchronousCommit, fsync };
}

function answerOf(rows: readonly unknown[]): string {
  return (rows[0] as { readonly answer: string }).answer;
}
