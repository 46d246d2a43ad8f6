// Bundles the worker, `receiver.inbox` and `observe` into one module, and so into one chunk that is loaded on demand.
// Imported by `receiver/inbox-on-demand.ts` alone.

export { observeWith } from '../receiver/observe.ts';
export { createReceiverInbox } from './operate.ts';
export { startWorker } from './worker.ts';
