// Test face of `src/serve`: what tests, bench and scripts import from it that no public entry exports.
// Nothing in `src` imports it, and no bundle contains it (CONTRIBUTING.md).

export { configSchema } from './config/definition.ts';
export { readConfig } from './config/read-config.ts';
export { leaseMsFor, withoutQueue } from './instance.ts';
export { jsonLog } from './json-log.ts';
export { serve, type ServeEnd, type ServeOptions } from './serve.ts';
