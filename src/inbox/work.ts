// Bundles worker, operator and `observe` into one module, and so into one chunk that is loaded when it is
// needed.
// Imported by `receiver/inbox-on-demand.ts` alone.

export { observeWith } from '../receiver/observe.ts';
export { createReceiverInbox } from './operate.ts';
export { startWorker } from './worker.ts';
