// The backend on MariaDB and MySQL: stored procedures commit and load rows, and SELECTs do most of the searches
// (admission.md §9.6).
// Called by `src/stores/mysql.ts`; sql-backend.ts has the parts that Postgres shares.
import { ConfigError, Fault } from '../../shared/errors.ts';
import type { InboxQuery } from '../store.ts';
import { turnRanges } from '../optimistic/commit-unit.ts';
import { type Calls, LOCK_SHARE, type SqlBackend, sqlBackend, type SqlOptions } from '../sql/sql-backend.ts';
import { type MadeAt, onConnection } from '../sql/connections.ts';
import { type Query, type Sessions, within } from '../sql/sql-transaction.ts';
import { LETTER, scopeFrom } from '../sql/row-lines.ts';
import { columnText } from '../text.ts';
import {
  type ResultSets,
  askOn,
  checkOut,
  type Columns,
  connectionsOf,
  giveBack,
  readOnlyIn,
  type MysqlConnection,
  type MysqlPool,
  poolMax,
  watchMade,
  textOf,
  asFault,
  errorNumber,
  isOfContent,
  isRetryable,
  mayBeOneCalls,
  wronglyGiven,
} from './mysql-client.ts';
import { listRows } from './mysql-list.ts';
import { commitValues, countedOf, countsOf, namesOf, refusedOf, rowsIn, rowsOf } from './mysql-rows.ts';
import { checkVersion } from './mysql-schema.ts';
import {
  adviceOf,
  checkRights,
  checkSettings,
  databaseOf,
  durabilityOf,
  keptOf,
  keptText,
  levelOf,
  readSettings,
  type Settings,
} from './mysql-settings.ts';

/**
 * Makes the object that begins and ends transactions of `ctx.transaction`.
 *
 * @param timeoutMs the time limit of each statement.
 * @param begin makes the statement that begins a transaction. `idleMs` is the longest pause between its statements.
 */
function sessionsOf(
  pool: MysqlPool,
  timeoutMs: number,
  begin: (idleMs: number) => string,
): Sessions<MysqlConnection, ResultSets> {
  const withMappedErrors = <T>(running: Promise<T>): Promise<T> =>
    running.catch((error: unknown) => {
      throw isEnded(error) ? new ConfigError(ENDED, { cause: error }) : asFault(error);
    });
  const run = async (connection: MysqlConnection, ...statements: readonly string[]): Promise<void> => {
    for (const sql of statements)
      await withMappedErrors(within(connection.query(sql), timeoutMs, `MySQL: ${sql}`));
  };
  return {
    checkOut: () => withMappedErrors(checkOut(pool, timeoutMs)),
    begin: async (connection, idleMs) => {
      // Without a limit for idle transactions, a process that freezes during one would keep the rows that it wrote
      // locked for hours.
      await run(connection, begin(idleMs));
      return '';
    },
    queryOn: (connection) => (sql, values) => withMappedErrors(askOn(connection, timeoutMs)(sql, values)),
    commit: async (connection) => {
      await run(connection, BACK);
      try {
        await within(connection.query('COMMIT'), timeoutMs, 'MySQL: COMMIT');
      } catch (error) {
        // Some storage engines check constraints of the user's tables only at COMMIT. Such an error is passed to the
        // user unchanged.
        throw isOfContent(error) ? error : asFault(error);
      }
    },
    rollBack: (connection) => run(connection, 'ROLLBACK', BACK),
    giveBack,
    readOnly: (error) => {
      const found = readOnlyIn(error);
      return found === undefined ? undefined : asFault(found);
    },
  };
}

const BACK = 'SET SESSION wait_timeout = @webhook_wait';

/**
 * True for the error `SAVEPOINT proto_webhooks does not exist`: the user's transaction has ended, and the savepoint
 * with it.
 */
const isEnded = (error: unknown): boolean =>
  errorNumber(error) === 1305 && /\bproto_webhooks\b/.test((error as Error).message);

const ENDED =
  'ctx.transaction: its transaction had ended before the function did, so the event could not be completed with it. ' +
  'Leave out COMMIT, ROLLBACK and what commits by itself (CREATE, ALTER, TRUNCATE): return to commit, throw to roll back. ' +
  'And let errors through: the server rolls all back at a deadlock.';

interface MysqlOptions extends SqlOptions {
  readonly pool: MysqlPool;
}

const CLOCK = "TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) DIV 1000";

/**
 * Makes the backend on MariaDB and MySQL. Each change is one procedure call, so a process that stops during a change
 * leaves no lock behind.
 */
export function mysqlBackend(options: MysqlOptions): SqlBackend<MysqlConnection> {
  const { pool, timeoutMs } = options;
  const madeAt: MadeAt = new WeakMap();
  const connections = connectionsOf(pool, timeoutMs, madeAt);
  const once: Query<ResultSets> = (sql, values) =>
    onConnection(connections, (connection) => askOn(connection, timeoutMs)(sql, values));
  const settingsNow = (): Promise<Settings> =>
    onConnection(
      connections,
      (connection) => readSettings(askOn(connection, timeoutMs)),
      ({ readOnly }) => readOnly,
    );
  let endWatch: (() => void) | undefined;
  // Statements name tables with their database, because a user's function may have selected another database.
  const database = { text: '', name: '', lockS: Math.max(1, Math.floor((timeoutMs * LOCK_SHARE) / 1000)) };
  let seen: Settings | undefined;
  const look = async (): Promise<void> => {
    const [[table] = []] = await once(
      "SELECT 1 FROM information_schema.TABLES WHERE TABLE_SCHEMA = ? AND TABLE_NAME = 'webhook_schema'",
      [database.text],
    );
    const [[row] = []] = table ? await once(`SELECT version FROM ${database.name}.webhook_schema`, []) : [];
    checkVersion(Number(row?.['version'] ?? 0), database.text);
  };
  return sqlBackend(
    {
      name: 'mysql',
      who: 'MySQL',
      max: poolMax(pool),
      maxOption: 'connectionLimit',
      once,
      sessions: sessionsOf(
        pool,
        timeoutMs,
        (idleMs) => `CALL ${database.name}.webhook_begin(${Math.ceil(idleMs / 1000)})`,
      ),
      callsOn: (ask, offset) => callsOn(ask, offset, database),
      clock: async (offset) => {
        const [[row] = []] = await once(`SELECT ${CLOCK} AS now`, []);
        return Number(row?.['now']) + offset;
      },
      open: async () => {
        endWatch ??= watchMade(pool, madeAt);
        database.text = await databaseOf('mysqlStore', once);
        database.name = `\`${database.text.replaceAll('`', '``')}\``;
        seen = await settingsNow();
        checkSettings(seen);
        await look();
        await checkRights(once, database.name);
      },
      look,
      durability: async () => {
        seen = await settingsNow();
        return durabilityOf(seen);
      },
      advice: () => (seen ? adviceOf(seen) : ''),
      close: () => {
        endWatch?.();
        endWatch = undefined;
      },
      isRetryable,
      isAboutOne: mayBeOneCalls,
      asFault,
      wronglyGiven: (error) => wronglyGiven('mysqlStore', error),
    },
    options,
  );
}

/** The size of the column `webhook_scope.sender`, bytes. All columns of an InnoDB index may have 3,072 together. */
const MOST_SENDER_BYTES = 1500;

/**
 * Checks a sender's length. JSON_TABLE shortens a longer text without an error, so two senders could become one.
 *
 * @throws Fault `store_unavailable` for a sender whose UTF-8 is longer than its column.
 */
export function checkSender(sender: string, column: string = columnText(sender)): void {
  if (Buffer.byteLength(column) <= MOST_SENDER_BYTES) return;
  const shown = sender.slice(0, 60);
  throw new Fault(
    'store_unavailable',
    `MySQL: the sender ${shown}… has over 1,500 bytes, and cannot be stored. Give it a shorter URL.`,
  );
}

function callsOn(
  ask: Query<ResultSets>,
  offset: () => number,
  database: { readonly name: string; readonly lockS: number },
): Calls {
  const table = (name: string): string => `${database.name}.webhook_${name}`;
  /**
   * Calls a stored procedure.
   *
   * @returns the first row of its first result, and all rows of its further results.
   */
  const call = async (
    name: string,
    ...values: readonly unknown[]
  ): Promise<[Columns, readonly Columns[]]> => {
    const [[head = {}] = [], ...found] = await ask(
      `CALL ${table(name)}(${values.map(() => '?').join(', ')})`,
      values,
    );
    return [head, found.flat()];
  };
  return {
    idsOf: async (senders, keys) => {
      for (const sender of senders) checkSender(sender, sender);
      const wanted = JSON.stringify(senders.map((sender, at) => [sender, keys[at]]));
      const from = `JSON_TABLE(CONVERT(? USING utf8mb4), '$[*]' COLUMNS (place FOR ORDINALITY,
        sender VARBINARY(1500) PATH '$[0]', keyid VARBINARY(1540) PATH '$[1]')) e
        LEFT JOIN ${table('scope')} s ON s.sender = e.sender AND s.keyid = e.keyid`;
      const find = async (): Promise<readonly unknown[]> =>
        (await ask(`SELECT s.id FROM ${from} ORDER BY e.place`, [wanted])).flat().map(({ id }) => id);
      let ids = await find();
      if (ids.includes(null)) {
        // Inserts only the scopes that are missing, because an attempt to insert an existing one would also use up an
        // id.
        const insert = `INSERT INTO ${table('scope')} (sender, keyid) SELECT e.sender, e.keyid FROM ${from}
          WHERE s.id IS NULL ORDER BY e.sender, e.keyid ON DUPLICATE KEY UPDATE sender = VALUES(sender)`;
        await ask(insert, [wanted]);
        ids = await find();
      }
      return ids.map(Number);
    },
    commit: async (request, ids, started) => {
      const values = commitValues(request, ids);
      const [head, rows] = await call(
        'commit',
        started === null,
        request.at,
        offset(),
        database.lockS,
        ...values,
      );
      const kept = keptOf(head);
      return {
        now: Number(head['now']),
        isOld: Number(head['isOld']) === 1,
        refused: refusedOf(request, head['refused']),
        rows: rowsOf(rows),
        ...countsOf(rows, ids),
        level: levelOf(kept),
        settings: () => keptText(kept),
      };
    },
    load: async ({ rows, bodies, counts }, ids) => {
      const names = namesOf(rows, bodies, ids);
      const [head, found] = await call('load', offset(), names, countedOf(counts, ids));
      return { now: Number(head['now']), rows: rowsOf(found), ...countsOf(found, ids) };
    },
    due: async ({ suspects, max, holdMs, longestMs, after }) => {
      const [head, found] = await call('due', suspects, offset(), max, holdMs, longestMs, columnText(after));
      const [now, next, rows] = [Number(head['now']), head['next'], rowsOf(found)];
      const names = JSON.parse(textOf(head['names'])) as readonly (readonly [
        number,
        number,
        string,
        string,
      ])[];
      const due = names.flatMap(([, , , id]) => rows.filter((row) => row.id === id && row.body));
      return {
        now,
        rows,
        due: [...new Set(due)],
        nextDueMs: next === null ? undefined : Math.max(0, Number(next) - now),
        isSuspectDue: Number(head['hasSuspect']) === 1,
        counts: [],
        nonces: undefined,
      };
    },
    page: async ({ state, sender, limit, after = '0' }) => {
      const of = sender === undefined ? null : columnText(sender);
      const [rows = []] = await ask(
        `SELECT s.sender, s.keyid, r.kind, r.id, r.version, r.data, r.seq FROM ${table('row')} r FORCE INDEX (webhook_row_list)
          JOIN ${table('scope')} s ON s.id = r.scope_id WHERE r.list = ? AND r.seq > ? AND s.sender = COALESCE(?, s.sender)
          AND (r.expires_at IS NULL OR r.expires_at > ${CLOCK} + ?) ORDER BY r.seq LIMIT ?`,
        [state, after, of, offset(), limit + 1],
      );
      return rowsOf(rows).map((row, at) => ({ ...row, place: String(rows[at]?.['seq']) }));
    },
    listCounts: async () => {
      const [rows = []] = await ask(
        `SELECT s.sender, s.keyid, r.kind, r.id, r.version, r.data, g.list, g.many FROM (
            SELECT scope_id, list, COUNT(*) AS many, MIN(seq) AS seq FROM ${table('row')} FORCE INDEX (webhook_row_list)
              WHERE list IS NOT NULL AND (expires_at IS NULL OR expires_at > ${CLOCK} + ?) GROUP BY scope_id, list) g
          JOIN ${table('row')} r FORCE INDEX (webhook_row_list) ON r.list = g.list AND r.seq = g.seq
          JOIN ${table('scope')} s ON s.id = g.scope_id`,
        [offset()],
      );
      return rowsOf(rows).map((oldest, at) => ({
        list: textOf(rows[at]?.['list']) as InboxQuery['state'],
        count: Number(rows[at]?.['many']),
        oldest,
      }));
    },
    overdueMs: async () => {
      const when = `FROM ${table('row')} FORCE INDEX (webhook_row_when) WHERE`;
      const [[at = {}] = []] = await ask(
        `SELECT ${CLOCK} + ? AS now, (SELECT due_at ${when} crashes IS NULL AND due_at >= 0 ORDER BY due_at LIMIT 1) AS due,
          (SELECT MIN(suspect_at) ${when} crashes IS NOT NULL) AS suspect`,
        [offset()],
      );
      const ms =
        Number(at['now']) - Math.min(...[at['due'], at['suspect']].map((one) => Number(one ?? Infinity)));
      return ms < 0 ? undefined : ms;
    },
    turns: async ({ kind, max, longestMs, after }) => {
      const [[head = {}] = []] = await ask(`SELECT ${CLOCK} + ? AS now`, [offset()]);
      const now = Number(head['now']);
      const [[least, latest], [far, last]] = turnRanges(kind, now, longestMs);
      const waits = `${table('row')} r FORCE INDEX (webhook_row_waits)`;
      const isDue = '(r.waits_for >= ? AND r.waits_for <= ? OR r.waits_for >= ? AND r.waits_for <= ?)';
      const dueValues = [least, latest, far, last];
      // The statement first selects at most `max + 1` senders, beginning after `after`, and then the names of their
      // rows. So it sorts no contents of rows.
      const [rows = []] = await ask(
        `SELECT t.sender, '' AS keyid, r.kind, r.id, r.version, r.data, t.place FROM (
          SELECT d.*, ROW_NUMBER() OVER (ORDER BY d.turn, d.sender <= ?, d.sender) AS place FROM (
            SELECT s.sender, r.scope_id, r.id, ROW_NUMBER() OVER (PARTITION BY r.scope_id ORDER BY r.waits_for, r.seq) AS turn
            FROM ${waits} STRAIGHT_JOIN (SELECT s.id, s.sender
                FROM (SELECT DISTINCT r.scope_id FROM ${waits} WHERE ${isDue}) o STRAIGHT_JOIN ${table('scope')} s ON s.id = o.scope_id
                ORDER BY s.sender <= ?, s.sender LIMIT ?) s ON s.id = r.scope_id
              WHERE ${isDue}) d) t
        STRAIGHT_JOIN ${table('row')} r FORCE INDEX (PRIMARY) ON r.scope_id = t.scope_id AND r.kind = ? AND r.id = t.id
        WHERE t.place <= ? ORDER BY t.place`,
        [columnText(after), ...dueValues, columnText(after), max + 1, ...dueValues, LETTER[kind], max + 1],
      );
      const [[next = {}] = []] = await ask(
        `SELECT MIN(r.waits_for) AS turn FROM ${waits} WHERE r.waits_for > ? AND r.waits_for <= ?`,
        [latest, last],
      );
      const turn = next['turn'];
      return { now, next: turn == null ? null : textOf(turn), rows: rowsIn(rows) };
    },
    listed: (request) => listRows(ask, table, request),
    clear: async (scope, most) => Number((await call('clear', scope, most, offset()))[0]['deleted']),
    identity: async () => {
      // If several processes run this together, only one changes `told`, and so only one is told that the store is new.
      const [[told] = []] = await ask(`UPDATE ${table('identity')} SET told = TRUE WHERE NOT told`, []);
      const [[row] = []] = await ask(`SELECT id FROM ${table('identity')}`, []);
      return row && { id: textOf(row['id']), isNew: told?.['affectedRows'] === 1 };
    },
    scopes: async () => {
      const [rows = []] = await ask(`SELECT sender, keyid FROM ${table('scope')} ORDER BY id`, []);
      return rows.map(({ sender, keyid }) => scopeFrom({ sender: textOf(sender), key: textOf(keyid) }));
    },
  };
}
