// Settings and rights of a MySQL server: read, checked, and judged for durability (admission.md §7.2, §7.3, §9.6).
// Called by mysql-backend.ts and `migrate`.
import { ConfigError } from '../../shared/errors.ts';
import type { Durability } from '../store.ts';
import type { Query } from '../sql/sql-transaction.ts';
import { type ResultSets, textOf, errorNumber } from './mysql-client.ts';

/** The store's tables, each with one of its columns, for statements that check the user's rights. */
const TABLES = { row: 'version', scope: 'id', tally: 'bytes', turn: 'id', identity: 'told' };

/** Calls of the store's procedures with arguments with which they change nothing, to check the right to call them. */
const CALLS: readonly string[] = [
  'begin(NULL)',
  'clear(0, 0, 0)',
  'commit(TRUE, 0, 0, 0, NULL, NULL, NULL, NULL)',
  "counts('[]')",
  "due(FALSE, 0, 0, 0, 0, '')",
  'load(0, NULL, NULL)',
  "look('[]', NULL)",
];

const DENIED: readonly (number | undefined)[] = [1044, 1142, 1143, 1370];

/** A statement that changes nothing, with the right that it needs and the table or procedure that the right is for. */
type Attempt = readonly [right: string, object: string, sql: string];

/**
 * Returns a few statements that together use every right on every table. If all of them succeed, the rights need not be
 * checked one by one. Each INSERT reads its own table, so it uses SELECT too.
 */
function allTables(name: string): readonly string[] {
  const tables = Object.entries(TABLES).map(([each, column]) => [`${name}.webhook_${each}`, column] as const);
  const all = tables.map(([table]) => table).join(', ');
  return [
    ...tables.map(([table]) => `INSERT INTO ${table} SELECT * FROM ${table} WHERE FALSE`),
    `UPDATE ${all} SET ${tables.map(([table, column]) => `${table}.${column} = 0`).join(', ')} WHERE FALSE`,
    `DELETE ${all} FROM ${all} WHERE FALSE`,
  ];
}

function eachTable(name: string): readonly Attempt[] {
  return Object.entries(TABLES).flatMap(([each, column]): readonly Attempt[] => {
    const table = `${name}.webhook_${each}`;
    return [
      ['SELECT', table, `SELECT ${column} FROM ${table} LIMIT 0`],
      ['INSERT', table, `INSERT INTO ${table} SELECT * FROM ${table} WHERE FALSE`],
      ['UPDATE', table, `UPDATE ${table} SET ${column} = 0 WHERE FALSE`],
      ['DELETE', table, `DELETE FROM ${table} WHERE FALSE`],
    ];
  });
}

const eachCall = (name: string): readonly Attempt[] =>
  CALLS.map((call) => [
    'EXECUTE',
    `PROCEDURE ${name}.webhook_${call.replace(/\(.*/, '')}`,
    `CALL ${name}.webhook_${call}`,
  ]);

/**
 * Checks the user's rights by running statements that change nothing.
 *
 * @param name of the database, quoted.
 * @throws ConfigError with the statements that grant the missing rights.
 */
export async function checkRights(ask: Query<ResultSets>, name: string): Promise<void> {
  const lacked = new Map<string, string[]>();
  for (const [right, object, sql] of [...(await eachTableOrNone(ask, name)), ...eachCall(name)]) {
    // This INSERT also reads its table, so it fails without SELECT. Then it cannot show if the right INSERT is lacking
    // too.
    if (right === 'INSERT' && lacked.has(object)) continue;
    try {
      await ask(sql, []);
    } catch (error) {
      const number = errorNumber(error);
      if (!DENIED.includes(number)) throw error;
      // A procedure call may fail because of a missing right on a table. That right is listed already.
      if (right === 'EXECUTE' && number !== 1370 && lacked.size > 0) continue;
      lacked.set(object, [...(lacked.get(object) ?? []), right]);
    }
  }
  if (lacked.size === 0) return;
  const [[row] = []] = await ask("SELECT REPLACE(CONCAT('`', CURRENT_USER(), '`'), '@', '`@`') AS user", []);
  const grants = [...lacked].map(
    ([of, rights]) => `GRANT ${rights.join(', ')} ON ${of} TO ${String(row?.['user'])};`,
  );
  throw new ConfigError(`mysqlStore: the user lacks rights. Run: ${grants.join(' ')}`);
}

/**
 * Returns no statement if those on all tables succeed. Otherwise returns one for each table and right, to find the
 * lacking rights.
 */
async function eachTableOrNone(ask: Query<ResultSets>, name: string): Promise<readonly Attempt[]> {
  try {
    for (const sql of allTables(name)) await ask(sql, []);
    return [];
  } catch (error) {
    if (errorNumber(error) === undefined) throw error;
    return eachTable(name);
  }
}

/** The settings of the server, and the store's tables that have a wrong engine. */
export interface Settings extends Kept {
  /** The version of the server, e.g. `10.11.6-MariaDB`. */
  readonly version: string;
  readonly autocommit: boolean;
  readonly readOnly: boolean;
  readonly binlogFormat: string;
  readonly maxPacket: number;
  /** The store's tables whose engine is not InnoDB, which makes commits less durable. */
  readonly others: readonly string[];
}

/** The settings under which a commit ran, as its result reports them. */
interface Kept {
  readonly flush: number;
  readonly hasLog: boolean;
  readonly syncLog: number;
}

/**
 * Returns the name of the pool's database.
 *
 * @throws ConfigError if the pool names none.
 */
export async function databaseOf(who: string, ask: Query<ResultSets>): Promise<string> {
  const [[row] = []] = await ask('SELECT HEX(DATABASE()) AS name', []);
  const { name } = row ?? {};
  if (typeof name === 'string') return Buffer.from(name, 'hex').toString('utf8');
  throw new ConfigError(`${who}: the pool names no database. Give it one (database: 'proto_webhooks').`);
}

const SETTINGS_SQL = `SELECT VERSION() AS version, @@autocommit AS autocommit,
  @@GLOBAL.read_only OR @@GLOBAL.innodb_read_only AS readOnly,
  @@GLOBAL.binlog_format AS binlogFormat, @@GLOBAL.max_allowed_packet AS maxPacket,
  @@GLOBAL.innodb_flush_log_at_trx_commit AS flush, @@GLOBAL.log_bin AS hasLog, @@GLOBAL.sync_binlog AS syncLog`;

const OTHERS_SQL = `SELECT CAST(TABLE_NAME AS BINARY) AS name FROM information_schema.TABLES WHERE TABLE_SCHEMA = DATABASE()
  AND LEFT(TABLE_NAME, 8) = 'webhook_' AND ENGINE <> 'InnoDB'`;

export async function readSettings(ask: Query<ResultSets>): Promise<Settings> {
  const [[row = {}] = []] = await ask(SETTINGS_SQL, []);
  const [others = []] = await ask(OTHERS_SQL, []);
  const { version, binlogFormat } = row as Readonly<Record<string, string | null>>;
  return {
    version: version ?? '',
    autocommit: Number(row['autocommit']) === 1,
    readOnly: Number(row['readOnly']) === 1,
    binlogFormat: binlogFormat ?? '',
    maxPacket: Number(row['maxPacket']),
    others: others.map(({ name }) => textOf(name)),
    ...keptOf(row),
  };
}

export function keptOf(row: Readonly<Record<string, unknown>>): Kept {
  const { flush, hasLog, syncLog } = row;
  return { flush: Number(flush), hasLog: Number(hasLog) === 1, syncLog: Number(syncLog) };
}

/** True for a server older than the first version with SKIP LOCKED and JSON_TABLE. */
function isTooOld(version: string): boolean {
  const [major = 0, minor = 0, patch = 0] = version.split(/[.-]/).map(Number);
  const number = major * 1e6 + minor * 1e3 + patch;
  return number < (/mariadb/i.test(version) ? 10_006_000 : 8_000_019);
}

/** The smallest `max_allowed_packet` that the store accepts: the default of MariaDB. Bytes: 16 MiB. */
const LEAST_PACKET = 16_777_216;

type Wrong = readonly [is: (settings: Settings) => boolean, says: (settings: Settings) => string];

const WRONG: readonly Wrong[] = [
  [
    ({ version }) => isTooOld(version),
    ({ version }) => `the server is ${version}. Use MariaDB 10.6 or newer (tested: 10.11), or MySQL 8.0.19.`,
  ],
  [({ readOnly }) => readOnly, () => 'the server is read-only. Connect the pool to the primary.'],
  [({ autocommit }) => !autocommit, () => 'autocommit is off for the pool. Set autocommit = 1.'],
  [
    ({ hasLog, binlogFormat }) => hasLog && binlogFormat === 'STATEMENT',
    () => 'binlog_format is STATEMENT, with which READ COMMITTED writes nothing. Set it to ROW.',
  ],
  [
    ({ maxPacket }) => maxPacket < LEAST_PACKET,
    ({ maxPacket }) => `max_allowed_packet is ${maxPacket}. Set it to ${LEAST_PACKET} or more.`,
  ],
];

/**
 * Checks the settings of the server.
 *
 * @throws ConfigError with the setting to change.
 */
export function checkSettings(settings: Settings): void {
  const wrong = WRONG.find(([is]) => is(settings));
  if (wrong) throw new ConfigError(`mysqlStore: ${wrong[1](settings)}`);
}

/**
 * The values of `innodb_flush_log_at_trx_commit` at which each commit is flushed to disk. MariaDB's 3 flushes once
 * more.
 */
const FLUSHES: readonly number[] = [1, 3];

/**
 * Returns the durability of a commit by the settings under which it ran. It is never `failover`, because the server
 * does not report if a replica has the commit.
 */
export function levelOf({ flush, hasLog, syncLog }: Kept): Durability {
  return FLUSHES.includes(flush) && (!hasLog || syncLog === 1) ? 'disk' : 'process';
}

export function durabilityOf(settings: Settings): Durability {
  return settings.others.length > 0 ? 'process' : levelOf(settings);
}

export function keptText({ flush, syncLog }: Kept): string {
  return `innodb_flush_log_at_trx_commit = ${flush}, sync_binlog = ${syncLog}`;
}

/** Makes the text of `Store.durabilityAdvice`. */
export function adviceOf(settings: Settings): string {
  const { others } = settings;
  if (others.length > 0)
    return `MySQL: ${others.map((name) => `ALTER TABLE ${name} ENGINE = InnoDB;`).join(' ')}`;
  if (levelOf(settings) === 'disk') return "MySQL: this store gives 'disk' at most.";
  return 'MySQL: set innodb_flush_log_at_trx_commit = 1, and sync_binlog = 1 if the binary log is on.';
}
