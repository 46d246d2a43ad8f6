import type { DatabaseSync } from 'node:sqlite';

function literal(value: unknown): string {
  if (value === null) return 'NULL';
  if (typeof value === 'number') return String(value);
  if (typeof value === 'string') return `'${value.replaceAll("'", "''")}'`;
  return `X'${Buffer.from(value as Uint8Array).toString('hex')}'`;
}

/** Statements that make the database anew: each CREATE as it was given, then the rows. */
export function dumpSqlite(db: DatabaseSync): string {
  const made = db
    .prepare('SELECT type, name, sql FROM sqlite_master WHERE sql IS NOT NULL ORDER BY rowid')
    .all();
  const tables = made.filter(({ type }) => type === 'table').map(({ name }) => String(name));
  const rows = tables.flatMap((table) =>
    db
      .prepare(`SELECT * FROM ${table}`)
      .all()
      .map((row) => `INSERT INTO ${table} VALUES (${Object.values(row).map(literal).join(', ')})`),
  );
  return [...made.map(({ sql }) => String(sql)), ...rows].map((line) => `${line};\n`).join('');
}
