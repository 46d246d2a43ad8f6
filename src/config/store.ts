import { ConfigError } from '../errors.ts';
import type { Store } from '../stores/contract.ts';

type Shape = (given: object) => boolean;

/** Whether `given` has these methods. Functions count as objects here: clients are called, too. */
const can =
  (...names: readonly string[]): Shape =>
  (given) =>
    names.every((name) => typeof (given as Readonly<Record<string, unknown>>)[name] === 'function');

/** What is handed in instead of a store, and the line to write. The first that fits. */
const INSTEAD: readonly (readonly [Shape, string])[] = [
  [(given) => typeof given === 'function', 'is a function. Call it: store: sqliteStore(path).'],
  [can('then'), 'is a promise. Await it first.'],
  [can('prepare', 'exec'), 'is a database. Write sqliteStore(database).'],
  [can('getConnection'), 'is a pool. Write mysqlStore({ pool }).'],
  [can('connect', 'query'), 'is a client or a pool. Write postgresStore({ pool }).'],
  [can('connect', 'duplicate'), 'is a client. Write redisStore({ client }), with a client of ioredis.'],
];

const EXAMPLE = "Give one, e.g. store: sqliteStore('webhooks.db') from 'proto-webhooks/sqlite'.";

/** @throws ConfigError unless `store` is one; what is often given instead is told by its shape. */
export function requireStore(store: unknown): asserts store is Store {
  if (store === undefined || store === null) throw new ConfigError(`store: missing. ${EXAMPLE}`);
  if (typeof store === 'object' && can('accept')(store)) return;
  const [, found] = INSTEAD.find(([shape]) => shape(Object(store) as object)) ?? [];
  throw new ConfigError(`store: ${found ?? `is none. ${EXAMPLE}`}`);
}
