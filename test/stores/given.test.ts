import { Redis } from 'ioredis';
import { Client, Pool } from 'pg';
import { createPool } from 'mysql2/promise';
import { describe, expect, it } from 'vitest';
import { ConfigError } from '../../src/index.ts';
import { mysqlStore } from '../../src/stores/mysql.ts';
import { memoryStore } from '../../src/stores/memory.ts';
import { migrate, postgresStore } from '../../src/stores/postgres.ts';
import { redisStore } from '../../src/stores/redis.ts';
import { sqliteStore } from '../../src/stores/sqlite.ts';

type Make = (...given: readonly unknown[]) => unknown;

const pool = new Pool();
const mysqlPool = createPool('mysql://x/y');
const client = new Redis({ lazyConnect: true });

describe('an unusable argument of a store is a ConfigError at once, with the line to write', () => {
  it.each<[string, Make, readonly unknown[], RegExp]>([
    ['nothing', postgresStore as Make, [], /pool is not a pool of pg\. Write: .*postgresStore\(\{ pool \}\)/],
    ['a pool for options', postgresStore as Make, [pool], /postgresStore\(\{ pool \}\)/],
    ['a client for a pool', postgresStore as Make, [{ pool: new Client() }], /is not a pool of pg/],
    ['a URL', postgresStore as Make, ['postgres://x'], /is not a pool of pg/],
    ['a misspelt schema', postgresStore as Make, [{ pool, shema: 'x' }], /shema is not known.*schema/],
    [
      'nothing for MySQL',
      mysqlStore as Make,
      [],
      /pool is not a pool of mysql2\/promise\. Write: .*mysqlStore\(\{ pool \}\)/,
    ],
    [
      'a pool of callbacks',
      mysqlStore as Make,
      [{ pool: mysqlPool.pool }],
      /is not a pool of mysql2\/promise/,
    ],
    [
      'a misspelt timeoutMs',
      mysqlStore as Make,
      [{ pool: mysqlPool, timeout: 1 }],
      /timeout is not known.*timeoutMs/,
    ],
    ['nothing for Redis', redisStore as Make, [], /redisStore: give an object of options\. Known: client/],
    ['a misspelt waitReplicas', redisStore as Make, [{ client, waitReplica: 2 }], /waitReplica is not known/],
    ['no path', sqliteStore as Make, [undefined], /give the path of a database/],
    ['a path among options', sqliteStore as Make, [{ path: 'x.db' }], /give the path of a database/],
    ['a misspelt state', memoryStore as Make, [{ stat: {} }], /stat is not known.*state/],
    ['a misspelt busyMs', sqliteStore as Make, ['x.db', { busy: 1 }], /busy is not known.*busyMs/],
  ])('%s', (_, make, given, message) => {
    expect(() => make(...given)).toThrow(ConfigError);
    expect(() => make(...given)).toThrow(message);
  });

  it.each<[string, readonly unknown[], RegExp]>([
    ['nothing', [], /pool is not a pool of pg\. Write: .*await migrate\(pool\)/],
    ['options with a pool', [{ pool }], /await migrate\(pool\)/],
    ['a misspelt schema', [pool, { shema: 'x' }], /migrate: shema is not known/],
  ])('migrate: %s', async (_, given, message) => {
    const migrating = (migrate as (...given: readonly unknown[]) => Promise<unknown>)(...given);
    await expect(migrating).rejects.toThrow(ConfigError);
    await expect(migrating).rejects.toThrow(message);
  });
});
