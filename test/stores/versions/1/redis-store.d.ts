/** `src/stores/redis.ts` of the last release with schema version 1, and all that it imports: an older process. */
export type { RedisStoreOptions } from '../../../../src/stores/redis.ts';
export { redisStore } from '../../../../src/stores/redis.ts';
