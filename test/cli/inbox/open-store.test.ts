import { once } from 'node:events';
import { readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { type AddressInfo, createServer } from 'node:net';
import { DatabaseSync } from 'node:sqlite';
import { Pool } from 'pg';
import { describe, expect, inject, it, onTestFinished } from 'vitest';
import { sqliteStore } from '../../../src/stores/sqlite.ts';
import { testDatabase } from '../../stores/mysql-databases.ts';
import { sharedMariadb } from '../../support/shared-mariadb.ts';
import { sharedPostgres } from '../../support/shared-postgres.ts';
import { startProxy } from '../../support/tcp-proxy.ts';
import { cli, cliApart, type Ended } from '../run-cli.ts';
import { tempFolder } from '../temp-folder.ts';

/** Files that no receiver has stored in, each by what is in it. */
const WRONG: Readonly<Record<string, (file: string) => void>> = {
  'another application’s database': (file) => {
    const db = new DatabaseSync(file);
    db.exec('CREATE TABLE orders (id INTEGER); INSERT INTO orders VALUES (1)');
    db.close();
  },
  'a database that has a table of one of our names': (file) => {
    const db = new DatabaseSync(file);
    db.exec('CREATE TABLE webhook_schema (version INTEGER)');
    db.close();
  },
  'an empty file': (file) => writeFileSync(file, ''),
  'a text': (file) => writeFileSync(file, 'no database, but long enough to have a header\n'.repeat(100)),
};

describe('inbox --sqlite', () => {
  it.each(Object.entries(WRONG))('%s: refused and left unchanged byte for byte', async (_, make) => {
    using folder = tempFolder();
    make(folder.file('x.db'));
    const before = readFileSync(folder.file('x.db'));
    const { code, stdout, stderr } = await cli(['inbox', 'list', '--sqlite', 'x.db'], { cwd: folder.path });
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
    expect(stderr).toMatch(
      /^proto-webhooks: x\.db: .*Expected the database that the receiver's sqliteStore has/,
    );
    expect(readFileSync(folder.file('x.db'))).toEqual(before);
    expect(readdirSync(folder.path)).toEqual(['x.db']);
  });

  it('the database of a running receiver is opened', async () => {
    using folder = tempFolder();
    const store = sqliteStore(folder.file('x.db'));
    await store.open();
    const { code, stdout } = await cli(['inbox', 'list', '--sqlite', folder.file('x.db')]);
    await store.close();
    expect({ code, stdout }).toEqual({ code: 0, stdout: 'No dead events.\n' });
  });
});

describe('inbox --postgres', () => {
  it('a database without the schema: refused, and nothing is created', async () => {
    const url = await sharedPostgres(inject('shared'));
    const { code, stderr } = await cli([
      'inbox',
      'list',
      '--postgres',
      url,
      '--schema',
      'not_made_by_anyone',
    ]);
    expect(code).toBe(2);
    expect(stderr).toContain('the schema "not_made_by_anyone" has no tables of the store');
    const pool = new Pool({ connectionString: url, max: 1 });
    const { rows } = await pool.query("SELECT FROM pg_namespace WHERE nspname = 'not_made_by_anyone'");
    await pool.end();
    expect(rows).toEqual([]);
  });

  it('a server that does not answer: ends with an error', async () => {
    const server = createServer((socket) => void socket.on('error', () => undefined).resume());
    await once(server.listen(0, '127.0.0.1'), 'listening');
    const { port } = server.address() as AddressInfo;
    const { code, stderr } = await cli(['inbox', 'list', '--postgres', `postgres://u@127.0.0.1:${port}/x`]);
    server.close();
    expect(code).toBe(2);
    expect(stderr).toMatch(/^proto-webhooks: .*waiting for a connection/);
  });
});

describe('inbox --mysql', () => {
  /** Through a proxy, whose server is silent from a request on. */
  const silentFrom = async (request: string | Buffer): Promise<Ended> => {
    const database = await testDatabase(await sharedMariadb(inject('shared')));
    const url = new URL(database.url);
    const proxy = await startProxy(Number(url.port), url.hostname);
    // The program ends at the latest when its connections are closed.
    onTestFinished(async () => {
      await proxy.close();
      await database.drop();
    });
    url.hostname = '127.0.0.1';
    url.port = String(proxy.port);
    const { struck } = proxy.arm('mute', request);
    const ended = await cliApart(['inbox', 'list', '--mysql', url.href]);
    await struck;
    return ended;
  };

  it('a server that is silent at the end: the program ends all the same', async () => {
    // All of the request, for that to execute statement 256 has these bytes in it too.
    const quit = Buffer.from([1, 0, 0, 0, 1]);
    expect(await silentFrom(quit)).toEqual({ code: 0, stdout: 'No dead events.\n', stderr: '' });
  });

  it('a server that is silent during the handshake: ends with the error of the store', async () => {
    const { code, stderr } = await silentFrom('_client_name');
    expect({ code, stderr }).toEqual({
      code: 2,
      stderr: expect.stringMatching(/^proto-webhooks: MySQL: waiting for a connection of the pool/),
    });
  });
});

/** Each with a password that no output may repeat. */
const WRONG_URLS: readonly (readonly [option: string, url: string])[] = [
  ['--redis', 'rediss//:s3cret-word@redis.example:6380'],
  ['--redis', '//:s3cret-word@redis.example:6380'],
  ['--redis', 'redis://:s3cret-word@127.0.0.1:99999'],
  ['--redis', 'redis://:s3cret-word%ZZ@127.0.0.1:1'],
  ['--redis', 'postgres://u:s3cret-word@127.0.0.1:1/x'],
  ['--postgres', 'postgres//u:s3cret-word@127.0.0.1/x'],
  ['--postgres', 'postgres://u:s3cret-word@127.0.0.1:99999/x'],
  ['--mysql', 'mysql//u:s3cret-word@127.0.0.1/x'],
  ['--mysql', 'mysql://u:s3cret-word@127.0.0.1:99999/x'],
  ['--mysql', 'mysql://u:s3cret-word%ZZ@127.0.0.1:1/x'],
  ['--mysql', 'mysql://u:s3cret-word@127.0.0.1:1/x?ssl=s3cret-word'],
];

describe('a URL that cannot be read is the user’s mistake, in one line without its password', () => {
  it.each(WRONG_URLS)('%s %s', async (option, url) => {
    const given = await cli(['inbox', 'list', option, url, '--json']);
    expect(given.code).toBe(2);
    expect(JSON.parse(given.stdout)).toMatchObject({ error: { code: 'usage' } });
    expect(given.stderr.trimEnd().split('\n')).toHaveLength(1);
    expect(given.stderr).toContain(`${option}: the URL cannot be read.`);
    expect(given.stdout + given.stderr).not.toContain('s3cret');
  });

  it('in the environment too', async () => {
    const env = { REDIS_URL: 'rediss//:s3cret-word@redis.example:6380' };
    const { code, stdout, stderr } = await cli(['inbox', 'list', '--redis'], { env });
    expect(code).toBe(2);
    expect(stdout + stderr).not.toContain('s3cret');
  });
});
