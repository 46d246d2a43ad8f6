import { randomUUID } from 'node:crypto';
import { Redis } from 'ioredis';
import { createConnection } from 'mysql2/promise';
import { Pool } from 'pg';
import { expect, inject, it, onTestFinished } from 'vitest';
import { newName } from '../stores/mysql-databases.ts';
import { startRedis } from '../support/redis.ts';
import { sharedMariadb } from '../support/shared-mariadb.ts';
import { sharedPostgres } from '../support/shared-postgres.ts';
import { cli } from '../cli/run-cli.ts';
import { ready, SECRET, serving, world, type World } from './kit.ts';

const LONG = { timeout: 30_000 };

/** A place of its own on a server that has nothing of the store yet. */
interface Place {
  readonly yaml: string;
  readonly url: string;
  /** How many tables or keys are there. */
  readonly count: () => Promise<number>;
}

const PLACES: Readonly<Record<string, () => Promise<Place>>> = {
  async postgres() {
    const url = await sharedPostgres(inject('shared'));
    const schema = newName();
    const pool = new Pool({ connectionString: url, max: 1 });
    onTestFinished(async () => {
      await pool.query(`DROP SCHEMA IF EXISTS ${schema} CASCADE`);
      await pool.end();
    });
    const tables = 'SELECT count(*)::int AS n FROM information_schema.tables WHERE table_schema = $1';
    return {
      yaml: `store: { postgres: { url: { env: STORE }, schema: ${schema}, connections: 3 } }\n`,
      url,
      count: async () => (await pool.query<{ n: number }>(tables, [schema])).rows[0]?.n ?? 0,
    };
  },
  async mysql() {
    const server = await sharedMariadb(inject('shared'));
    const database = newName();
    const maker = await createConnection(server);
    await maker.query(`CREATE DATABASE ${database}`);
    onTestFinished(async () => {
      await maker.query(`DROP DATABASE ${database}`);
      await maker.end();
    });
    const tables = 'SELECT count(*) AS n FROM information_schema.tables WHERE table_schema = ?';
    return {
      yaml: 'store: { mysql: { url: { env: STORE }, connections: 3 } }\n',
      url: `${server}/${database}`,
      count: async () => Number(((await maker.query(tables, [database]))[0] as { n: number }[])[0]?.n),
    };
  },
  async redis() {
    const { url, stop } = await startRedis();
    const prefix = `test:${randomUUID()}:`;
    const client = new Redis(url);
    onTestFinished(async () => {
      client.disconnect();
      await stop();
    });
    return {
      yaml: `store: { redis: { url: { env: STORE }, prefix: '${prefix}' } }\n`,
      url,
      count: async () => (await client.keys(`${prefix}*`)).length,
    };
  },
};

async function forwarded(at: World, count: number): Promise<void> {
  const { status } = await at.seller.send(await at.seller.sign(at.seller.payloads.tool('completed')));
  expect(status).toBe(200);
  await expect.poll(() => at.sink.posted.length, LONG).toBe(count);
}

it.each(Object.keys(PLACES))(
  '%s: checked without a change, migrated by the command, served, and checked again',
  async (name) => {
    const place = await (PLACES[name] as (typeof PLACES)['postgres'])();
    const at = await world();
    const file = at.folder.file('webhooks.yaml', at.yaml(place.yaml));
    const cwd = at.folder.path;
    const env = { SINK_SECRET: SECRET, STORE: place.url };
    const run = (flag: string): ReturnType<typeof cli> =>
      cli(['serve', '--config', file, flag], { cwd, env });

    const before = await run('--check');
    expect(await place.count()).toBe(0);
    const isMigrated = name !== 'redis';
    expect(before.code).toBe(isMigrated ? 1 : 0);
    const MIGRATE = 'npx proto-webhooks serve --config webhooks.yaml --migrate';
    if (isMigrated) {
      expect(before.stdout).toContain(MIGRATE);
      const refused = await serving(file, cwd, { env }).ended;
      expect(refused).toEqual({ code: 1, message: expect.stringContaining(MIGRATE) as string });
    } else expect(before.stdout).toContain('no key of the store yet: the first start makes them');

    const made = expect.stringMatching(
      `^the tables of the ${name} store were made: version [0-9]+\n$`,
    ) as string;
    const nothing = 'nothing to do: the redis store makes what it needs by itself\n';
    expect(await run('--migrate')).toEqual({ code: 0, stdout: isMigrated ? made : nothing, stderr: '' });
    expect((await place.count()) > 0).toBe(isMigrated);
    const process = serving(file, cwd, { env });
    await ready(at);
    await forwarded(at, 1);
    process.signals.emit('SIGHUP');
    await expect.poll(() => process.lines.some(({ msg }) => msg.includes('was read again')), LONG).toBe(true);
    await forwarded(at, 2);
    expect(await process.stop()).toEqual({ code: 0 });
    expect(await run('--check')).toMatchObject({
      code: 0,
      stdout: expect.stringContaining(`the ${name} store is ready`) as string,
    });
  },
  120_000,
);
