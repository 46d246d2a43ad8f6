import { safeLogger, type SafeLogger } from '../../src/for-tests.ts';

/** For tests that do not look at what is logged. */
export const SILENT_LOGGER: SafeLogger = safeLogger({ debug() {}, info() {}, warn() {}, error() {} });
