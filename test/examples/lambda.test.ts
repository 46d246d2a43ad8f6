import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import { createFakeSeller } from '../../src/testing/fake-seller.ts';
import type { FakeSeller } from '../../src/testing/seller-types.ts';
import { freePort } from '../support/free-port.ts';
import { ownDatabase } from './database.ts';
import { itReceives } from './deliveries.ts';
import { INSTALL_MS, installed, type Example, type Running } from './kit.ts';

const FRONTS = ['rest-api', 'http-api', 'function-url', 'load-balancer'] as const;

describe('examples/lambda, installed from the packed package and bundled as a user does', () => {
  const opened = new AsyncDisposableStack();
  let example: Example;
  let seller: FakeSeller;
  let inbox: Running;
  let env: Readonly<Record<string, string>> = {};
  let origin = '';

  beforeAll(async () => {
    example = await installed('lambda');
    opened.defer(example.remove);
    const database = await ownDatabase(inject('shared'), 'lambda');
    opened.defer(database.drop);
    const port = await freePort();
    origin = `http://127.0.0.1:${port}`;
    const url = `${origin}/webhooks/proto`;
    seller = opened.use(await createFakeSeller({ url }));
    env = {
      PORT: String(port),
      DATABASE_URL: database.url,
      PUBLIC_URL: url,
      AGENT_URL: seller.agentUrl,
      BRAND_JSON_URL: seller.brandJsonUrl,
      ALLOW_LOOPBACK: '1',
    };
    await example.script('build');
    await example.script('migrate', env);
    inbox = example.start('inbox', env);
    opened.defer(async () => void (await inbox.stop()));
  }, INSTALL_MS);

  afterAll(() => opened.disposeAsync());

  describe.each(FRONTS)('behind a %s', (front) => {
    let server: Running;

    beforeAll(async () => {
      server = example.start('start', { ...env, FRONT: front });
      await server.answers(origin);
    });

    afterAll(async () => void (await server.stop()));

    itReceives(() => ({ seller, handles: inbox }));
  });

  it('its types are right, those of its dependencies included', () => example.script('types'), INSTALL_MS);

  it('the inbox stops on SIGTERM', async () => {
    expect(await inbox.stop()).toBe(0);
  });
});
