import { ConfigError } from '../../errors.ts';
import type { Query } from '../sql/backend.ts';
import type { Answer } from './client.ts';
import { errorNumber } from './faults.ts';

/** A column of each table. */
const TABLES = { row: 'version', scope: 'id', tally: 'bytes', turn: 'id', identity: 'told' };

/** Calls that do nothing. */
const CALLS: readonly string[] = [
  'begin(NULL)',
  'clear(0, 0, 0)',
  'commit(TRUE, 0, 0, 0, NULL, NULL, NULL, NULL, NULL)',
  "counts('[]')",
  "due(FALSE, 0, 0, 0, '')",
  'far(0, 0, 0)',
  'load(0, NULL, NULL)',
  "look('[]', NULL)",
];

const DENIED: readonly (number | undefined)[] = [1044, 1142, 1143, 1370];

/**
 * Tries what the store does, by statements that change nothing.
 * @param name of the database, quoted.
 * @throws ConfigError with the statements that give the rights that lack.
 */
export async function checkRights(ask: Query<Answer>, name: string): Promise<void> {
  const lacked = new Map<string, string[]>();
  const attempt = async (right: string, object: string, sql: string): Promise<void> => {
    try {
      await ask(sql, []);
    } catch (error) {
      if (!DENIED.includes(errorNumber(error))) throw error;
      lacked.set(object, [...(lacked.get(object) ?? []), right]);
    }
  };
  for (const [each, column] of Object.entries(TABLES)) {
    const table = `${name}.webhook_${each}`;
    await attempt('SELECT', table, `SELECT ${column} FROM ${table} LIMIT 0`);
    if (!lacked.has(table))
      await attempt('INSERT', table, `INSERT INTO ${table} SELECT * FROM ${table} WHERE FALSE`);
    await attempt('UPDATE', table, `UPDATE ${table} SET ${column} = 0 WHERE FALSE`);
    await attempt('DELETE', table, `DELETE FROM ${table} WHERE FALSE`);
  }
  for (const call of CALLS) {
    const procedure = `${name}.webhook_${call.replace(/\(.*/, '')}`;
    await attempt('EXECUTE', `PROCEDURE ${procedure}`, `CALL ${name}.webhook_${call}`);
  }
  if (lacked.size === 0) return;
  const [[row] = []] = await ask("SELECT REPLACE(CONCAT('`', CURRENT_USER(), '`'), '@', '`@`') AS user", []);
  const grants = [...lacked].map(
    ([of, rights]) => `GRANT ${rights.join(', ')} ON ${of} TO ${String(row?.['user'])};`,
  );
  throw new ConfigError(`mysqlStore: the user lacks rights. Run: ${grants.join(' ')}`);
}
