// Test face of `src/stores/sqlite`: what tests, bench and scripts import from it that no public entry exports.
// Nothing in `src` imports it, and no bundle contains it (CONTRIBUTING.md).

export { asFault, isBusy, isConstraint, nodeSqlite, openFile } from './handle.ts';
export { openDatabase } from './open.ts';
export { type DatabaseFile, fileOf, placeOf } from './place.ts';
export { KNOWN, migrate, STEPS } from './sqlite-schema.ts';
