// Test face of `src/dev/page`: what tests import from it without a browser.
// Nothing in `src` imports it, and no bundle contains it (CONTRIBUTING.md).

export { eventReader } from './event-stream.ts';
export { indented } from './indent.ts';
export { type Model, wasReceivedWell, withEvent } from './model.ts';
export { asNewEvent, sampleBody } from './sample.ts';
export { visiblePieces, visibleText } from './visible.ts';
