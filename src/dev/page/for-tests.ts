// Exports names of `src/dev/page` that tests, benchmarks and scripts need, and no public entry has.
// Nothing in `src` imports this file, and no bundle contains it (CONTRIBUTING.md).

export { eventReader } from './event-stream.ts';
export { indented } from './indent.ts';
export { type Model, wasReceivedWell, withEvent } from './model.ts';
export { asNewEvent, sampleBody } from './sample.ts';
export { visiblePieces, visibleText } from './visible.ts';
