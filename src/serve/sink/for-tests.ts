// Exports names of `src/serve/sink` that tests, benchmarks and scripts need, and no public entry has.
// Nothing in `src` imports this file, and no bundle contains it (CONTRIBUTING.md).

export { cloudEvent } from './cloud-event.ts';
export { createForwarder, type Forwarder } from './forwarder.ts';
export { httpSink } from './http-sink.ts';
export { moduleSink } from './module-sink.ts';
export { type Clock, createPause } from './pause.ts';
export { signerOf } from './signature.ts';
export { printable, type Sink, type SinkAttempt, SinkFault } from './sink.ts';
