// Settings and rights of a Postgres server: read, checked, and judged for durability (admission.md §7.2, §7.3, §9.3,
// §9.4).
// Called by postgres-backend.ts.
import { ConfigError } from '../../shared/errors.ts';
import type { Durability } from '../store.ts';
import { ADDRESS } from './postgres-client.ts';
import { checkVersion } from './postgres-schema.ts';

/** The settings of the server, which one query returns as text. So the pool's type parsers do not matter. */
export interface Settings {
  readonly version: number;
  readonly versionName: string;
  readonly encoding: string;
  readonly standby: boolean;
  readonly readOnly: boolean;
  readonly isolation: string;
  readonly synchronousCommit: string;
  readonly fsync: string;
  readonly standbyNames: string;
  /**
   * The number of connected standbys for which commits wait. Also 0 if the role may not see standbys (`pg_monitor`).
   */
  readonly standbys: number;
  readonly unlogged: readonly string[];
  /** The GRANT statements that an operator has to run, because the role lacks rights. */
  readonly grants: readonly string[];
  /** The version of the store's schema. 0: it has no tables; -1: it has tables, but the version was not read. */
  readonly schemaVersion: number;
}

/**
 * Selects the GRANT statements for the rights that the role lacks. Objects that lack the same rights share a statement.
 *
 * The store needs USAGE of the schema, and all rights on rows of its tables. It also needs EXECUTE on its functions,
 * which everybody has unless it was revoked. The table of the version is only read. Rows of a view, if there is
 * one, are read and locked. Identity columns need no right on their sequences. Statements name each object and not
 * ALL … IN SCHEMA, because the schema may be shared.
 */
const GRANTS = `
SELECT json_agg(format('GRANT %s ON %s TO %I;', lacked, objects, current_user) ORDER BY objects) FROM (
  SELECT lacked, min(kind) || string_agg(object, ', ' ORDER BY object) AS objects FROM (
    SELECT kind, object, string_agg(lack, ', ' ORDER BY place) AS lacked FROM (
      SELECT 1 AS place, 'SCHEMA ' AS kind, quote_ident(nspname) AS object, 'USAGE' AS lack
        FROM pg_namespace WHERE nspname = $1 AND NOT has_schema_privilege(oid, 'USAGE')
      UNION ALL
      SELECT place, '', format('%I.%I', nspname, relname), lack
        FROM pg_namespace n JOIN pg_class c ON c.relnamespace = n.oid
        CROSS JOIN unnest(ARRAY['SELECT', 'INSERT', 'UPDATE', 'DELETE']) WITH ORDINALITY AS needed (lack, place)
        WHERE nspname = $1 AND relname LIKE 'webhook\\_%' AND CASE relkind WHEN 'r' THEN relname <> 'webhook_schema'
          OR lack = 'SELECT' WHEN 'v' THEN lack IN ('SELECT', 'UPDATE') ELSE false END
          AND NOT has_table_privilege(c.oid, lack)
      UNION ALL
      SELECT 1, 'FUNCTION ', format('%I.%I', nspname, proname), 'EXECUTE'
        FROM pg_namespace n JOIN pg_proc p ON p.pronamespace = n.oid
        WHERE nspname = $1 AND proname LIKE 'webhook\\_%' AND NOT has_function_privilege(p.oid, 'EXECUTE')
    ) AS each GROUP BY kind, object
  ) AS lacking GROUP BY kind, lacked
) AS granted`;

/**
 * Selects the settings as one JSON text; $1 is the schema. The number of the schema's version is read separately,
 * because its table may be missing.
 */
export const SETTINGS_SQL: string = `
SELECT json_build_object(
  'version', current_setting('server_version_num')::integer,
  'versionName', current_setting('server_version'),
  'encoding', current_setting('server_encoding'),
  'standby', pg_is_in_recovery(),
  'readOnly', current_setting('transaction_read_only') = 'on',
  'isolation', current_setting('default_transaction_isolation'),
  'synchronousCommit', current_setting('synchronous_commit'),
  'fsync', current_setting('fsync'),
  'standbyNames', current_setting('synchronous_standby_names'),
  'standbys', (SELECT count(*) FROM pg_stat_replication WHERE sync_state IN ('sync', 'quorum')),
  'unlogged', coalesce((SELECT json_agg(c.relname ORDER BY c.relname)
    FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE n.nspname = $1 AND c.relkind = 'r' AND c.relname LIKE 'webhook\\_%' AND c.relpersistence <> 'p'), '[]'),
  'grants', coalesce((${GRANTS}), '[]'),
  'schemaVersion', (SELECT -count(*) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE n.nspname = $1 AND c.relname = 'webhook_schema')
)::text AS answer`;

/** The oldest server version with the functions, generated columns and plans that the store uses. */
const OLDEST = 120_000;

/**
 * Checks the settings of the server and of the schema.
 *
 * @throws ConfigError with the setting to change.
 */
export function checkSettings(settings: Settings, schema: string): void {
  const wrong = WRONG.find(([is]) => is(settings));
  if (wrong) throw new ConfigError(`postgresStore: ${wrong[1](settings)}`);
  checkSchema(settings, schema);
}

/**
 * Checks the role's rights and the schema's version.
 *
 * @throws ConfigError with the statements to run.
 */
export function checkSchema({ schemaVersion, grants }: Settings, schema: string): void {
  if (schemaVersion !== 0 && grants.length > 0) {
    throw new ConfigError(`postgresStore: the role lacks rights. Run: ${grants.join(' ')}`);
  }
  checkVersion(schemaVersion, schema);
}

type Wrong = readonly [is: (settings: Settings) => boolean, says: (settings: Settings) => string];

const WRONG: readonly Wrong[] = [
  [
    ({ version }) => version < OLDEST,
    ({ versionName }) => `the server is PostgreSQL ${versionName}. Use 12 or newer.`,
  ],
  [
    ({ standby }) => standby,
    () => `the server is a standby, which is read-only. Connect the pool to the primary. ${ADDRESS}`,
  ],
  [
    ({ readOnly }) => readOnly,
    () =>
      'transactions are read-only. Set default_transaction_read_only = off for the role and the database.',
  ],
  [
    ({ isolation }) => isolation !== 'read committed',
    ({ isolation }) =>
      `default_transaction_isolation is ${isolation}. Set it to 'read committed' for the store's role: rows are locked explicitly.`,
  ],
  [
    ({ encoding }) => encoding !== 'UTF8',
    ({ encoding }) => `the database's encoding is ${encoding}. Use a database with encoding UTF8.`,
  ],
];

/** The values of `synchronous_commit` at which a commit waits until synchronous standbys have it on disk. */
const WAITS_FOR_STANDBYS: readonly string[] = ['on', 'remote_apply'];

/** Returns the reasons why an answered commit may not survive a power failure, each with its fix. */
export function weaknesses({ fsync, synchronousCommit, unlogged }: Settings): readonly string[] {
  return [
    ...(fsync === 'on' ? [] : ['fsync is off: set fsync = on.']),
    ...(synchronousCommit === 'off'
      ? [
          'synchronous_commit is off: set it to on for the role and the database (ALTER ROLE … SET synchronous_commit = on).',
        ]
      : []),
    ...unlogged.map((table) => `The table ${table} is unlogged: ALTER TABLE ${table} SET LOGGED.`),
  ];
}

/** The settings under which a commit ran, as its result reports them. */
export type Kept = Pick<Settings, 'standbyNames' | 'synchronousCommit' | 'fsync'>;

/**
 * Returns the durability of a commit by the settings under which it ran. It is `failover` if the server answers no
 * commit before a standby has it.
 */
export function levelOf({ standbyNames, synchronousCommit, fsync }: Kept): Durability {
  if (fsync !== 'on' || synchronousCommit === 'off') return 'process';
  return standbyNames !== '' && WAITS_FOR_STANDBYS.includes(synchronousCommit) ? 'failover' : 'disk';
}

export function keptText({ standbyNames, synchronousCommit, fsync }: Kept): string {
  return `synchronous_standby_names = '${standbyNames}', synchronous_commit = ${synchronousCommit}, fsync = ${fsync}`;
}

/** Returns the durability under the server's present settings. It is `failover` only if a standby is connected. */
export function durabilityOf(settings: Settings): Durability {
  if (weaknesses(settings).length > 0) return 'process';
  const level = levelOf(settings);
  return level === 'failover' && settings.standbys === 0 ? 'disk' : level;
}

/** Makes the text of `Store.durabilityAdvice`. */
export function adviceOf(settings: Settings): string {
  const weak = weaknesses(settings);
  if (weak.length > 0) return `Postgres: ${weak.join(' ')}`;
  return "Postgres: for 'failover' set synchronous_standby_names to a standby that is connected and synchronous_commit to on, and grant the role pg_monitor.";
}
