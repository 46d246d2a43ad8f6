import type { CommitRequest, DueResult, LoadRequest, RowId } from '../backend.ts';
import type { StoreIdentity } from '../contract.ts';
import type { Calls, Query, SqlBackend, SqlOptions } from '../sql/backend.ts';
import { LOCK_SHARE, sqlBackend } from '../sql/backend.ts';
import type { ScopeIds } from '../sql/lines.ts';
import { scopeFrom } from '../sql/lines.ts';
import { columnText, fromColumnText } from '../text.ts';
import type { PgClient, PgPool } from './client.ts';
import { poolMax, queryOnce, survive } from './client.ts';
import { asFault, isRetryable, mayBeOneCalls } from './faults.ts';
import type { RowColumns } from './rows.ts';
import { commitValues, countsOf, nameValues, rowOf } from './rows.ts';
import { checkVersion, quoted } from './schema.ts';
import type { Kept, Settings } from './settings.ts';
import {
  adviceOf,
  checkSchema,
  checkSettings,
  durabilityOf,
  keptText,
  levelOf,
  SETTINGS_SQL,
} from './settings.ts';
import { sessionsOf } from './transaction.ts';

export interface PostgresOptions extends SqlOptions {
  readonly pool: PgPool;
  readonly schema: string;
}

export type PostgresBackend = SqlBackend<PgClient>;

type Rows = readonly unknown[];

/** What `webhook_commit` says where the clock alone is not all. */
interface Said {
  readonly now: number;
  readonly kept?: readonly [names: string, sync: string, fsync: string] | null;
  readonly old?: boolean;
  readonly refused?: readonly number[];
  readonly rows?:
    readonly (readonly [scope: number, kind: string, id: string, version: number, data: string])[] | null;
  readonly counts?: Parameters<typeof countsOf>[0];
}

/** The port on PostgreSQL. Nothing is kept in a session, so any pooler does; each statement is a transaction. */
export function postgresBackend(options: PostgresOptions): PostgresBackend {
  const { pool, timeoutMs, schema } = options;
  const name = quoted(schema);
  const once: Query<Rows> = (text, values) => queryOnce(pool, timeoutMs, text, [...values]);
  const readVersion = async (): Promise<number> =>
    Number(
      answerOf(
        await once(`SELECT coalesce(max(version), 0)::text AS answer FROM ${name}.webhook_schema`, []),
      ),
    );
  const readSettings = async (): Promise<Settings> => {
    const settings = JSON.parse(answerOf(await once(SETTINGS_SQL, [schema]))) as Settings;
    if (settings.schemaVersion === 0 || settings.grants.length > 0) return settings;
    return { ...settings, schemaVersion: await readVersion() };
  };
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
      sessions: sessionsOf(pool, timeoutMs),
      callsOn: (ask, offset) =>
        callsOn(ask, { name, offset, lockMs: Math.ceil(timeoutMs * LOCK_SHARE), kept: as }),
      clock: async (offset) =>
        Number(answerOf(await once(`SELECT ${name}.webhook_clock($1)::text AS answer`, [offset]))),
      open: async () => {
        // A connection that breaks ends the process where nobody listens; the pool replaces it by itself.
        endSurvival ??= survive(pool);
        seen = await readSettings();
        checkSettings(seen, schema);
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
      close: () => endSurvival?.(),
      isRetryable,
      isAboutOne: mayBeOneCalls,
      asFault,
    },
    options,
  );
}

interface Called {
  /** Of the schema, quoted. */
  readonly name: string;
  readonly offset: () => number;
  readonly lockMs: number;
  /** What a commit is to rest on. */
  readonly kept: Kept;
}

function callsOn(query: Query<Rows>, { name, offset, lockMs, kept }: Called): Calls {
  const call = (what: string, count: number, more = ''): string =>
    `SELECT ${more || '*'} FROM ${name}.webhook_${what}(${Array.from({ length: count }, (_, at) => `$${at + 1}`).join(', ')})`;
  const texts = {
    commit: call('commit', 37, 'webhook_commit AS answer'),
    load: call('load', 6),
    due: call('due', 4),
    suspect: call('suspect', 2),
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
      const said: Said = answer.startsWith('{') ? (JSON.parse(answer) as Said) : { now: Number(answer) };
      const { now, old = false, refused = [], rows, counts } = said;
      const is = said.kept ? keptOf(said.kept) : as;
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
        ...countsOf(head?.data ? (JSON.parse(head.data) as Said['counts']) : undefined, ids),
      };
    },
    due: async ({ suspects, max, holdMs, after }, ids) => {
      const answer = suspects
        ? await query(texts.suspect, [offset(), holdMs])
        : await query(texts.due, [offset(), max, holdMs, columnText(after)]);
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
    far: async ({ afterMs, max }) => {
      const [{ now, rows } = { now: '0', rows: null }] = (await query(
        `SELECT now, rows FROM ${name}.webhook_far($1, $2, $3)`,
        [offset(), afterMs, max],
      )) as readonly {
        readonly now: string;
        readonly rows: readonly (readonly [sender: string, id: string])[] | null;
      }[];
      const names = (rows ?? []).map(([sender, id]): RowId => ({
        scope: { sender: fromColumnText(sender) },
        kind: 'record',
        id,
      }));
      return { now: Number(now), rows: names };
    },
    page: async ({ state, sender, limit, after = '0' }, ids) => {
      const values = [offset(), state, sender === undefined ? null : columnText(sender), after, limit + 1];
      const rows = (await query(texts.page, values)) as readonly RowColumns[];
      return rows.map((columns) => ({ ...rowOf(columns, ids), place: String(columns.place) }));
    },
    overdueMs: async () => {
      const [row] = (await query(overdueSql(name), [offset()])) as readonly {
        readonly answer: string | null;
      }[];
      const ms = Number(row?.answer ?? -1);
      return ms < 0 ? undefined : ms;
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

/** $1 is the clock's offset. Of each scope the first entry of its index is read. @param name of the schema, quoted. */
export function overdueSql(name: string): string {
  return `SELECT (${name}.webhook_clock($1) - min(d.due_at))::text AS answer FROM (
    SELECT f.due_at FROM ${name}.webhook_scope s CROSS JOIN LATERAL
      (SELECT r.due_at FROM ${name}.webhook_row r WHERE r.scope_id = s.id AND r.due_at IS NOT NULL ORDER BY r.due_at LIMIT 1) f
      WHERE s.key = ''
    UNION ALL SELECT min(r.suspect_at) FROM ${name}.webhook_row r WHERE r.suspect_at IS NOT NULL) d`;
}

/** Of several processes that ask at once one is told that the store is new. */
function identitySql(name: string): string {
  return `WITH told AS (UPDATE ${name}.webhook_identity SET told = true WHERE NOT told RETURNING id)
    SELECT id, EXISTS (SELECT FROM told) AS "isNew" FROM ${name}.webhook_identity`;
}

function keptOf([standbyNames, synchronousCommit, fsync]: NonNullable<Said['kept']>): Kept {
  return { standbyNames, synchronousCommit, fsync };
}

function answerOf(rows: readonly unknown[]): string {
  return (rows[0] as { readonly answer: string }).answer;
}
