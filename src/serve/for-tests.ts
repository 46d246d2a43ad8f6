// Exports names of `src/serve` that tests, benchmarks and scripts need, and no public entry has.
// Nothing in `src` imports this file, and no bundle contains it (CONTRIBUTING.md).

export { configSchema } from './config/definition.ts';
export { readConfig } from './config/read-config.ts';
export { leaseMsFor, withoutQueue } from './instance.ts';
export { jsonLog } from './json-log.ts';
export { serve, type ServeEnd, type ServeOptions } from './serve.ts';
