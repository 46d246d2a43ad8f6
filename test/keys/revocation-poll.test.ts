import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { describe, expect, test, vi } from 'vitest';
import type { KeyFetch } from '../../src/index.ts';
import { defaultFetch } from '../../src/keys/for-tests.ts';
import type { SenderEntry } from '../../src/for-tests.ts';
import { type KeyServer, startKeyServer } from './key-server.ts';
import { onWorkerd } from '../support/workerd.ts';
import { type Bench, MINUTE, senderEntry, setup } from './setup.ts';
import { type Timers, timers } from './timers.ts';

const LIST = '/revocations.json';

interface Polled extends Bench, Timers {
  readonly server: KeyServer;
  readonly sender: SenderEntry;
  readonly publish: (minutes: number, kids?: readonly string[]) => void;
}

async function polled(): Promise<Polled> {
  const server = await startKeyServer();
  const clock = timers();
  const bench = await setup({ schedule: clock.schedule });
  const publish = (minutes: number, kids: readonly string[] = []): void => {
    const [updated, next] = [bench.now(), bench.now() + minutes * MINUTE].map((ms) =>
      new Date(ms).toISOString(),
    );
    server.serve(LIST, { version: 1, issuer: server.origin, updated, next_update: next, revoked_kids: kids });
  };
  publish(7);
  const sender = senderEntry(`${server.origin}/mcp`, { revocation: { url: `${server.origin}${LIST}` } });
  return { ...bench, ...clock, server, sender, publish };
}

describe('a list is polled', () => {
  test('by next_update, whether or not deliveries come', async () => {
    const { keys, sender, waiting, advance, fire, publish, server } = await polled();
    await keys.revocation(sender, 'k');
    expect(waiting()).toEqual([7 * MINUTE]);
    advance(7 * MINUTE);
    publish(3, ['k']);
    await fire();
    expect([server.count(LIST), waiting()]).toEqual([2, [3 * MINUTE]]);
    expect(await keys.revocation(sender, 'k')).toBe('revoked');
    expect(server.count(LIST)).toBe(2);
  });

  test.each([
    [0, 1],
    [60, 30],
  ])('next_update in %i min: after %i min', async (ahead, expected) => {
    const { keys, sender, waiting, publish } = await polled();
    publish(ahead);
    await keys.revocation(sender, 'k');
    expect(waiting()).toEqual([expected * MINUTE]);
  });

  test('once a minute while it fails', async () => {
    const { keys, sender, waiting, advance, fire, server } = await polled();
    await keys.revocation(sender, 'k');
    server.answer(LIST, (_req, res) => res.writeHead(503).end());
    for (const expected of [2, 3, 4]) {
      advance(8 * MINUTE);
      await fire();
      expect([server.count(LIST), waiting()]).toEqual([expected, [MINUTE]]);
    }
  });

  test('by one timer for any number of deliveries, and not just after a delivery refreshed it', async () => {
    const { keys, sender, waiting, advance, fire, publish, server } = await polled();
    for (const keyid of ['a', 'b', 'c']) await keys.revocation(sender, keyid);
    expect(waiting()).toHaveLength(1);
    advance(7 * MINUTE);
    publish(5);
    await keys.revocation(sender, 'a');
    await fire();
    expect([server.count(LIST), waiting()]).toEqual([2, [5 * MINUTE]]);
  });

  test('from warm() on, without any delivery', async () => {
    const { keys, sender, waiting, server } = await polled();
    await keys.warm([sender]);
    await server.asked(LIST, 1);
    await expect.poll(waiting).toEqual([7 * MINUTE]);
  });

  test.each([
    ['within two days after the last delivery: asked for', 48 * 60 * MINUTE - 1, 2],
    ['not later than that', 48 * 60 * MINUTE, 1],
  ])('%s', async (_what, idle, asked) => {
    const { server, sender } = await polled();
    const { schedule, next } = timers();
    let sent = 0;
    const transport: KeyFetch = (url, init) => {
      sent += 1;
      return defaultFetch(true)(url, init);
    };
    const { keys, advance } = await setup({ schedule, fetch: transport });
    await keys.revocation(sender, 'k');
    advance(idle);
    // What it asks for, it asks for at once.
    next().task();
    expect(sent).toBe(asked);
    await server.asked(LIST, asked);
  });

  test('not where there is none', async () => {
    const { keys, server, waiting } = await polled();
    expect(await keys.revocation(senderEntry(`${server.origin}/other`), 'k')).toBe('valid');
    expect(waiting()).toEqual([]);
  });

  test('not on workerd, where it is refreshed on use only', async () => {
    const { server, sender, publish } = await polled();
    onWorkerd();
    const set = vi.spyOn(globalThis, 'setTimeout');
    const { keys, advance } = await setup();
    expect(await keys.revocation(sender, 'k')).toBe('valid');
    publish(7, ['k']);
    advance(7 * MINUTE);
    expect(await keys.revocation(sender, 'k')).toBe('revoked');
    // Those of the poll are of a minute or more; no fetch may take so long.
    expect([server.count(LIST), set.mock.calls.filter(([, ms = 0]) => ms >= MINUTE)]).toEqual([2, []]);
  });

  test('not after stop()', async () => {
    const { keys, sender, waiting, server, advance } = await polled();
    await keys.revocation(sender, 'k');
    keys.stop();
    expect(waiting()).toEqual([]);
    advance(7 * MINUTE);
    await keys.revocation(sender, 'k');
    expect([server.count(LIST), waiting()]).toEqual([1, []]);
  });

  test('again from resume() on, without any delivery, however often it was stopped', async () => {
    const { keys, sender, waiting, server, advance, fire, publish } = await polled();
    await keys.revocation(sender, 'k');
    keys.stop();
    keys.stop();
    advance(5 * MINUTE);
    keys.resume();
    expect(waiting()).toEqual([2 * MINUTE]);
    keys.stop();
    expect(waiting()).toEqual([]);
    // Overdue by now.
    advance(3 * MINUTE);
    keys.resume();
    expect(waiting()).toEqual([MINUTE]);
    publish(3, ['k']);
    await fire();
    expect([server.count(LIST), waiting()]).toEqual([2, [3 * MINUTE]]);
    expect(await keys.revocation(sender, 'k')).toBe('revoked');
  });

  test('by one timer, where it was stopped and resumed while it was fetched', async () => {
    const { keys, sender, waiting, advance, next, fire } = await polled();
    await keys.revocation(sender, 'k');
    advance(7 * MINUTE);
    next().task();
    keys.stop();
    keys.resume();
    // By the end of this fetch the first one's is long over.
    await fire();
    expect(waiting()).toHaveLength(1);
    keys.stop();
    expect(waiting()).toEqual([]);
  });
});

test('without keeping the process alive', async () => {
  const server = await startKeyServer();
  const [updated, next_update] = [Date.now(), Date.now() + 5 * MINUTE].map((ms) =>
    new Date(ms).toISOString(),
  );
  server.serve(LIST, { issuer: server.origin, updated, next_update, revoked_kids: ['k'] });
  const resolver = fileURLToPath(new URL('fixtures/poll-and-end.ts', import.meta.url));
  const { stdout } = await promisify(execFile)(process.execPath, [resolver, `${server.origin}${LIST}`], {
    timeout: 30_000,
  });
  expect(stdout).toBe('revoked');
});
