import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import { freePort } from '../support/free-port.ts';
import { INSTALL_MS } from '../support/packed.ts';
import { asWritten } from '../support/samples.ts';
import { openPrograms, type Programs } from './programs.ts';

const SERVER = asWritten('README.md', 'export const receiver');

interface State {
  readonly sellers: readonly { readonly scheme: string; readonly line: string }[];
}
interface Row {
  readonly id: number;
  readonly status?: number;
  readonly told?: string;
  readonly asExpected?: boolean;
}
interface Full extends Row {
  readonly tellings: readonly { readonly hook: string; readonly event?: object }[];
}

/** A program with another text in the place of one that it has once. */
function replaced(program: string, what: RegExp, by: string): string {
  expect(program.match(new RegExp(what, 'g'))).toHaveLength(1);
  return program.replace(what, by);
}

describe('dev beside the program of README, in an empty project on the packed package', () => {
  let programs: Programs;
  beforeAll(async () => {
    programs = await openPrograms(inject('shared'), 'dev');
  }, INSTALL_MS);
  afterAll(() => programs[Symbol.asyncDispose]());

  it('its line of senders and devHooks() show what the handler got, and production refuses both', async () => {
    const [port, devPort] = [await freePort(), await freePort()];
    const url = `http://127.0.0.1:${port}/webhooks/seller`;
    await using dev = programs.start(
      `exec proto-webhooks dev --json --port ${devPort} --forward ${url} --dir ${programs.folder}/dev`,
    );
    await expect.poll(() => dev.printed()).toMatch(/^\}$/m);
    const { token } = JSON.parse(/^\{[^]*^\}$/m.exec(dev.printed())?.[0] ?? '') as { token: string };
    const ask = async <T>(path: string, body?: object): Promise<T> => {
      const response = await fetch(`http://127.0.0.1:${devPort}/api/${path}`, {
        headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
        ...(body && { method: 'POST', body: JSON.stringify(body) }),
      });
      expect(response.status, dev.printed()).toBe(200);
      return (await response.json()) as T;
    };
    const { sellers } = await ask<State>('state');
    const line = sellers.find(({ scheme }) => scheme === 'signature')?.line ?? '';

    let program = replaced(SERVER, /publicUrl: '[^']*'.*/, `publicUrl: '${url}',`);
    program = replaced(program, /senders: \{[^]*?\n {2}\},/, line);
    await programs.write('without-hooks.mjs', program);
    program = replaced(program, /onAlarm:.*/, `...devHooks({ dir: '${programs.folder}/dev' }),`);
    await programs.write('dev.mjs', `import { devHooks } from 'proto-webhooks/testing';\n${program}`);

    await using server = await programs.serve('dev.mjs', {}, port);
    const payload = { kind: 'task', transport: 'tool', status: 'completed' };
    const row = await ask<Row>('send', { payload });
    expect(row, server.printed()).toMatchObject({ status: 200, asExpected: true });
    const full = (): Promise<Full> => ask(`deliveries/${row.id}`);
    await expect
      .poll(async () => (await full()).tellings.filter(({ hook }) => hook !== 'alarm'))
      .toMatchObject([
        { hook: 'handled', state: 'applied' },
        { hook: 'outcome', event: { kind: 'task', status: 'completed', source: 'webhook' } },
      ]);
    expect(await full()).toMatchObject({ told: 'applied' });
    expect(server.printed()).toContain('done task_');

    const production = { NODE_ENV: 'production', PORT: '0' };
    await expect(programs.run('dev.mjs', production)).rejects.toThrow(/devHooks: is for development/);
    await expect(programs.run('without-hooks.mjs', production)).rejects.toThrow(
      /ConfigError: senders\[0\]\.agentUrl: .* is a seller of proto-webhooks dev, refused under NODE_ENV=production/,
    );
  });

  it('the program of its page shows what the handler got', async () => {
    const [port, devPort] = [await freePort(), await freePort()];
    await programs.write('server.mjs', asWritten('docs/dev.md', 'devHooks'));
    await using dev = programs.start(
      `exec proto-webhooks dev --json --port ${devPort} --forward http://127.0.0.1:${port}/webhooks/seller`,
    );
    await expect.poll(() => dev.printed()).toMatch(/^\}$/m);
    // In the folder of dev's, as the page says.
    await using server = programs.start('exec node server.mjs', {
      PORT: String(port),
      DEV_PORT: String(devPort),
    });
    const { token } = JSON.parse(/^\{[^]*^\}$/m.exec(dev.printed())?.[0] ?? '') as { token: string };
    const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
    const body = '{"payload":{"kind":"task","transport":"tool","status":"completed"}}';
    const at = `http://127.0.0.1:${devPort}/api`;
    await expect
      .poll(async () => (await fetch(`${at}/state`, { headers })).json())
      .toMatchObject({
        receiver: { state: 'up' },
      });
    const sent = await fetch(`${at}/send`, { method: 'POST', headers, body });
    expect(await sent.json(), server.printed()).toMatchObject({ id: 1, status: 200, asExpected: true });
    await expect
      .poll(async () => (await fetch(`${at}/deliveries/1`, { headers })).json())
      .toMatchObject({
        told: 'applied',
        tellings: expect.arrayContaining([expect.objectContaining({ hook: 'handled', state: 'applied' })]),
      });
    expect(server.printed()).toContain('task completed');
  });
});
