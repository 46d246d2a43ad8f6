import { connect, createServer, type Socket } from 'node:net';
import { onTestFinished, expect, test } from 'vitest';
import { connectAny, type Dial } from '../../../src/keys/net/connection.ts';
import { createTestNetwork, OTHER_PUBLIC, PUBLIC } from '../../support/network.ts';
import { listening } from '../../support/tls.ts';
import { limited } from '../../../src/time-limits.ts';

const LIVE = PUBLIC;
const DEAD = '8.8.4.4';
const REFUSING = OTHER_PUBLIC;

/** A live address, and others that do not answer at all or refuse, each by a real socket. */
async function world(): Promise<{
  dial: Dial;
  dialled: readonly string[];
  open: () => number;
  pending: () => number;
}> {
  const server = await listening(createServer((socket) => socket.resume()));
  const gone = await listening(createServer());
  await gone.close();
  const network = createTestNetwork({}, { [LIVE]: server.port, [REFUSING]: gone.port });
  const dialled: string[] = [];
  let pending = 0;
  const dial: Dial = (address, port) => {
    dialled.push(address);
    if (address !== DEAD) return network.dial(address, port);
    // A lookup that never calls back: the socket stays on its way for ever.
    const socket = connect({ host: 'nowhere.example', port, lookup: () => undefined });
    pending += 1;
    socket.once('close', () => {
      pending -= 1;
    });
    onTestFinished(() => {
      socket.destroy();
    });
    return { socket, peerAddress: () => address };
  };
  return { dial, dialled, open: server.open, pending: () => pending };
}

const never = (): AbortSignal => new AbortController().signal;

test('the first address that answers is taken, and no other is tried', async () => {
  const { dial, dialled } = await world();
  const socket = await connectAny([LIVE, DEAD, REFUSING], 443, dial, never());
  expect(socket.remoteAddress).toBe('127.0.0.1');
  expect(dialled).toEqual([LIVE]);
  socket.destroy();
});

test('after one that refuses the next is tried', async () => {
  const { dial, dialled } = await world();
  const socket = await connectAny([REFUSING, LIVE], 443, dial, never());
  expect(dialled).toEqual([REFUSING, LIVE]);
  socket.destroy();
});

test('beside one that does not answer the next is tried, and the silent one is given up', async () => {
  const { dial, dialled, pending } = await world();
  const socket = await connectAny([DEAD, LIVE], 443, dial, never());
  expect(dialled).toEqual([DEAD, LIVE]);
  expect(socket.destroyed).toBe(false);
  await expect.poll(pending).toBe(0);
  socket.destroy();
});

test('one that leads elsewhere is left, and the next one tried', async () => {
  const { dial, dialled } = await world();
  const lying: Dial = (address, port) =>
    dialled.length === 0 ? { ...dial(address, port), peerAddress: () => '10.0.0.1' } : dial(address, port);
  const socket = await connectAny([LIVE, LIVE], 443, lying, never());
  expect(dialled).toEqual([LIVE, LIVE]);
  socket.destroy();
});

test('of two that are connected in one moment one is kept', async () => {
  const sockets: Socket[] = [];
  const dial: Dial = (address, port) => {
    const socket = connect({ host: 'held.example', port, lookup: () => undefined });
    sockets.push(socket);
    // Runtimes differ in whether they let one connection be heard of before the next one is.
    if (sockets.length === 2) setImmediate(() => sockets.map((each) => each.emit('connect')));
    return { socket, peerAddress: () => address };
  };
  const socket = await connectAny([DEAD, LIVE], 443, dial, never());
  await expect.poll(() => sockets.filter(({ destroyed }) => !destroyed)).toEqual([socket]);
  socket.destroy();
});

test('where all fail the first failure is the reason', async () => {
  const { dial } = await world();
  await expect(connectAny([REFUSING, '9.9.9.9'], 443, dial, never())).rejects.toThrow(
    'ECONNREFUSED 127.0.0.1',
  );
});

test('a peer that cannot be told is refused', async () => {
  const { dial, open } = await world();
  const blind: Dial = (address, port) => ({ ...dial(address, port), peerAddress: () => undefined });
  await expect(connectAny([LIVE], 443, blind, never())).rejects.toThrow('went to nowhere');
  await expect.poll(open).toBe(0);
});

test.each([
  ['the second is of the other', [1, 2, 3, 4, 5], [LIVE]],
  ['so is the fourth', [1, 2, 3, 4, 5], ['9.9.9.9', LIVE]],
])('families are tried by turns: %s', async (_what, ipv6, ipv4) => {
  const { dial, dialled } = await world();
  const addresses = [...ipv6.map((last) => `2606:4700::${last}`), ...ipv4];
  const socket = await connectAny(addresses, 443, dial, never());
  expect(dialled.slice(0, 2)).toEqual(['2606:4700::1', ipv4[0]]);
  expect(dialled.at(-1)).toBe(LIVE);
  socket.destroy();
});

test('of thousands of addresses four are tried', async () => {
  const { dial, dialled } = await world();
  const many = Array.from({ length: 5000 }, () => REFUSING);
  await expect(connectAny(many, 443, dial, never())).rejects.toThrow('ECONNREFUSED');
  expect(dialled).toHaveLength(4);
});

test('the time for connecting ends all attempts', async () => {
  const { dial, dialled, pending } = await world();
  const limit = { ms: 100, reason: 'no connection within 100 ms' };
  const attempt = limited(
    limit,
    never(),
    async (signal) => await connectAny([DEAD, LIVE], 443, dial, signal),
  );
  await expect(attempt).rejects.toThrow('no connection within 100 ms');
  expect(dialled).toEqual([DEAD]);
  await expect.poll(pending).toBe(0);
});

test('a signal that has fired already lets none begin to wait', async () => {
  const { dial, pending } = await world();
  const signal = AbortSignal.abort(new Error('stopped'));
  await expect(connectAny([DEAD, DEAD, DEAD], 443, dial, signal)).rejects.toThrow('stopped');
  await expect.poll(pending).toBe(0);
});
