// Test face of `src/stores/postgres`: what tests, bench and scripts import from it that no public entry exports.
// Nothing in `src` imports it, and no bundle contains it (CONTRIBUTING.md).

export { listSql, overdueSql, postgresBackend } from './postgres-backend.ts';
export { MIGRATIONS } from './postgres-migrations.ts';
export { migrateBy, SCHEMA_VERSION } from './postgres-schema.ts';
