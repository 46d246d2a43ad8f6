import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createFakeSeller, type FakeSeller } from '../../src/testing/index.ts';
import { serving } from './child.ts';
import { givenFor } from './contract/setup.ts';
import { message, type WireRequest } from './contract/wire.ts';
import { closing, rawClient, statuses, type RawClient } from './raw-client.ts';

const KIB = 1024;
const MIB = 1_048_576;

let seller: FakeSeller;
let stranger: FakeSeller;
beforeAll(async () => {
  [seller, stranger] = await Promise.all([createFakeSeller(), createFakeSeller()]);
});
afterAll(() => Promise.all([seller.close(), stranger.close()]));

/** A body of so many bytes: white space behind the JSON. */
function signedBy(who: FakeSeller, bytes: number): Promise<WireRequest> {
  const payload = JSON.stringify(seller.payloads.tool('completed')).padEnd(bytes);
  return givenFor(who).signed({ payload });
}

/** Sends head and the first bytes of the body, and leaves it at that. */
async function stalled(port: number, request: WireRequest, bytes: number): Promise<RawClient> {
  const all = message(request);
  const client = await rawClient(port);
  client.socket.write(all.subarray(0, all.byteLength - request.body.byteLength + bytes));
  return client;
}

async function statusOf(client: RawClient): Promise<number | undefined> {
  return statuses(await client.until(/\r\n\r\n/))[0];
}

describe.each(['node', 'express', 'fastify', 'hono'])('unauthenticated senders: %s', (framework) => {
  const served = (options: object = {}) => serving(framework, { sender: seller.sender, options });

  test('one that writes everything before it reads gets its 401', async () => {
    await using child = await served();
    const request = await signedBy(stranger, 60 * KIB);
    const client = await rawClient(child.port);
    client.socket.pause();
    await new Promise((resolve) => client.socket.write(message(request), resolve));
    client.socket.resume();
    expect(await statusOf(client)).toBe(401);
    client.socket.destroy();
    await closing(client.socket);
  });

  test('stalled uploads take no buffer space, those of replayed headers one body: valid deliveries are accepted', async () => {
    // Room for two bodies.
    await using child = await served({ advanced: { maxBufferedBytes: 2 * MIB, bodyDeadlineMs: 120_000 } });
    const refused: RawClient[] = [];
    for (let count = 0; count < 64; count += 1) {
      refused.push(await stalled(child.port, await signedBy(stranger, MIB), 32 * KIB));
    }
    // 503 where the key set was fetched a moment ago, and might have changed since.
    for (const client of refused) expect([401, 503]).toContain(await statusOf(client));

    const captured = await signedBy(seller, MIB);
    const replays: RawClient[] = [];
    for (let count = 0; count < 16; count += 1) replays.push(await stalled(child.port, captured, 900 * KIB));
    const answers = new Set<number | undefined>();
    // The first holds its place; which one that is, is the network's to say.
    let left = replays.length;
    const answered = Promise.all(
      replays.map(async (client) => {
        answers.add(await statusOf(client).catch(() => undefined));
        left -= 1;
      }),
    );
    await expect.poll(() => left).toBe(1);
    // More was sent than is read and thrown away: some may be reset before they read their answer.
    expect([...answers].filter((status) => status !== undefined)).toEqual([503]);

    for (let count = 0; count < 3; count += 1) {
      const honest = await rawClient(child.port);
      honest.socket.write(message(await signedBy(seller, MIB)));
      expect(await statusOf(honest)).toBe(200);
      honest.socket.destroy();
    }
    for (const client of [...refused, ...replays]) client.socket.destroy();
    await answered;
  }, 120_000);
});
