import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import { createFakeSeller, type FakeSeller } from '../../src/testing/index.ts';
import { freePort } from '../support/free-port.ts';
import { elsewhere } from '../support/named-seller.ts';
import { INSTALL_MS } from '../support/packed.ts';
import { asWritten, blocksOf } from '../support/samples.ts';
import { itReceives } from './deliveries.ts';
import {
  type Consumer,
  GO_CONSUMER,
  needLanguage,
  PYTHON_CONSUMER,
  workplace,
  type Workplace,
} from './event-consumers.ts';
import { type Example, installed, type Running } from './kit.ts';
import { openPrograms } from './programs.ts';

const SECRET = `whsec_${randomBytes(32).toString('base64')}`;

/** A text with each of these replaced. @throws Error for one that it does not have exactly once. */
function replaced(text: string, changes: Readonly<Record<string, string>>): string {
  return Object.entries(changes).reduce((now, [from, to]) => {
    if (now.split(from).length !== 2) throw new Error(`not once: ${from}`);
    return now.replace(from, () => to);
  }, text);
}

beforeAll(async () => {
  await needLanguage(PYTHON_CONSUMER);
  await needLanguage(GO_CONSUMER);
}, INSTALL_MS);

describe('examples/serve, installed from the packed package', () => {
  let parent: string;
  let example: Example;
  let seller: FakeSeller;
  let ports: Readonly<Record<'listen' | 'health' | 'sink', number>>;
  /** Of a file of the example. */
  const textOf = (file: string): Promise<string> => readFile(join(example.folder, file), 'utf8');
  const write = (file: string, text: string): Promise<void> => writeFile(join(example.folder, file), text);

  beforeAll(async () => {
    parent = await mkdtemp(join(tmpdir(), 'proto-webhooks-serve-'));
    example = await installed('serve', inject('shared'));
    ports = { listen: await freePort(), health: await freePort(), sink: await freePort() };
    const url = `http://127.0.0.1:${ports.listen}/webhooks/seller`;
    seller = await createFakeSeller({ url });
    await write('sink.secret', `${SECRET}\n`);
    const written = await textOf('webhooks.yaml');
    await write('written.yaml', written);
    const ours = replaced(written, {
      'https://buyer.example/webhooks/seller': url,
      'https://seller.example/mcp': seller.agentUrl,
      'port: 8080': `port: ${ports.listen}`,
      'port: 8081': `port: ${ports.health}`,
      ':3000/': `:${ports.sink}/`,
    });
    await write('webhooks.yaml', `allowLoopback: true\n${ours}`);
  }, INSTALL_MS);
  afterAll(async () => {
    await seller.close();
    await example.remove();
    await rm(parent, { recursive: true });
  });

  async function ready(server: Running): Promise<void> {
    const url = `http://127.0.0.1:${ports.health}/readyz`;
    await server.answers(url);
    while ((await fetch(url)).status !== 200) await sleep(50);
  }

  describe.each([PYTHON_CONSUMER, GO_CONSUMER])('with the consumer in $name', (language) => {
    let place: Workplace;
    let consumer: Consumer;
    let server: Running;
    beforeAll(async () => {
      place = await workplace(parent, language, false);
      await place.write('sink.secret', SECRET);
      consumer = await place.restart(ports.sink, 'sink.secret');
      server = example.start('start', {});
      await ready(server);
    }, INSTALL_MS);
    afterAll(async () => {
      await server.stop();
      await consumer[Symbol.asyncDispose]();
    });

    itReceives(() => ({ seller, handles: consumer }));

    it('a body as large as the limit is handled, though its event is thirteen times as large', async () => {
      // The report is in `data`, `report` and `envelope`, and JSON of JavaScript writes such numbers out.
      const event = seller.payloads.report('scheduled', { filler: [0] });
      const text = JSON.stringify(event).replace('[0]', `[${Array(209_000).fill('1e20').join(',')}]`);
      expect(text.length).toBeGreaterThan(1_045_000);
      expect((await seller.deliver(text)).last.status).toBe(200);
      await expect.poll(consumer.printed, { timeout: 30_000 }).toContain(event.idempotency_key);
    });

    it('an event that comes while the consumer is away is handled when it is back', async () => {
      await consumer[Symbol.asyncDispose]();
      const event = seller.payloads.tool('completed');
      expect((await seller.deliver(event)).last.status).toBe(200);
      consumer = await place.restart(ports.sink, 'sink.secret');
      await expect.poll(consumer.printed, { timeout: 30_000 }).toContain(event.idempotency_key);
    });

    it('--check finds no mistake, and store and sink', async () => {
      const printed = await example.script('check');
      expect(printed.match(/^ok /gm), printed).toHaveLength(3);
    });

    it('SIGTERM ends it', async () => {
      expect(await server.stop(), server.printed()).toBe(0);
    });
  });

  it('its file has no mistake as it is', async () => {
    // The sink that it names is not there.
    const told = await example.script('check', {}, ['--config', 'written.yaml']).catch(String);
    expect(told).toContain('written.yaml has no mistake');
  });

  it('its module books a media buy, by the commands of its Dockerfile', async () => {
    const yaml = await textOf('webhooks.yaml');
    const withModule = yaml
      .replace(/^sink:\n(?: .*\n)+/m, '')
      .replace('# sink: ./mine.js', 'sink: ./mine.js');
    await write('webhooks.yaml', withModule);
    await symlink(join(example.folder, '../node_modules'), join(example.folder, 'node_modules'));
    const dockerfile = await textOf('Dockerfile');
    expect(dockerfile).toMatch(/^# This was not built [^]*^FROM node:24-slim$/m);
    const commandAfter = (word: RegExp): readonly string[] => {
      const line = dockerfile.split('\n').find((one) => word.test(one)) ?? '';
      return JSON.parse(line.slice(line.indexOf('['))) as readonly string[];
    };
    const command = commandAfter(/^CMD /).join(' ');
    // The unit starts the same.
    expect(await textOf('proto-webhooks.service')).toContain(
      `/${replaced(command, { 'node node_': 'node_', 'webhooks.yaml': '/etc/webhooks/webhooks.yaml' })}\n`,
    );

    const server = example.startLine(command, {});
    await ready(server);
    const event = { ...seller.payloads.tool('completed'), task_type: 'create_media_buy' };
    const results = [{ media_buy_id: 'mb-1' }, { media_buy_id: 7 }];
    for (const [index, result] of results.entries()) {
      const key = `${event.idempotency_key}-${index}`;
      const task = { task_id: `${event.task_id}-${index}`, idempotency_key: key, result };
      expect((await seller.deliver({ ...event, ...task })).last.status).toBe(200);
    }
    expect((await seller.deliver(seller.payloads.report())).last.status).toBe(200);
    await expect.poll(server.printed).toMatch(/"alarm":"dead".*a media buy without media_buy_id/);
    const [program = '', ...args] = commandAfter(/^HEALTHCHECK /);
    const asked = args.map((arg) => arg.replace('8081', String(ports.health)));
    await promisify(execFile)(program, asked);
    expect(await server.stop(), server.printed()).toBe(0);
    await expect(promisify(execFile)(program, asked)).rejects.toThrow();

    const db = new DatabaseSync(join(example.folder, 'data/mine.db'), { readOnly: true });
    const rows = db.prepare('SELECT seller, media_buy FROM buys').all();
    db.close();
    expect(rows).toEqual([{ seller: seller.agentUrl, media_buy: 'mb-1' }]);
  });
});

describe('docs/serve.md', () => {
  it(
    'from nothing to a function in Python that prints a verified event',
    async () => {
      await using programs = await openPrograms(inject('shared'), 'serve-doc');
      const [listen, health, sink, documents] = [
        await freePort(),
        await freePort(),
        await freePort(),
        await freePort(),
      ];
      const ports = { 8080: listen, 8081: health, 3000: sink, 4555: documents };
      await using around = await elsewhere(programs.folder, { ports });
      await programs.write('consumer.py', asWritten('docs/serve.md', 'BaseHTTPRequestHandler'));
      const [yaml] = blocksOf('docs/serve.md').filter(({ language }) => language === 'yaml');
      await programs.write('webhooks.yaml', yaml?.code ?? '');
      const env = { ...around.env, PORT: String(sink) };
      await using started = programs.start(asWritten('docs/serve.md', 'python3 consumer.py'), env);
      await expect.poll(started.printed, { timeout: 60_000 }).toContain('"msg":"listening"');
      const sent = await programs.shell(asWritten('docs/serve.md', 'npx proto-webhooks send'), env);
      expect(sent.stdout, started.printed()).toBe('pass  the delivery -> 200\n');
      await expect.poll(started.printed).toMatch(/^verified: proto\.task\.completed task_\S+$/m);
    },
    INSTALL_MS,
  );
});
