import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { webhookHandler } from '../../../src/adapters/node.ts';
import { createReceiver } from '../../../src/index.ts';
import { createRegistrations } from '../../../src/registrations/index.ts';
import { migrate as migrateMysql, mysqlStore } from '../../../src/stores/mysql.ts';
import { migrate, postgresStore } from '../../../src/stores/postgres.ts';
import { redisStore } from '../../../src/stores/redis.ts';
import { sqliteStore } from '../../../src/stores/sqlite.ts';

/** What a process takes from the package. Of another build the same names, whatever is behind them. */
export const OWN = {
  webhookHandler,
  createReceiver,
  createRegistrations,
  migrate,
  migrateMysql,
  postgresStore,
  mysqlStore,
  redisStore,
  sqliteStore,
};

export type Build = typeof OWN;

/** @param folder with the files of `dist`. */
export async function buildIn(folder: string): Promise<Build> {
  const load = (name: string): Promise<unknown> => import(pathToFileURL(join(folder, `${name}.js`)).href);
  const { migrate: migrateMysql, mysqlStore } = (await load('mysql')) as Readonly<Record<string, unknown>>;
  const names = ['index', 'node', 'registrations', 'postgres', 'redis', 'sqlite'];
  return Object.assign({ mysqlStore, migrateMysql }, ...(await Promise.all(names.map(load)))) as Build;
}
