// Exports names of `src/stores/mysql` that tests, benchmarks and scripts need, and no public entry has.
// Nothing in `src` imports this file, and no bundle contains it (CONTRIBUTING.md).

export { mysqlBackend } from './mysql-backend.ts';
export { MIGRATIONS } from './mysql-migrations.ts';
export { migrateBy, SCHEMA_VERSION } from './mysql-schema.ts';
