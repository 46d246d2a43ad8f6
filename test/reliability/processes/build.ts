import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { webhookHandler } from '../../../src/adapters/node.ts';
import { createReceiver } from '../../../src/index.ts';
import { createRegistrations } from '../../../src/registrations/index.ts';
import { mysqlStore } from '../../../src/stores/mysql.ts';
import { migrate, postgresStore } from '../../../src/stores/postgres.ts';
import { redisStore } from '../../../src/stores/redis.ts';
import { sqliteStore } from '../../../src/stores/sqlite.ts';

/** What a process takes from the package. Of another build the same names, whatever is behind them. */
export const OWN = {
  webhookHandler,
  createReceiver,
  createRegistrations,
  migrate,
  postgresStore,
  mysqlStore,
  redisStore,
  sqliteStore,
};

export type Build = typeof OWN;

/** @param folder with the files of `dist`: of a release that has no `mysqlStore` yet. */
export async function buildIn(folder: string): Promise<Build> {
  const modules = ['index.js', 'node.js', 'postgres.js', 'redis.js', 'sqlite.js'].map(
    (file) => import(pathToFileURL(join(folder, file)).href) as Promise<Partial<Build>>,
  );
  return Object.assign({}, ...(await Promise.all(modules))) as Build;
}
