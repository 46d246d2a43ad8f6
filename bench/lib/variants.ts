import type { ReceiverOptions } from '../../dist/index.js';

/** The options with which a receiver verifies off the main thread, and on it. By default it is as the traffic is. */
export const OFF_THREAD: Partial<ReceiverOptions> = { verification: 'pool' };
export const ON_THREAD: Partial<ReceiverOptions> = { verification: 'main' };
