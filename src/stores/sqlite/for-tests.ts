// Exports names of `src/stores/sqlite` that tests, benchmarks and scripts need, and no public entry has.
// Nothing in `src` imports this file, and no bundle contains it (CONTRIBUTING.md).

export { asFault, isBusy, isConstraint, nodeSqlite, openFile } from './handle.ts';
export { openDatabase } from './open.ts';
export { type DatabaseFile, fileOf, placeOf } from './place.ts';
export { KNOWN, migrate, STEPS } from './sqlite-schema.ts';
