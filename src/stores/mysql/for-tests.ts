// Test face of `src/stores/mysql`: what tests, bench and scripts import from it that no public entry exports.
// Nothing in `src` imports it, and no bundle contains it (CONTRIBUTING.md).

export { mysqlBackend } from './mysql-backend.ts';
export { MIGRATIONS } from './mysql-migrations.ts';
export { migrateBy, SCHEMA_VERSION } from './mysql-schema.ts';
