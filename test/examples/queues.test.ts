import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { describe, expect, it } from 'vitest';
import { startServer } from '../support/postgres.ts';
import { ON_DISK, startServer as startRedisServer } from '../support/redis.ts';

const run = promisify(execFile);
const root = fileURLToPath(new URL('../..', import.meta.url));

async function played(example: string, env: Readonly<Record<string, string>>): Promise<string> {
  const file = `${root}/examples/${example}/run.ts`;
  return (await run(process.execPath, [file], { cwd: root, env: { ...process.env, ...env } })).stdout;
}

describe('examples of queues: a receiver, a worker and a seller in three processes', () => {
  it('bullmq: a crash between enqueue and completion doubles nothing', async () => {
    const server = await startRedisServer(ON_DISK);
    try {
      const said = await played('bullmq', { REDIS_URL: `redis://127.0.0.1:${server.port}` });
      expect(said).toMatch(/^kill -9/m);
      expect(said).toMatch(/^4 events, 4 jobs, each run once$/m);
    } finally {
      await server.remove();
    }
  });

  it('pg-boss: job and completion are one commit', async () => {
    const server = await startServer();
    try {
      const said = await played('pg-boss', { DATABASE_URL: server.url });
      expect(said).toMatch(/^kill -9/m);
      expect(said).toMatch(/^4 events, 4 jobs, each run once$/m);
    } finally {
      server.remove();
    }
  });
});
