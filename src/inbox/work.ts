/** Worker, operator and `observe` in one module, so that they are one chunk that is loaded on demand (`receiver/inbox-on-demand.ts`). */
export { observeWith } from '../receiver/observe.ts';
export { createReceiverInbox } from './operate.ts';
export { startWorker } from './worker.ts';
