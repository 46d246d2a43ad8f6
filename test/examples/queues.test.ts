import { execFile } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import { FORM } from '../reliability/form.ts';
import { ON_DISK, startServer } from '../support/redis.ts';
import { ownDatabase } from './database.ts';
import { INSTALL_MS } from '../support/packed.ts';
import { type Example, installed } from './kit.ts';

const run = promisify(execFile);
const root = fileURLToPath(new URL('../..', import.meta.url));

describe('examples of queues, installed from the packed package: a receiver, a worker and a seller in three processes', () => {
  const examples = new Map<string, Example>();
  const example = (name: string): Example => {
    const found = examples.get(name);
    if (!found) throw new Error(`${name} is not installed`);
    return found;
  };
  /** What `npm start` prints. */
  const played = (name: string, env: Readonly<Record<string, string>>): Promise<string> =>
    example(name).script('start', env);

  beforeAll(async () => {
    for (const name of ['bullmq', 'pg-boss']) examples.set(name, await installed(name, inject('shared')));
  }, INSTALL_MS);
  afterAll(async () => {
    for (const { remove } of examples.values()) await remove();
  });

  it.each(FORM === 'short' ? [] : ['bullmq', 'pg-boss'])('%s: its types are right', async (name) => {
    await example(name).script('types');
  });

  it('both play the same', () => {
    const [bullmq, pgBoss] = ['bullmq', 'pg-boss'].map((name) =>
      readFileSync(join(root, 'examples', name, 'play.ts'), 'utf8'),
    );
    expect(pgBoss).toBe(bullmq);
  });

  it('bullmq: a crash between enqueue and completion doubles nothing', async () => {
    const server = await startServer(ON_DISK);
    try {
      const said = await played('bullmq', { REDIS_URL: `redis://127.0.0.1:${server.port}` });
      expect(said).toMatch(/^kill -9/m);
      expect(said).toMatch(/^4 events, 4 jobs, each run once$/m);
    } finally {
      await server.remove();
    }
  });

  it('a worker that does not start: the example fails, and leaves no process and no folder behind', async () => {
    const place = mkdtempSync(join(tmpdir(), 'proto-webhooks-play-'));
    try {
      const own = join(place, 'examples');
      mkdirSync(own);
      const receiver = [
        "import { writeFileSync } from 'node:fs';",
        `writeFileSync(${JSON.stringify(join(place, 'pid'))}, String(process.pid));`,
        'process.send({ ready: true });',
        'setInterval(() => {}, 60_000);',
      ];
      writeFileSync(join(own, 'receiver.ts'), receiver.join('\n'));
      writeFileSync(join(own, 'worker.ts'), 'process.exit(3);');
      const play = JSON.stringify(String(pathToFileURL(join(example('bullmq').folder, 'play.ts'))));
      const main = join(own, 'run.ts');
      writeFileSync(main, `import { play } from ${play};\nawait play(import.meta.url, {});`);
      const played = run(process.execPath, [main], { env: { ...process.env, TMPDIR: place } });
      await expect(played).rejects.toThrow('the process ended');
      const pid = Number(readFileSync(join(place, 'pid'), 'utf8'));
      expect(() => process.kill(pid, 0)).toThrow('ESRCH');
      expect(readdirSync(place).toSorted()).toEqual(['examples', 'pid']);
    } finally {
      rmSync(place, { recursive: true, force: true });
    }
  });

  it('pg-boss: job and completion are one commit', async () => {
    const database = await ownDatabase(inject('shared'), 'pg_boss');
    try {
      const said = await played('pg-boss', { DATABASE_URL: database.url });
      expect(said).toMatch(/^kill -9/m);
      expect(said).toMatch(/^4 events, 4 jobs, each run once$/m);
    } finally {
      await database.drop();
    }
  });
});
