import { existsSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { once } from 'node:events';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { ConfigError, type Store } from '../../src/index.ts';
import { sqliteStore } from '../../src/stores/sqlite.ts';
import { inThisForm } from '../reliability/form.ts';
import { freePort } from '../support/free-port.ts';
import { httpSink, ready, SECRET, type Serving, serving, world, type World } from './kit.ts';

const LONG = { timeout: 30_000 };

/** Posts one task's status once. @returns the answer */
async function deliver(at: World, ...of: Parameters<World['seller']['payloads']['tool']>): Promise<unknown> {
  return (await at.seller.send(await at.seller.sign(at.seller.payloads.tool(...of)))).status;
}

const types = (sink: World['sink']): string[] => sink.posted.map(({ event }) => String(event['type'])).sort();

/** Serves by this configuration. */
async function served(
  at: World,
  yaml = at.yaml(),
  options: Parameters<typeof serving>[2] = {},
): Promise<Serving> {
  const it = serving(at.folder.file('webhooks.yaml', yaml), at.folder.path, options);
  await ready(at);
  return it;
}

/** The store of a process that has ended. */
async function stored<T>(at: World, look: (inbox: NonNullable<Store['inbox']>) => Promise<T>): Promise<T> {
  const store = sqliteStore(join(at.folder.path, 'data/webhooks.db'));
  await store.open();
  try {
    return await look(store.inbox);
  } finally {
    await store.close();
  }
}

/** A module that is a sink: each event is a line of a file, once the gate is there. */
const moduleSink = (name: string, gate?: string): string => `
import { appendFileSync, existsSync } from 'node:fs';
export async function send(event, { signal }) {
  appendFileSync(new URL('began', import.meta.url), event.idempotencyKey + '\\n');
  while (${gate === undefined ? 'false' : `!existsSync(new URL('${gate}', import.meta.url))`}) {
    signal.throwIfAborted();
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
  appendFileSync(new URL('${name}', import.meta.url), event.idempotencyKey + '\\n');
}
`;

const withModule = (at: World): string => at.yaml().replace(/sink: .*/, 'sink: ./mine.mjs');

describe('from a seller to the sink', () => {
  it('a delivery reaches it as a signed event, and SIGTERM ends with 0', async () => {
    const at = await world();
    const process = await served(at);
    expect(await deliver(at, 'completed')).toBe(200);
    await expect.poll(() => types(at.sink), LONG).toEqual(['proto.task.completed']);
    expect(at.sink.posted[0]?.headers['webhook-signature']).toMatch(/^v1,/);
    expect(existsSync(join(at.folder.path, 'data/webhooks.db'))).toBe(true);
    expect(await process.stop()).toEqual({ code: 0 });
    expect(process.lines.map(({ msg }) => msg)).toEqual(
      expect.arrayContaining(['listening', 'stopping', 'stopped']),
    );
  });

  const EVENTS = [
    ['a status', 'task.completed', ['proto.task.completed']],
    ['a kind', 'task', ['proto.task.completed', 'proto.task.working']],
    ['a kind', 'deliveryReport', ['proto.delivery-report.scheduled']],
    ['a family', 'impairment', ['proto.other.impairment']],
  ] as const;

  it.each(inThisForm(EVENTS, (_, index) => index === 0))(
    'events: %s, %s: what is not named is answered and done without the sink',
    async (_, name, expected) => {
      const at = await world();
      const process = await served(at, at.yaml(`events: [${name}]\n`));
      const { payloads } = at.seller;
      for (const body of [
        payloads.tool('working'),
        payloads.tool('completed'),
        payloads.report(),
        payloads.family('impairment'),
      ]) {
        expect((await at.seller.send(await at.seller.sign(body))).status).toBe(200);
      }
      await expect
        .poll(() => process.lines.filter(({ msg }) => msg === 'event applied').length, LONG)
        .toBe(4);
      expect(types(at.sink)).toEqual(expected);
      const left = process.lines.filter(({ msg }) => msg.includes('done without the sink'));
      expect(left).toHaveLength(4 - expected.length);
      await process.stop();
      expect(
        await stored(at, async (inbox) => (await inbox.list({ state: 'queued', limit: 10 })).records),
      ).toEqual([]);
    },
  );

  it('a module is a sink', async () => {
    const at = await world();
    at.folder.file('mine.mjs', moduleSink('done'));
    await served(at, withModule(at));
    expect(await deliver(at, 'completed')).toBe(200);
    await expect.poll(() => existsSync(join(at.folder.path, 'done')), LONG).toBe(true);
  });
});

describe('the end', () => {
  it('an event that the sink has begun is done before it', async () => {
    const at = await world();
    at.folder.file('mine.mjs', moduleSink('done', 'gate'));
    const process = await served(at, withModule(at));
    await deliver(at, 'completed');
    await expect.poll(() => existsSync(join(at.folder.path, 'began')), LONG).toBe(true);
    const ended = process.stop();
    await expect
      .poll(
        () =>
          at.health('/readyz').then(
            ({ status }) => status,
            () => 0,
          ),
        LONG,
      )
      .toBe(503);
    writeFileSync(join(at.folder.path, 'gate'), '');
    expect(await ended).toEqual({ code: 0 });
    expect(existsSync(join(at.folder.path, 'done'))).toBe(true);
  });

  it('an event that does not end in time is given back uncharged', async () => {
    const at = await world();
    at.folder.file('mine.mjs', moduleSink('done', 'never'));
    const process = await served(at, withModule(at), { graceMs: 400 });
    await deliver(at, 'completed');
    await expect.poll(() => existsSync(join(at.folder.path, 'began')), LONG).toBe(true);
    expect(await process.stop()).toEqual({ code: 0 });
    const { records } = await stored(at, (inbox) => inbox.list({ state: 'queued', limit: 10 }));
    expect(records).toMatchObject([{ attempts: 0, crashes: 0 }]);
  });

  it('a second signal ends it at once with 1', async () => {
    const at = await world();
    at.folder.file('mine.mjs', moduleSink('done', 'gate'));
    const process = await served(at, withModule(at));
    await deliver(at, 'completed');
    await expect.poll(() => existsSync(join(at.folder.path, 'began')), LONG).toBe(true);
    process.signals.emit('SIGINT');
    expect(process.exits).toEqual([]);
    process.signals.emit('SIGTERM');
    expect(process.exits).toEqual([1]);
    writeFileSync(join(at.folder.path, 'gate'), '');
    expect(await process.ended).toEqual({ code: 0 });
  });

  it.each(['listen', 'health'])('a port that another process has is one line and 1: %s', async (member) => {
    const at = await world();
    const other = createServer().listen(member === 'listen' ? at.port : at.healthPort, '127.0.0.1');
    await once(other, 'listening');
    onTestFinished(() => void other.close());
    const process = serving(at.folder.file('webhooks.yaml', at.yaml()), at.folder.path);
    expect(await process.ended).toEqual({
      code: 1,
      message: expect.stringMatching(
        new RegExp(
          `^${member}: 127\\.0\\.0\\.1:\\d+: another process listens there\\. End it, or change ${member}`,
        ),
      ) as string,
    });
  });

  it('a folder that cannot be made is a mistake', async () => {
    const at = await world();
    at.folder.file('data', 'a file has its name');
    const process = serving(at.folder.file('webhooks.yaml', at.yaml()), at.folder.path);
    await expect(process.ended).rejects.toThrow(
      new ConfigError(
        `store: the folder ${join(at.folder.path, 'data')} cannot be made (EEXIST). Make it, and let this user write there; or write another one: store: { sqlite: path }.`,
      ),
    );
  });

  it('a store that cannot be used is one line and 1', async () => {
    const at = await world();
    at.folder.file('text.db', 'no database, but long enough to have a header\n'.repeat(100));
    const process = serving(
      at.folder.file('webhooks.yaml', at.yaml('store: { sqlite: text.db }\n')),
      at.folder.path,
    );
    expect(await process.ended).toEqual({
      code: 1,
      message: expect.stringContaining('not a database') as string,
    });
  });
});

describe('health', () => {
  it('is on a port of its own, and says the state', async () => {
    const at = await world();
    await served(at);
    const { status, text } = await at.health('/readyz');
    expect(status).toBe(200);
    expect(JSON.parse(text)).toMatchObject({
      live: true,
      ready: true,
      store: { ok: true },
      worker: { state: 'running' },
      sink: { name: at.sink.url, paused: false },
    });
    expect((await at.health('/livez')).status).toBe(200);
    expect((await at.health('/metrics')).status).toBe(404);
    expect((await at.health('/')).text).toContain('/livez, /readyz');
    const posted = await fetch(`http://127.0.0.1:${at.healthPort}/livez`, { method: 'POST' });
    expect(posted.status).toBe(405);
    expect((await fetch(`http://127.0.0.1:${at.port}/readyz`)).status).toBe(405);
  });

  it('a paused sink is told, and deliveries are still taken', async () => {
    const at = await world();
    at.sink.status = 500;
    await served(at);
    expect(await deliver(at, 'completed')).toBe(200);
    await expect.poll(async () => (await at.health('/readyz')).text, LONG).toContain('"paused":true');
    const { status, text } = await at.health('/readyz');
    expect(status).toBe(200);
    expect(JSON.parse(text)).toMatchObject({
      sink: {
        paused: true,
        since: expect.any(Number) as number,
        lastFault: expect.stringContaining('500') as string,
      },
    });
    expect(await deliver(at, 'completed')).toBe(200);
    at.sink.status = 200;
    await expect.poll(async () => (await at.health('/readyz')).text, LONG).toContain('"paused":false');
  });

  it('while the store is away it listens, answers 503 and is not ready, and ends by a signal', async () => {
    const at = await world();
    const redis = `store: { redis: { url: { env: REDIS } } }\n`;
    const process = serving(at.folder.file('webhooks.yaml', at.yaml(redis)), at.folder.path, {
      env: { SINK_SECRET: SECRET, REDIS: `redis://127.0.0.1:${await freePort()}` },
      graceMs: 400,
    });
    await expect.poll(() => process.lines.some(({ msg }) => msg === 'listening'), LONG).toBe(true);
    expect(await deliver(at, 'completed')).toBe(503);
    expect((await at.health('/readyz')).status).toBe(503);
    expect((await at.health('/livez')).status).toBe(200);
    expect(await process.stop()).toEqual({ code: 0 });
  });

  it('/metrics has the numbers of the receiver, for Prometheus', async () => {
    const at = await world();
    const yaml = at.yaml().replace(/health: \{/, 'health: { metrics: true,');
    await served(at, yaml);
    await deliver(at, 'completed');
    await expect.poll(() => at.sink.posted.length, LONG).toBe(1);
    const { status, text } = await at.health('/metrics');
    expect(status).toBe(200);
    expect(text).toMatch(/^webhook_deliveries_total\{[^}]*webhook_outcome="accepted"[^}]*\} 1/m);
    expect(text).toMatch(/^messaging_process_duration_count\{/m);
  });
});

describe('reading again', () => {
  it('new settings hold from the next event on, and what runs ends by the former ones', async () => {
    const at = await world();
    at.folder.file('mine.mjs', moduleSink('first', 'gate'));
    const process = await served(at, withModule(at));
    await deliver(at, 'completed');
    await expect.poll(() => existsSync(join(at.folder.path, 'began')), LONG).toBe(true);
    at.folder.file('webhooks.yaml', at.yaml());
    process.signals.emit('SIGHUP');
    await expect.poll(() => process.lines.some(({ msg }) => msg.includes('was read again')), LONG).toBe(true);
    expect(await deliver(at, 'completed')).toBe(200);
    await expect.poll(() => at.sink.posted.length, LONG).toBe(1);
    writeFileSync(join(at.folder.path, 'gate'), '');
    await expect.poll(() => existsSync(join(at.folder.path, 'first')), LONG).toBe(true);
    expect(await process.stop()).toEqual({ code: 0 });
    expect(at.sink.posted.length).toBe(1);
    expect(process.alarms('config_rejected')).toEqual([]);
  });

  it('a module is loaded again', async () => {
    const at = await world();
    at.folder.file('mine.mjs', moduleSink('first'));
    const process = await served(at, withModule(at));
    at.folder.file('mine.mjs', moduleSink('second'));
    process.signals.emit('SIGHUP');
    await expect.poll(() => process.lines.some(({ msg }) => msg.includes('was read again')), LONG).toBe(true);
    await deliver(at, 'completed');
    await expect.poll(() => existsSync(join(at.folder.path, 'second')), LONG).toBe(true);
  });

  it('a module is closed when the process ends, for what it imports is shared with the one that follows', async () => {
    const at = await world();
    at.folder.file('pool.mjs', 'export const pool = { isOpen: true };');
    const pooled = `
import { pool } from './pool.mjs';
import { writeFileSync } from 'node:fs';
export function send() { if (!pool.isOpen) throw new Error('the pool is closed'); }
export function close() { pool.isOpen = false; writeFileSync(new URL('closed', import.meta.url), ''); }
`;
    at.folder.file('mine.mjs', pooled);
    const process = await served(at, withModule(at));
    process.signals.emit('SIGHUP');
    await expect.poll(() => process.lines.some(({ msg }) => msg.includes('was read again')), LONG).toBe(true);
    await deliver(at, 'completed');
    await expect.poll(() => process.lines.filter(({ msg }) => msg === 'event applied').length, LONG).toBe(1);
    expect(existsSync(join(at.folder.path, 'closed'))).toBe(false);
    process.signals.emit('SIGTERM');
    await expect.poll(() => existsSync(join(at.folder.path, 'closed')), LONG).toBe(true);
  });

  it('secrets are read again: the former one and the new one sign', async () => {
    const at = await world();
    at.folder.file('secret', `whsec_${Buffer.alloc(32, 1).toString('base64')}`);
    at.folder.file('next', `whsec_${Buffer.alloc(32, 2).toString('base64')}`);
    const process = await served(at, at.yaml().replace('{ env: SINK_SECRET }', '{ file: secret }'));
    at.folder.file(
      'webhooks.yaml',
      at.yaml().replace('{ env: SINK_SECRET }', '{ file: next }, { file: secret }'),
    );
    process.signals.emit('SIGHUP');
    await expect.poll(() => process.lines.some(({ msg }) => msg.includes('was read again')), LONG).toBe(true);
    await deliver(at, 'completed');
    await expect.poll(() => at.sink.posted.length, LONG).toBe(1);
    expect(at.sink.posted[0]?.headers['webhook-signature']).toMatch(/^v1,\S+ v1,\S+$/);
  });

  const REJECTED: readonly (readonly [string, (at: World) => string, RegExp])[] = [
    [
      'a mistake',
      (at) => at.yaml('limits: { maxBodyBytes: x }\n'),
      /: webhooks\.yaml:9:11 limits\.maxBodyBytes: is not a whole number/,
    ],
    [
      'another port',
      (at) => at.yaml().replace(/listen: .*/, 'listen: { port: 0 }'),
      /: webhooks\.yaml: listen has changed\. Start the process anew/,
    ],
    [
      'another port of health',
      (at) => at.yaml().replace(/health: .*/, ''),
      /: webhooks\.yaml: health has changed\./,
    ],
    [
      'a module that exports no send',
      (at) => at.yaml().replace(/sink: .*/, 'sink: ./bad.mjs'),
      /: \.\/bad\.mjs: exports no function send\./,
    ],
    [
      'a module that throws',
      (at) => at.yaml().replace(/sink: .*/, 'sink: ./throws.mjs'),
      /: \.\/throws\.mjs: cannot be loaded: it has no database\. Correct it/,
    ],
    ['a store that cannot be used', (at) => at.yaml('store: { sqlite: text.db }\n'), /: .*not a database/],
    [
      'a store that is not there in time',
      (at) => at.yaml('store: { redis: { url: { env: REDIS } } }\n'),
      /: Redis: /,
    ],
  ];
  const SHORT = ['a mistake', 'another port', 'a store that is not there in time'];

  it.each(inThisForm(REJECTED, ([name]) => SHORT.includes(name)))(
    '%s leaves everything as it was, with an alarm',
    async (_, yaml, message) => {
      const at = await world();
      at.folder.file('bad.mjs', 'export const other = 1;');
      at.folder.file('throws.mjs', "throw new Error('it has no database');");
      at.folder.file('text.db', 'no database, but long enough to have a header\n'.repeat(100));
      const env = {
        SINK_SECRET: SECRET,
        REDIS: `redis://127.0.0.1:${await freePort()}`,
      };
      const process = await served(at, at.yaml(), { env, readyMs: 200, graceMs: 400 });
      at.folder.file('webhooks.yaml', yaml(at));
      process.signals.emit('SIGHUP');
      await expect.poll(() => process.alarms('config_rejected').length, LONG).toBe(1);
      expect(process.alarms('config_rejected')[0]).toMatchObject({
        level: 'warn',
        docs: 'docs/alarms.md#config_rejected',
        msg: expect.stringMatching(message) as string,
      });
      expect(process.alarms('config_rejected')[0]?.msg).toMatch(
        /^the configuration was not taken, and the former one holds: /,
      );
      expect(await deliver(at, 'completed')).toBe(200);
      await expect.poll(() => at.sink.posted.length, LONG).toBe(1);
    },
  );

  it('it ends the pause of a sink, and says so', async () => {
    const at = await world();
    const process = await served(at);
    at.sink.status = 503;
    expect(await deliver(at, 'completed')).toBe(200);
    await expect.poll(() => process.lines.some(({ msg }) => msg === 'the sink is paused'), LONG).toBe(true);
    at.sink.status = 200;
    process.signals.emit('SIGHUP');
    await expect
      .poll(
        () => process.lines.filter(({ msg }) => /it is tried anew|takes events again/.test(msg)).length,
        LONG,
      )
      .toBe(1);
    await expect.poll(() => at.sink.posted.length, LONG).toBeGreaterThan(1);
    expect(JSON.parse((await at.health('/readyz')).text)).toMatchObject({ sink: { paused: false } });
  });

  it('another store is refused: events may wait in the former one', async () => {
    const at = await world();
    const process = await served(at);
    at.sink.status = 503;
    expect(await deliver(at, 'completed')).toBe(200);
    at.folder.file('webhooks.yaml', at.yaml('store: { sqlite: other.db }\n'));
    process.signals.emit('SIGHUP');
    await expect.poll(() => process.alarms('config_rejected'), LONG).toHaveLength(1);
    expect(process.alarms('config_rejected')[0]?.msg).toContain('store is another one');
    at.sink.status = 200;
    await expect.poll(() => types(at.sink).includes('proto.task.completed'), LONG).toBe(true);
  });

  it('connections to a former sink are closed', async () => {
    const at = await world();
    const process = await served(at);
    const again = async (n: number): Promise<void> => {
      expect(await deliver(at, 'completed')).toBe(200);
      await expect.poll(() => at.sink.posted.length, LONG).toBe(n);
      process.signals.emit('SIGHUP');
      const read = (): number => process.lines.filter(({ msg }) => msg.includes('was read again')).length;
      await expect.poll(read, LONG).toBe(n);
    };
    for (let n = 1; n <= 3; n += 1) await again(n);
    await expect.poll(() => at.sink.connections(), LONG).toBe(0);
  });

  it('another store than the expected one is refused', async () => {
    const at = await world();
    const process = await served(at);
    at.folder.file('webhooks.yaml', at.yaml('expectStoreId: another\n'));
    process.signals.emit('SIGHUP');
    await expect.poll(() => process.alarms('config_rejected'), LONG).toHaveLength(1);
    expect(process.alarms('config_rejected')[0]?.msg).toContain('expectStoreId');
    expect(await deliver(at, 'completed')).toBe(200);
  });

  it('another sink URL: the next event goes there', async () => {
    const at = await world();
    const other = await httpSink();
    const process = await served(at);
    at.folder.file('webhooks.yaml', at.yaml().replace(at.sink.url, other.url));
    process.signals.emit('SIGHUP');
    process.signals.emit('SIGHUP');
    await expect
      .poll(() => process.lines.filter(({ msg }) => msg.includes('was read again')).length, LONG)
      .toBe(2);
    await deliver(at, 'completed');
    await expect.poll(() => other.posted.length, LONG).toBe(1);
    expect(at.sink.posted.length).toBe(0);
  });
});

it('nothing of a body or a secret is in a line of the log', async () => {
  const at = await world();
  at.sink.status = 500;
  const process = await served(at, at.yaml(), { graceMs: 400 });
  await deliver(at, 'completed', { message: 'a-text-of-the-body' });
  await expect.poll(() => at.sink.posted.length, LONG).toBeGreaterThan(0);
  await process.stop();
  const log = process.lines.map((line) => JSON.stringify(line)).join('\n');
  expect(log).not.toContain('a-text-of-the-body');
  expect(log).not.toContain('whsec_');
  for (const line of process.lines) {
    expect(line).toMatchObject({
      time: expect.stringMatching(/^\d{4}-.*Z$/) as string,
      level: expect.stringMatching(/^(info|warn|error)$/) as string,
    });
  }
});
