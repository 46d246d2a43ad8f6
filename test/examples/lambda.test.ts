import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import { ownDatabase } from './database.ts';
import { itReceives } from './deliveries.ts';
import { INSTALL_MS } from '../support/packed.ts';
import { installed, type Example, type Running } from './kit.ts';
import { type Registered, registered } from './registered.ts';

const FRONTS = ['rest-api', 'http-api', 'function-url', 'load-balancer'] as const;

describe('examples/lambda, installed from the packed package and bundled as a user does', () => {
  const opened = new AsyncDisposableStack();
  let example: Example;
  let at: Registered;
  let inbox: Running;
  let env: Readonly<Record<string, string>> = {};

  beforeAll(async () => {
    example = await installed('lambda', inject('shared'));
    opened.defer(example.remove);
    const database = await ownDatabase(inject('shared'), 'lambda');
    opened.defer(database.drop);
    at = await registered();
    opened.use(at.seller);
    env = { ...at.env, DATABASE_URL: database.url };
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
      await server.answers(at.origin);
    });

    afterAll(async () => void (await server.stop()));

    itReceives(() => ({ seller: at.seller, handles: inbox }));
  });

  it('its types are right, those of its dependencies included', () => example.script('types'), INSTALL_MS);

  it('the inbox stops on SIGTERM', async () => {
    expect(await inbox.stop()).toBe(0);
  });
});
