import { execFile } from 'node:child_process';
import { createServer } from 'node:http';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { createTestCa, listening, startHttpsServer } from '../../support/tls.ts';
import { HOST } from './bench.ts';

const CHILD = fileURLToPath(new URL('environment-child.ts', import.meta.url));

test('the environment sends no fetch through a proxy and turns no certificate check off', async () => {
  const ca = await createTestCa();
  const server = await startHttpsServer(await ca.issue([HOST]), (_req, res) => {
    res.end('from the seller');
  });
  const seen: string[] = [];
  const proxy = createServer((req, res) => {
    seen.push(req.url ?? '');
    res.end('from the proxy');
  });
  proxy.on('connect', (req, socket) => {
    seen.push(req.url ?? '');
    socket.end('HTTP/1.1 502 No\r\n\r\n');
  });
  const { port } = await listening(proxy);
  const url = `http://127.0.0.1:${port}`;
  const { stdout } = await promisify(execFile)(process.execPath, ['--no-warnings', CHILD], {
    env: {
      SERVER_PORT: String(server.port),
      CA_PEM: ca.pem,
      NODE_USE_ENV_PROXY: '1',
      NODE_TLS_REJECT_UNAUTHORIZED: '0',
      NODE_OPTIONS: '--insecure-http-parser',
      ...Object.fromEntries(
        ['HTTP_PROXY', 'HTTPS_PROXY', 'ALL_PROXY'].flatMap((name) => [
          [name, url],
          [name.toLowerCase(), url],
        ]),
      ),
    },
  });
  expect(JSON.parse(stdout)).toEqual({
    trusted: 'from the seller',
    untrusted: expect.stringMatching(/unable to (?:verify|get)/),
    platform: expect.any(String),
  });
  // The proxy is there, and the platform does go to it.
  expect(seen).toHaveLength(1);
  expect(seen[0]).toContain(HOST);
});
