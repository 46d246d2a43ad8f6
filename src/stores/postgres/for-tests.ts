// Exports names of `src/stores/postgres` that tests, benchmarks and scripts need, and no public entry has.
// Nothing in `src` imports this file, and no bundle contains it (CONTRIBUTING.md).

export { listSql, overdueSql, postgresBackend } from './postgres-backend.ts';
export { MIGRATIONS } from './postgres-migrations.ts';
export { migrateBy, SCHEMA_VERSION } from './postgres-schema.ts';
