import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import type { FakeSeller } from '../../src/testing/index.ts';
import { ownDatabase } from './database.ts';
import { itReceives } from './deliveries.ts';
import { INSTALL_MS } from '../support/packed.ts';
import { installed, type Example, type Running } from './kit.ts';
import { registered } from './registered.ts';

interface Server {
  readonly name: string;
  /** Scripts of its package.json that its README has run before `start`; those of `checks` after it. */
  readonly before: readonly string[];
  readonly checks: readonly string[];
  /** It keeps its events in Postgres; SQLite else. */
  readonly postgres: boolean;
  /** Where it serves what its handler wrote in `ctx.transaction`. */
  readonly results?: string;
  /** After SIGTERM. */
  readonly exit: number;
  /** Where it serves its metrics; `/livez` and `/readyz` are there then too. */
  readonly metrics?: string;
}

const PLAIN: Omit<Server, 'name'> = { before: [], checks: [], postgres: false, exit: 0 };

const SERVERS: readonly Server[] = [
  { ...PLAIN, name: 'express', results: '/media-buys' },
  { ...PLAIN, name: 'fastify', checks: ['types'], results: '/results' },
  { ...PLAIN, name: 'hono', checks: ['types'], results: '/results' },
  { ...PLAIN, name: 'otel', metrics: '/metrics' },
  { ...PLAIN, name: 'nest', before: ['build'] },
  // Next.js answers SIGTERM itself, and says so with the shell's number for it.
  { ...PLAIN, name: 'next', before: ['migrate', 'build'], checks: ['types'], postgres: true, exit: 143 },
];

describe.each(SERVERS)('examples/$name, installed from the packed package', (given) => {
  const opened = new AsyncDisposableStack();
  let example: Example;
  let seller: FakeSeller;
  let server: Running;
  let origin = '';

  beforeAll(async () => {
    example = await installed(given.name, inject('shared'));
    opened.defer(example.remove);
    const database = given.postgres ? await ownDatabase(inject('shared'), given.name) : undefined;
    if (database) opened.defer(database.drop);
    const at = await registered();
    origin = at.origin;
    seller = opened.use(at.seller);
    const settings = { ALLOW_LOOPBACK: '1', ...(database && { DATABASE_URL: database.url }) };
    for (const script of given.before) await example.script(script, settings);
    server = example.start('start', { ...at.env, ...settings });
    opened.defer(async () => void (await server.stop()));
    await server.answers(origin);
  }, INSTALL_MS);

  afterAll(() => opened.disposeAsync(), INSTALL_MS);

  itReceives(() => ({ seller, handles: server }));

  it.each([given.results ?? []].flat())(
    '%s has a result once, written in the transaction that completes its event',
    async (path) => {
      const payload = seller.payloads.tool('completed');
      expect((await seller.deliver(payload)).last.status).toBe(200);
      expect((await seller.deliver(payload)).last.status).toBe(200);
      const rows = (await (await fetch(origin + path)).json()) as readonly object[];
      expect(rows).toHaveLength(1);
      expect(Object.values(rows[0] ?? {})).toContain(JSON.stringify(payload.result));
    },
  );

  it.each([given.metrics ?? []].flat())('serves what it did at %s, and how it is', async (path) => {
    expect((await seller.deliver(seller.payloads.tool('working'))).last.status).toBe(200);
    const scrape = async (): Promise<string> => (await fetch(origin + path)).text();
    await expect
      .poll(scrape, { timeout: 60_000 })
      .toMatch(/^messaging_process_duration(_seconds)?_count\{.*\} [1-9]/m);
    const metrics = await scrape();
    expect(metrics).toMatch(/^webhook_deliveries_total\{.*webhook_outcome="accepted".*\} [1-9]/m);
    expect(metrics).toMatch(/^webhook_events\{.*webhook_state="dead".*\} 0/m);
    expect(metrics).toMatch(/^webhook_queue_overdue/m);
    for (const health of ['/livez', '/readyz']) expect((await fetch(origin + health)).status).toBe(200);
  });

  it.each(given.checks)(
    'its %s are right, those of its dependencies included',
    async (script) => void (await example.script(script)),
    INSTALL_MS,
  );

  it('stops on SIGTERM', async () => {
    expect(await server.stop()).toBe(given.exit);
  });
});
