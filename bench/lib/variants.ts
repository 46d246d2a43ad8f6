import type { ReceiverOptions } from '../../dist/index.js';

/**
 * The options with which a receiver verifies off the main thread. By default it does so while deliveries overlap, which
 * they never do on the memory store with a handler that waits for nothing.
 */
export const OFF_THREAD: Partial<ReceiverOptions> = { verification: 'pool' };
