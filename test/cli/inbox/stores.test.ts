import { execFile } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { cp, mkdir, symlink } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { Redis } from 'ioredis';
import { Pool } from 'pg';
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import { createReceiver, PermanentError, type Receiver, type Store } from '../../../src/index.ts';
import { postgresStore } from '../../../src/stores/postgres.ts';
import { redisStore } from '../../../src/stores/redis.ts';
import { sqliteStore } from '../../../src/stores/sqlite.ts';
import { createRegistrations } from '../../../src/registrations/index.ts';
import { createFakeSeller, type FakeSeller } from '../../../src/testing/index.ts';
import { PATIENT_MS } from '../../support/patient.ts';
import { startRedis } from '../../support/redis.ts';
import { sharedPostgres } from '../../support/shared-postgres.ts';
import { testDatabase } from '../../stores/mysql-databases.ts';
import { sharedMariadb } from '../../support/shared-mariadb.ts';
import { testSchema } from '../../stores/postgres-schemas.ts';
import { cli, type Ended } from '../run-cli.ts';
import { tempFolder } from '../temp-folder.ts';
import { SILENT_LOGGER } from '../../support/silent-logger.ts';

const URL_GIVEN = 'http://127.0.0.1:9/hook';

/** A store that this process and the command line both open. */
interface Shared {
  readonly flags: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  readonly open: () => Store;
  readonly end: () => unknown;
}

/** The contract's name of each store, and how the command line is told about it. */
const STORES: Readonly<Record<string, () => Promise<Shared>>> = {
  sqlite: async () => {
    const folder = tempFolder();
    const file = folder.file('webhooks.db');
    return { flags: ['--sqlite', file], open: () => sqliteStore(file), end: () => folder[Symbol.dispose]() };
  },
  postgres: async () => {
    const url = await sharedPostgres(inject('shared'));
    const at = await testSchema(url);
    const pool = new Pool({ connectionString: url, max: 3 });
    return {
      flags: ['--postgres', '--schema', at.schema],
      env: { DATABASE_URL: url },
      open: () => postgresStore({ pool, schema: at.schema, timeoutMs: PATIENT_MS }),
      end: async () => {
        await pool.end();
        await at.drop();
      },
    };
  },
  mysql: async () => {
    const at = await testDatabase(await sharedMariadb(inject('shared')));
    return {
      flags: ['--mysql'],
      env: { DATABASE_URL: at.url },
      open: () => at.store(),
      end: () => at.drop(),
    };
  },
  redis: async () => {
    const server = await startRedis();
    const prefix = `test:${randomUUID()}:`;
    const client = new Redis(server.url, { lazyConnect: true });
    return {
      flags: ['--redis', server.url, '--prefix', prefix],
      open: () => redisStore({ client, prefix, timeoutMs: PATIENT_MS }),
      end: async () => {
        client.disconnect();
        await server.stop();
      },
    };
  },
};

describe.each(Object.entries(STORES))('inbox: %s', (_, make) => {
  let shared: Shared;
  let seller: FakeSeller;
  let broken = true;
  const handled: string[] = [];

  const receiver = (mode: 'inline' | 'inbox'): Receiver =>
    createReceiver({
      publicUrl: URL_GIVEN,
      senders: [seller.sender],
      store: shared.open(),
      allowLoopback: true,
      logger: SILENT_LOGGER,
      mode,
      handlers: {
        other: async (event) => {
          if (broken) throw new PermanentError('the ad server said no');
          handled.push(event.idempotencyKey);
        },
      },
    });

  const run = (...args: string[]): Promise<Ended> =>
    cli(['inbox', ...args, ...shared.flags], { env: shared.env ?? {} });

  /** Delivers an event that ends DEAD. @returns its key. */
  async function dead(to: Receiver): Promise<string> {
    const payload = seller.payloads.tool('completed');
    const { body, headers } = await seller.sign(payload);
    expect(await to.verifyAndDispatch(body, headers)).toMatchObject({ kind: 'accepted', state: 'dead' });
    return payload.idempotency_key;
  }

  beforeAll(async () => {
    seller = await createFakeSeller({ url: URL_GIVEN });
    shared = await make();
  });
  afterAll(async () => {
    await seller.close();
    await shared.end();
  });

  it('list, show, redrive, discard', async () => {
    const door = receiver('inline');
    const [first, second] = [await dead(door), await dead(door)];
    await door.stop();

    const listed = await run('list', '--json');
    expect(listed.code).toBe(0);
    const { records } = JSON.parse(listed.stdout) as {
      records: { key: string; state: string; lastError: string }[];
    };
    expect(records.map(({ key }) => key)).toEqual([first, second]);
    expect(records[0]).toMatchObject({ state: 'dead', lastError: 'the ad server said no' });
    expect((await run('list')).stdout).toContain('the ad server said no');
    expect((await run('list', '--after', 'bad')).stderr).toContain(
      '--after: is not the next of an earlier page.',
    );

    const shown = await run('show', seller.agentUrl, first);
    expect(shown.code).toBe(0);
    expect(shown.stdout).toContain(`"idempotency_key":"${first}"`);
    expect((await run('show', seller.agentUrl, 'nothing-of-this-kind')).code).toBe(1);

    const redriven = await run('redrive', seller.agentUrl, first);
    expect(redriven.code).toBe(0);
    expect(redriven.stdout).toContain("a worker (mode 'inbox') runs it");
    expect((await run('redrive', seller.agentUrl, first)).code).toBe(1);
    const queued = await run('list', '--state', 'queued', '--sender', seller.agentUrl, '--json');
    expect(JSON.parse(queued.stdout)).toMatchObject({
      records: [{ key: first, state: 'queued', attempts: 0 }],
    });

    const discarded = await run('discard', seller.agentUrl, second, '--json');
    expect({ code: discarded.code, said: JSON.parse(discarded.stdout) as unknown }).toEqual({
      code: 0,
      said: { result: 'discarded' },
    });
    expect((await run('discard', seller.agentUrl, second)).code).toBe(1);
    expect((await run('list')).stdout).toBe('No dead events.\n');

    // What was redriven is what a worker runs.
    broken = false;
    const worker = receiver('inbox');
    await worker.start();
    await expect.poll(() => handled).toEqual([first]);
    await worker.stop();
  });

  it('tasks that were registered, by state, page by page', async () => {
    const store = shared.open();
    await store.open();
    const registrations = createRegistrations({
      store,
      baseUrl: 'https://buyer.example',
      secrets: ['a-secret-of-forty-characters-and-no-more'],
      allowLoopback: true,
    });
    const begun = async (taskId: string, ref: string): Promise<string> => {
      const request = { agentUrl: seller.agentUrl, taskType: 'create_media_buy', arguments: {}, ref };
      const made = await registrations.create(request);
      await made.settle({ status: 'submitted', task_id: taskId });
      return made.operationId;
    };
    const operations = new Map([
      ['task-1', await begun('task-1', 'order 1')],
      ['task-2', await begun('task-2', 'order 2')],
    ]);
    await registrations.adopt({ agentUrl: seller.agentUrl, mediaBuyId: 'buy-1', ref: 'order 3' });
    await store.close();
    const tasks = (...args: string[]): Promise<Ended> =>
      cli(['tasks', ...args, ...shared.flags], { env: shared.env ?? {} });
    interface Page {
      readonly tasks: { taskId: string; operationId: string; state: string; status: string }[];
      readonly next?: string;
    }
    const page = async (...args: string[]): Promise<Page> =>
      JSON.parse((await tasks(...args, '--json')).stdout) as Page;
    const first = await page('--limit', '1');
    const second = await page('--after', first.next ?? '');
    const found = [...first.tasks, ...second.tasks];
    expect(new Map(found.map(({ taskId, operationId }) => [taskId, operationId]))).toEqual(operations);
    expect(found[0]).toMatchObject({ agentUrl: seller.agentUrl, state: 'open', status: 'submitted' });
    const { code, stdout } = await tasks();
    expect(code).toBe(0);
    expect(stdout).toMatch(/^watched {4}2\d{3}-\S+ {2}create_media_buy {2}submitted {2}http/);
    expect(stdout).toContain('ref order 1');
    expect((await tasks('--state', 'unresolved')).stdout).toBe('No unresolved tasks.\n');
    expect((await tasks('--state', 'done')).code).toBe(2);
    const astray = await tasks('--after', 'bad');
    expect({ code: astray.code, said: astray.stderr }).toEqual({
      code: 2,
      said: "proto-webhooks: --after: is not the next of an earlier page. Give that page's next, or leave it out.\n",
    });
    // A media buy that was adopted has no task.
    const adopted = (await tasks('--state', 'ended')).stdout;
    expect(adopted).toMatch(
      /create_media_buy {2}no status reported {2}http.*\n +task \(none\), .*ref order 3/,
    );
  });

  it('stats, redrive-many, discard-many: counted first, changed with --yes', async () => {
    broken = true;
    const door = receiver('inline');
    for (let count = 0; count < 3; count += 1) await dead(door);
    await door.stop();
    const of = (text: string): unknown => JSON.parse(text) as unknown;
    const state = async (): Promise<unknown> => of((await run('stats', '--json')).stdout);

    expect(await state()).toMatchObject({
      queued: 0,
      dead: 3,
      senders: [{ sender: seller.agentUrl, state: 'dead', count: 3 }],
    });
    expect((await run('stats')).stdout).toMatch(/^0 queued, 0 leased, 3 dead\ndead {10}3 {2}oldest 2\d{3}-/);

    const counted = await run('redrive-many', '--error', 'said no');
    expect({ code: counted.code, said: counted.stdout }).toEqual({
      code: 0,
      said: `3 dead events match.\n       3  ${seller.agentUrl}\nNothing was changed. With --yes they are queued, with all of their attempts.\n`,
    });
    expect(await state()).toMatchObject({ dead: 3 });
    const others = await run('redrive-many', '--error', 'said yes', '--yes', '--json');
    expect(of(others.stdout)).toEqual({ matched: 0, senders: {} });
    const early = await run('discard-many', '--before', '2020-01-01T00:00:00Z', '--yes', '--json');
    expect(of(early.stdout)).toEqual({ matched: 0, senders: {} });
    expect((await run('discard-many', '--before', 'yesterday')).code).toBe(2);
    // As a script gives them whose variable is empty.
    expect((await run('discard-many', '--error', '', '--yes')).code).toBe(2);
    expect((await run('discard-many', '--sender', '', '--yes')).code).toBe(2);
    expect(await state()).toMatchObject({ dead: 3 });

    const redriven = await run('redrive-many', '--sender', seller.agentUrl, '--yes');
    expect(redriven.stdout).toMatch(/queued: 3\n.*mode 'inline', call receiver\.inbox\.redriveMany/);
    expect(await state()).toMatchObject({ queued: 3, dead: 0 });
    const discarded = await run('discard-many', '--state', 'queued', '--yes', '--json');
    expect(of(discarded.stdout)).toEqual({
      matched: 3,
      senders: { [seller.agentUrl]: 3 },
      results: { discarded: 3 },
    });
    expect(await state()).toMatchObject({ queued: 0, dead: 0, senders: [] });
  });
});

describe('inbox: packages of the project', () => {
  it('names the missing one and how to install it', async () => {
    using folder = tempFolder();
    const root = fileURLToPath(new URL('../../../', import.meta.url));
    // As installed somewhere without pg: only what the command line itself depends on is there.
    await cp(`${root}dist`, folder.file('dist'), { recursive: true });
    await cp(`${root}package.json`, folder.file('package.json'));
    await mkdir(folder.file('node_modules'));
    for (const name of ['commander', '@noble', 'structured-headers', 'tldts', 'tldts-core', 'zod']) {
      await symlink(`${root}node_modules/${name}`, folder.file(`node_modules/${name}`));
    }
    const said = await new Promise<{ code: unknown; stderr: string }>((resolve) => {
      execFile(
        process.execPath,
        [folder.file('dist/cli.js'), 'inbox', 'list', '--postgres', 'postgres://127.0.0.1:9/x'],
        { cwd: folder.path },
        (error, _, stderr) => resolve({ code: error?.code, stderr }),
      );
    });
    expect(said.code).toBe(2);
    expect(said.stderr).toContain('the package pg is not installed here. Run npm install pg');
  });
});
