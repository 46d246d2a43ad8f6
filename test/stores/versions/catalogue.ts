import type { Pool } from 'pg';

/**
 * What PostgreSQL's catalogue says of a schema, one list for each kind: relations, columns, indexes, constraints,
 * sequences, functions. Texts that differ from one server's version to the next (a view's definition, NOT NULL as a
 * constraint) are left out; columns say the same.
 */
const CATALOGUE = `
WITH at AS (SELECT oid FROM pg_namespace WHERE nspname = $1),
relation AS (SELECT c.* FROM pg_class c JOIN at ON c.relnamespace = at.oid)
SELECT json_build_object(
  'relations', (SELECT json_agg(json_build_object('name', relname, 'kind', relkind, 'persistence', relpersistence,
      'options', reloptions) ORDER BY relname) FROM relation),
  'columns', (SELECT json_agg(json_build_object('of', relname, 'name', attname,
      'type', format_type(atttypid, atttypmod), 'notNull', attnotnull, 'collation', coll.collname,
      'storage', attstorage, 'identity', attidentity, 'generated', attgenerated,
      'default', pg_get_expr(d.adbin, d.adrelid)) ORDER BY relname, attnum)
    FROM relation r JOIN pg_attribute a ON a.attrelid = r.oid AND attnum > 0 AND NOT attisdropped
    LEFT JOIN pg_collation coll ON coll.oid = attcollation
    LEFT JOIN pg_attrdef d ON d.adrelid = r.oid AND d.adnum = attnum
    WHERE relkind IN ('r', 'v', 'c')),
  'indexes', (SELECT json_agg(pg_get_indexdef(oid) ORDER BY relname) FROM relation WHERE relkind = 'i'),
  'constraints', (SELECT json_agg(json_build_object('of', relname, 'name', conname,
      'is', pg_get_constraintdef(k.oid)) ORDER BY conname)
    FROM relation r JOIN pg_constraint k ON k.conrelid = r.oid WHERE contype <> 'n'),
  'sequences', (SELECT json_agg(json_build_object('name', relname, 'type', format_type(seqtypid, NULL),
      'start', seqstart, 'increment', seqincrement, 'cycle', seqcycle) ORDER BY relname)
    FROM relation r JOIN pg_sequence s ON s.seqrelid = r.oid),
  'functions', (SELECT json_agg(json_build_object('name', proname,
      'arguments', pg_get_function_arguments(p.oid), 'result', pg_get_function_result(p.oid),
      'kind', prokind, 'language', lanname, 'volatility', provolatile, 'parallel', proparallel,
      'strict', proisstrict, 'definer', prosecdef, 'leakproof', proleakproof, 'cost', procost, 'rows', prorows,
      'settings', proconfig, 'body', prosrc) ORDER BY proname, pg_get_function_identity_arguments(p.oid))
    FROM pg_proc p JOIN at ON p.pronamespace = at.oid JOIN pg_language l ON l.oid = prolang)
)::text AS catalogue`;

/** @returns the lists, in which the schema's own name is `THE_SCHEMA`. */
export async function catalogueOf(pool: Pool, schema: string): Promise<Record<string, unknown>> {
  const client = await pool.connect();
  try {
    // Names outside of the search path are qualified.
    await client.query('SET search_path TO pg_catalog');
    const { rows } = await client.query<{ catalogue: string }>(CATALOGUE, [schema]);
    const text = rows[0]?.catalogue ?? '{}';
    return JSON.parse(text.replaceAll(schema, 'THE_SCHEMA')) as Record<string, unknown>;
  } finally {
    client.release(true);
  }
}
