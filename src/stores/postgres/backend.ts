import { ConfigError } from '../../errors.ts';
import type { StoreIdentity } from '../contract.ts';
import type {
  Backend,
  CommitRequest,
  CommitResult,
  DueResult,
  LoadRequest,
  LoadResult,
  Page,
  RowId,
  Scope,
  Within,
} from '../backend.ts';
import { lookAgain } from '../look-again.ts';
import { whileRunning } from '../schema-version.ts';
import { columnText, fromColumnText } from '../text.ts';
import type { PgClient, PgPool } from './client.ts';
import { poolMax, queryOnce, survive } from './client.ts';
import { asFault, mayBeOneCalls, retried } from './faults.ts';
import { keepingOf } from './kept.ts';
import type { RowColumns } from './rows.ts';
import { commitValues, countsOf, nameValues, rowOf, scopeFrom } from './rows.ts';
import { checkVersion, quoted } from './schema.ts';
import { scopesOf } from './scopes.ts';
import { slotsOf } from './slots.ts';
import type { Kept, Settings } from './settings.ts';
import { adviceOf, checkSchema, checkSettings, durabilityOf, SETTINGS_SQL } from './settings.ts';
import { runTransaction } from './transaction.ts';

export interface PostgresOptions {
  readonly pool: PgPool;
  readonly schema: string;
  readonly timeoutMs: number;
  /** By default the longer of the lease and `LEAST_IDLE_MS`. */
  readonly idleInTransactionMs?: number | undefined;
  readonly clockOffsetMs: () => number;
  /** 0 ≤ n < 1: spreads the tries of transactions that the server rolled back. */
  readonly random: () => number;
}

/** One statement with its parameters, and the rows that it gives. */
export type Query = (text: string, values: unknown[]) => Promise<readonly unknown[]>;

/** Batches under way at once: one is prepared while another is written to disk, and the pool is the owner's too. */
const LANES = 2;

/** A function that asks others between its statements is no frozen process. Ms. */
const LEAST_IDLE_MS = 30_000;

/** Of the whole time, what one lock may be waited for: so that it is the server that gives up, and nothing was done. */
const LOCK_SHARE = 0.75;

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

export type PostgresBackend = Backend<PgClient> &
  Required<Pick<Backend<PgClient>, 'transaction'>> & {
    /** All that are known. @throws Fault */
    readonly scopes: () => Promise<readonly Scope[]>;
  };

/** The port on PostgreSQL. Nothing is kept in a session, so any pooler does; each statement is a transaction. */
export function postgresBackend(options: PostgresOptions): PostgresBackend {
  const { pool, timeoutMs, clockOffsetMs } = options;
  const name = quoted(options.schema);
  const lockMs = Math.ceil(timeoutMs * LOCK_SHARE);
  const offset = (): number => Math.trunc(clockOffsetMs());
  const once: Query = (text, values) => queryOnce(pool, timeoutMs, text, values);
  const call = (what: string, count: number, more = ''): string =>
    `SELECT ${more || '*'} FROM ${name}.webhook_${what}(${Array.from({ length: count }, (_, at) => `$${at + 1}`).join(', ')})`;
  const texts = {
    commit: call('commit', 37, 'webhook_commit AS answer'),
    load: call('load', 6),
    due: call('due', 4),
    suspect: call('suspect', 2),
    page: call('page', 5),
    clear: call('clear', 3, 'webhook_clear::text AS answer'),
    clock: call('clock', 1, 'webhook_clock::text AS answer'),
    scopes: call('scopes', 2),
  };
  const readVersion = async (): Promise<number> =>
    Number(
      answerOf(
        await once(`SELECT coalesce(max(version), 0)::text AS answer FROM ${name}.webhook_schema`, []),
      ),
    );
  const readSettings = async (): Promise<Settings> => {
    const settings = JSON.parse(answerOf(await once(SETTINGS_SQL, [options.schema]))) as Settings;
    if (settings.schemaVersion === 0 || settings.grants.length > 0) return settings;
    return { ...settings, schemaVersion: await readVersion() };
  };
  // Another process may have migrated the schema meanwhile.
  const known = lookAgain(
    async () => {
      try {
        checkVersion(await readVersion(), options.schema);
      } catch (error) {
        throw asFault(whileRunning(error));
      }
    },
    () => performance.now() + clockOffsetMs(),
  );
  const ask: Query = (text, values) => {
    const looking = known.passed();
    return looking ? looking.then(() => once(text, values)) : once(text, values);
  };
  const scopes = scopesOf(async (senders, keys) => {
    const rows = (await ask(texts.scopes, [senders, keys])) as readonly { readonly id: number }[];
    return rows.map(({ id }) => id);
  });
  const slots = slotsOf(Math.max(1, poolMax(pool) - 1));
  const keeping = keepingOf();
  let sync = 'off';
  let names = '';
  let seen: Settings | undefined;
  let endSurvival: (() => void) | undefined;

  const commit = async (
    query: Query,
    request: CommitRequest,
    started: string | null,
  ): Promise<CommitResult> => {
    const learning = scopes.know(scopesIn(request));
    if (learning) await learning;
    const as: Kept = { standbyNames: names, synchronousCommit: sync, fsync: 'on' };
    const settings = [as.synchronousCommit, ...commitValues(request, scopes), as.standbyNames];
    const answer = answerOf(await query(texts.commit, [request.at, offset(), lockMs, ...settings, started]));
    return committed(answer, as);
  };
  const committed = (answer: string, as: Kept): CommitResult => {
    const {
      now,
      kept,
      old = false,
      refused = [],
      rows,
      counts,
    }: Said = answer.startsWith('{') ? (JSON.parse(answer) as Said) : { now: Number(answer) };
    if (!old) keeping.judge(kept ? keptOf(kept) : as);
    return {
      now,
      isOld: old,
      refused,
      rows: (rows ?? []).map(([scope_id, kind, id, version, data]) =>
        rowOf({ scope_id, kind, id, version: String(version), data, body: null }, scopes),
      ),
      ...countsOf(counts, scopes),
    };
  };
  const load = async (query: Query, { rows, bodies, counts }: LoadRequest): Promise<LoadResult> => {
    const all: readonly RowId[] = [...rows, ...bodies];
    const learning = scopes.know([...all.map(({ scope }) => scope), ...counts]);
    if (learning) await learning;
    const withBody = all.length > 0 ? all.map((_, at) => at >= rows.length) : null;
    const ids = counts.length > 0 ? counts.map(scopes.idOf) : null;
    const answer = await query(texts.load, [offset(), ...nameValues(all, scopes), withBody, ids]);
    const [head, ...found] = answer as readonly RowColumns[];
    return {
      now: Number(head?.version),
      rows: found.map((columns) => rowOf(columns, scopes)),
      ...countsOf(head?.data ? (JSON.parse(head.data) as Said['counts']) : undefined, scopes),
    };
  };
  const within = (query: Query, started: string | null): Within => ({
    commit: (request) => commit(query, request, started),
    load: (request) => load(query, request),
    sweep: async () => 0,
    isAboutOne: () => false,
  });

  return {
    name: 'postgres',
    lanes: Math.min(LANES, Math.max(1, poolMax(pool) - 1)),
    bySender: false,
    timeoutMs,
    open: async () => {
      // A connection that breaks ends the process where nobody listens; the pool replaces it by itself.
      endSurvival ??= survive(pool);
      try {
        seen = await readSettings();
      } catch (error) {
        throw asFault(error);
      }
      checkSettings(seen, options.schema);
      sync = seen.synchronousCommit;
      names = seen.standbyNames;
    },
    durability: async () => {
      seen = await readSettings();
      checkSchema(seen, options.schema);
      names = seen.standbyNames;
      const level = durabilityOf(seen);
      keeping.found(level);
      return level;
    },
    keepDurability: keeping.keep,
    identity: async () => {
      const [row] = (await ask(identitySql(name), [])) as readonly StoreIdentity[];
      if (!row) throw new ConfigError(NO_IDENTITY);
      return { id: row.id, isNew: row.isNew };
    },
    advice: () => (seen ? adviceOf(seen) : ''),
    clock: async () => Number(answerOf(await once(texts.clock, [offset()]))),
    commit: (request) => retried(() => commit(ask, request, null), options.random),
    load: (request) => load(ask, request),
    due: async ({ suspects, max, holdMs, after }) => {
      const answer = suspects
        ? await ask(texts.suspect, [offset(), holdMs])
        : await ask(texts.due, [offset(), max, holdMs, columnText(after)]);
      const [head, ...rows] = answer as readonly RowColumns[];
      const due = rows
        .filter(({ place }) => place != null)
        .toSorted((a, b) => Number(a.place) - Number(b.place));
      const result: DueResult = {
        now: Number(head?.version),
        rows: rows.map((columns) => rowOf(columns, scopes)),
        due: due.map((columns) => rowOf(columns, scopes)),
        nextDueMs: head?.data == null ? undefined : Math.max(0, Number(head.data)),
        isSuspectDue: head?.kind === 's',
        counts: [],
        nonces: undefined,
      };
      return result;
    },
    far: async ({ afterMs, max }) => {
      const [{ now, rows } = { now: '0', rows: null }] = (await ask(
        `SELECT now, rows FROM ${name}.webhook_far($1, $2, $3)`,
        [offset(), afterMs, max],
      )) as readonly {
        readonly now: string;
        readonly rows: readonly (readonly [sender: string, id: string])[] | null;
      }[];
      const ids = (rows ?? []).map(([sender, id]): RowId => ({
        scope: { sender: fromColumnText(sender) },
        kind: 'record',
        id,
      }));
      return { now: Number(now), rows: ids };
    },
    page: async ({ state, sender, limit, after = '0' }) => {
      const values = [offset(), state, sender === undefined ? null : columnText(sender), after, limit + 1];
      const rows = (await ask(texts.page, values)) as readonly RowColumns[];
      const last = rows[limit - 1];
      const page: Page = { rows: rows.slice(0, limit).map((columns) => rowOf(columns, scopes)) };
      return rows.length > limit && last ? { ...page, next: String(last.place) } : page;
    },
    overdueMs: async () => {
      const [row] = (await ask(overdueSql(name), [offset()])) as readonly {
        readonly answer: string | null;
      }[];
      const ms = Number(row?.answer ?? -1);
      return ms < 0 ? undefined : ms;
    },
    sweep: async (of, most) => {
      const isOfSender = of !== 'nonces' && 'noncesOf' in of;
      const scope = isOfSender ? { sender: of.noncesOf } : of;
      const learning = scope === 'nonces' ? undefined : scopes.know([scope]);
      if (learning) await learning;
      const found = scope === 'nonces' ? 0 : scopes.idOf(scope);
      const id = isOfSender ? -found : found;
      return Number(answerOf(await ask(texts.clear, [id, most, offset()])));
    },
    scopes: async () => {
      const text = `SELECT sender, key FROM ${name}.webhook_scope ORDER BY id`;
      const rows = await ask(text, []).catch((error: unknown) => {
        throw asFault(error);
      });
      return (rows as readonly { readonly sender: string; readonly key: string }[]).map(scopeFrom);
    },
    transaction: async ({ leaseMs = 0, onLateUse = () => undefined }, work, over) => {
      if (poolMax(pool) < 2) throw new ConfigError(TOO_SMALL);
      const idleMs = options.idleInTransactionMs ?? Math.max(Math.ceil(leaseMs), LEAST_IDLE_MS);
      const parts = { pool, timeoutMs, known: known.passed, within, idleMs, onLateUse };
      return slots.run(() => runTransaction(parts, work, over), over);
    },
    isAboutOne: mayBeOneCalls,
    asFault,
    close: async () => {
      endSurvival?.();
    },
  };
}

const TOO_SMALL =
  'ctx.transaction: the pool has one connection, which the transaction would keep from the store. Set its max to 2 or more.';

/** $1 is the clock's offset. Of each scope the first entry of its index is read. @param name of the schema, quoted. */
export function overdueSql(name: string): string {
  return `SELECT (${name}.webhook_clock($1) - min(d.due_at))::text AS answer FROM (
    SELECT f.due_at FROM ${name}.webhook_scope s CROSS JOIN LATERAL
      (SELECT r.due_at FROM ${name}.webhook_row r WHERE r.scope_id = s.id AND r.due_at IS NOT NULL ORDER BY r.due_at LIMIT 1) f
      WHERE s.key = ''
    UNION ALL SELECT min(r.suspect_at) FROM ${name}.webhook_row r WHERE r.suspect_at IS NOT NULL) d`;
}

const NO_IDENTITY =
  'postgresStore: webhook_identity has no row. Restore it from a backup, or make the schema anew.';

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

function* scopesIn({ units, counts }: CommitRequest): Iterable<Scope> {
  for (const { expects, writes, counts: exact } of units) {
    for (const { scope } of expects) yield scope;
    for (const { scope } of writes) yield scope;
    for (const { scope } of exact) yield scope;
  }
  yield* counts;
}
