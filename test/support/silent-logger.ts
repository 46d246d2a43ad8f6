import type { Logger } from '../../src/alarms.ts';

/** For tests that do not look at what is logged. */
export const SILENT_LOGGER: Logger = { debug() {}, info() {}, warn() {}, error() {} };
