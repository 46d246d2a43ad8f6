// Test face of `src/serve/sink`: what tests, bench and scripts import from it that no public entry exports.
// Nothing in `src` imports it, and no bundle contains it (CONTRIBUTING.md).

export { cloudEvent } from './cloud-event.ts';
export { createForwarder, type Forwarder } from './forwarder.ts';
export { httpSink } from './http-sink.ts';
export { moduleSink } from './module-sink.ts';
export { type Clock, createPause } from './pause.ts';
export { signerOf } from './signature.ts';
export { printable, type Sink, type SinkAttempt, SinkFault } from './sink.ts';
