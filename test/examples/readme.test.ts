import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import { createFakeSeller, type PayloadInput } from '../../src/testing/index.ts';
import { freePort } from '../support/free-port.ts';
import { namedSeller } from '../support/named-seller.ts';
import { INSTALL_MS } from '../support/packed.ts';
import { asWritten, samplesOf, textOf } from '../support/samples.ts';
import { openPrograms, type Programs, type Server, URL_GIVEN } from './programs.ts';

const post = (url: string): Promise<Response> =>
  fetch(url, { method: 'POST', headers: { 'content-type': 'application/json' }, body: '{}' });

const UNSIGNED = 'Signature error="webhook_signature_header_malformed"';

describe('README: its programs run as written, in an empty project on the packed package', () => {
  let programs: Programs;
  beforeAll(async () => {
    programs = await openPrograms(inject('shared'), 'readme');
  }, INSTALL_MS);
  afterAll(() => programs[Symbol.asyncDispose]());

  const FIRST = asWritten('README.md', 'createFakeSeller');
  const SERVER = asWritten('README.md', 'export const receiver');

  it('is 200 lines at most, and these two blocks are its first', () => {
    expect(textOf('README.md').trimEnd().split('\n').length).toBeLessThanOrEqual(200);
    const [first, second] = samplesOf('README.md');
    expect([first?.code, second?.code]).toEqual([FIRST, SERVER]);
  });

  it('the first: a receiver beside a fake seller prints what arrived', async () => {
    await programs.write('first.mjs', FIRST);
    const stdout = await programs.run('first.mjs', { PORT: String(await freePort()) });
    const lines = stdout.trim().split('\n');
    expect(lines[0]).toMatch(/^arrived: task completed \{/);
    expect(lines.filter((line) => /^(arrived: delivery|\d{3})/.test(line))).toEqual([
      '200',
      '200',
      'arrived: delivery-report scheduled',
      '200',
      '401 webhook_signature_digest_mismatch',
    ]);
  });

  it('the second: the receiver for production says that it listens, takes what is signed, refuses what is not, and ends in order', async () => {
    await programs.write('server.mjs', SERVER);
    await using named = await namedSeller(programs.folder);
    await using server = await programs.serve('server.mjs', named.env);
    const { seller } = named;
    const to = `${server.origin}/webhooks/seller`;
    const { last } = await seller.deliver(seller.payloads.tool('completed'), { url: URL_GIVEN, to });
    expect(last.status, server.printed()).toBe(200);
    expect(server.printed()).toContain(`listening on ${new URL(server.origin).port}`);
    expect(server.printed()).toContain('done');
    const answers = await Promise.all(
      ['seller', 'other'].map((name) => post(`${server.origin}/webhooks/${name}`)),
    );
    expect(answers.map(({ status, headers }) => [status, headers.get('www-authenticate')])).toEqual([
      [401, UNSIGNED],
      [401, UNSIGNED],
    ]);
    expect((await post(`${server.origin}/other`)).status).toBe(404);
    expect(await server.stop(), server.printed()).toBe(0);
  });

  it('docs/frameworks.md: Express takes what a seller signs that writes `adcp`, and ends in order', async () => {
    await using named = await namedSeller(programs.folder, 'adcp');
    const { seller } = named;
    await programs.link('express');
    await programs.write('receiver.mjs', asWritten('docs/frameworks.md', 'export const receiver ='));
    await programs.write('express.mjs', asWritten('docs/frameworks.md', "import express from 'express'"));
    await using server = await programs.serve('express.mjs', named.env);
    const to = `${server.origin}/webhooks/seller`;
    const { last } = await seller.deliver(seller.payloads.tool('completed'), { url: URL_GIVEN, to });
    expect(last.status, server.printed()).toBe(200);
    expect((await post(to)).headers.get('www-authenticate')).toBe(UNSIGNED);
    expect(await server.stop(), server.printed()).toBe(0);
    expect(server.printed()).toContain('task completed');
  });

  it('docs/quickstart.md: its test passes', async () => {
    await programs.write('handlers.test.mjs', asWritten('docs/quickstart.md', 'createFakeSeller'));
    const command = 'node --test --test-reporter=tap handlers.test.mjs';
    const { code, stdout } = await programs.shell(command);
    expect([code, stdout]).toEqual([0, expect.stringMatching(/^ok 1 - a buy is booked once[^]*^# pass 1$/m)]);
  });

  it('docs/why.md: the route by hand does what the table says of it', async () => {
    await programs.write('route.mjs', asWritten('docs/why.md', 'function isSigned'));
    await programs.write('handle.mjs', HANDLE);
    const url = 'https://buyer.example/webhooks/seller';
    await using seller = await createFakeSeller({ url });
    const env = {
      JWKS_URL: new URL('/.well-known/jwks.json', seller.agentUrl).href,
      DATABASE: join(programs.folder, 'seen.db'),
    };
    const event = (message: string, status: 'completed' | 'working' = 'completed') => ({
      ...seller.payloads.tool(status),
      message,
    });
    const deliver = async (server: Server, payload: PayloadInput): Promise<number | undefined> => {
      const attempt = await seller.sign(payload);
      return (await seller.send(attempt, { to: `${server.origin}/webhooks/seller` })).status;
    };
    const dies = event('dies');
    {
      await using server = await programs.serve('route.mjs', env);
      const changed = await seller.sign(event('changed'), { mistake: 'tampered-body' });
      expect((await seller.send(changed, { to: server.origin })).status).toBe(401);
      const [good, fails, late] = [event('good'), event('fails'), event('late', 'working')];
      expect([await deliver(server, good), await deliver(server, good)]).toEqual([200, 200]);
      const copied = await seller.sign(good);
      for (let copy = 0; copy < 2; copy += 1)
        expect((await seller.send(copied, { to: server.origin })).status).toBe(200);
      expect([await deliver(server, fails), await deliver(server, fails)]).toEqual([500, 200]);
      expect(await deliver(server, { ...late, task_id: good.task_id })).toBe(200);
      await seller.rotate('ed25519');
      expect(await deliver(server, event('rotated'))).toBe(401);
      expect(server.printed().match(/^handled .*$/gm)).toEqual(['handled good', 'handled late']);
    }
    {
      await using server = await programs.serve('route.mjs', env);
      expect(await deliver(server, dies)).toBeUndefined();
    }
    await using again = await programs.serve('route.mjs', env);
    expect([await deliver(again, dies), again.printed()]).toEqual([200, '']);
  });

  it('docs/many-sellers.md: a sender is taken as soon as its row is there, and while the database is away', async () => {
    await programs.write('many.mjs', asWritten('docs/many-sellers.md', 'receiverFor'));
    const driver = [
      "import { createFakeSeller } from 'proto-webhooks/testing';",
      "import { receiverFor } from './many.mjs';",
      "const url = 'https://buyer.example/webhooks/one';",
      'const seller = await createFakeSeller({ url });',
      'let row;',
      'let away = false;',
      'const lookUp = async () => {',
      "  if (away) throw new Error('away');",
      '  return row;',
      '};',
      'const quiet = { debug() {}, info() {}, warn() {}, error() {} };',
      'const receiver = receiverFor(lookUp, { allowLoopback: true, logger: quiet });',
      'const deliver = async () => {',
      "  const { body, headers } = await seller.sign(seller.payloads.tool('working'));",
      "  const { response } = await receiver.verifyAndDispatch(body, headers, { url: '/webhooks/one' });",
      '  console.log(response.status);',
      '};',
      'away = true;',
      'await deliver();',
      'away = false;',
      'await deliver();',
      'row = { agent_url: seller.agentUrl };',
      'await deliver();',
      'away = true;',
      'const real = Date.now;',
      'Date.now = () => real() + 31_000;',
      'await deliver();',
      'Date.now = real;',
      'await receiver.stop();',
      'await seller.close();',
    ];
    await programs.write('many-run.mjs', driver.join('\n'));
    const stdout = await programs.run('many-run.mjs');
    expect(stdout.match(/^\d{3}$/gm)).toEqual(['503', '401', '200', '200']);
  });
});

/** A handler of the reader's: by its message an event fails, or ends the process, each time that it is handled. */
const HANDLE = `
export async function handle({ message }) {
  if (message === 'fails') throw new Error('the ad server is down');
  if (message === 'dies') process.exit(1);
  console.log('handled', message);
}
`;
