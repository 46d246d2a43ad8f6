import type { ReceiverOptions } from '../../dist/index.js';

/**
 * The options with which a receiver verifies off the main thread; undefined while the library has none, and then the
 * figures that need it are reported as not met.
 */
export const OFF_THREAD: Partial<ReceiverOptions> | undefined = undefined;
