// Exports names of `src/stores/redis` that tests, benchmarks and scripts need, and no public entry has.
// Nothing in `src` imports this file, and no bundle contains it (CONTRIBUTING.md).

export { redisBackend } from './redis-backend.ts';
export { attachedIn, barrierOf } from './barrier.ts';
export { duplicateOf, type RedisConnection } from './redis-client.ts';
export { pipelineOf as laneOf } from './pipeline.ts';
export { LUA } from './lua.ts';
export { keyidsOf, nonceCounts, sweepsOfAll } from './nonce-counts.ts';
export { keysOf, nodeDigests, SCHEMA_VERSION, type Scripts, scriptsOf } from './scripts.ts';
export { checkKept } from './redis-settings.ts';
export { watchOf } from './identity-check.ts';
