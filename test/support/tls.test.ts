import { connect } from 'node:tls';
import { once } from 'node:events';
import { expect, test } from 'vitest';
import { createTestCa, startHttpsServer } from './tls.ts';

test('a certificate of the test authority is trusted only with its root', async () => {
  const ca = await createTestCa();
  const server = await startHttpsServer(await ca.issue(['seller.example']), (_req, res) => {
    res.end();
  });
  const target = { host: '127.0.0.1', port: server.port, servername: 'seller.example' };
  const trusting = connect({ ...target, ca: ca.pem });
  await once(trusting, 'secureConnect');
  trusting.destroy();
  const [error] = (await once(connect(target), 'error')) as [Error];
  expect(error.message).toMatch(/unable to (?:verify|get)/);
});
