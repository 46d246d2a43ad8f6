import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { cp, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { freePort } from '../support/free-port.ts';
import { createFakeSeller } from '../../src/testing/fake-seller.ts';

const run = promisify(execFile);
const root = fileURLToPath(new URL('../..', import.meta.url));

describe('examples/express, installed from the packed package as a user does', () => {
  let folder = '';

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'proto-webhooks-example-'));
    await cp(join(root, 'examples/express'), folder, { recursive: true });
    const { stdout } = await run(
      'npm',
      ['pack', '--ignore-scripts', '--json', '--pack-destination', folder],
      {
        cwd: root,
      },
    );
    const [packed] = JSON.parse(stdout) as [{ filename: string }];
    await run(
      'npm',
      ['install', '--prefer-offline', '--no-audit', '--no-fund', join(folder, packed.filename)],
      {
        cwd: folder,
      },
    );
  }, 240_000);

  afterAll(() => rm(folder, { recursive: true, force: true }));

  it('receives, writes once, and stops on SIGTERM', async () => {
    const port = await freePort();
    const url = `http://127.0.0.1:${port}/webhooks/proto`;
    await using seller = await createFakeSeller({ url });
    const app = spawn(process.execPath, ['server.js'], {
      cwd: folder,
      env: {
        ...process.env,
        NODE_ENV: 'development',
        PORT: String(port),
        PUBLIC_URL: url,
        AGENT_URL: seller.agentUrl,
        BRAND_JSON_URL: seller.brandJsonUrl,
      },
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    const exited = once(app, 'exit');
    try {
      await once(app.stdout, 'data');
      const payload = seller.payloads.tool('completed', { operation_id: 'op-1' });
      expect((await seller.deliver(payload)).attempts.map(({ status }) => status)).toEqual([200]);
      expect((await seller.deliver(payload)).last.status).toBe(200);
      expect((await seller.deliver(seller.payloads.report())).last.status).toBe(200);
      const rows = (await (await fetch(`http://127.0.0.1:${port}/media-buys`)).json()) as object[];
      expect(rows).toMatchObject([{ operation_id: 'op-1', result: JSON.stringify(payload.result) }]);
    } finally {
      app.kill('SIGTERM');
    }
    expect((await exited)[0]).toBe(0);
  });
});

describe('npm run demo', () => {
  it('every line is as the contract says', async () => {
    const { stdout } = await run(process.execPath, [join(root, 'examples/demo/run.ts')], { cwd: root });
    expect(stdout).toMatch(/^28 passed, 0 failed$/m);
  });
});
