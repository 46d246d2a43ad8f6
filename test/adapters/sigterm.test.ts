import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createFakeSeller, type FakeSeller } from '../../src/testing/index.ts';
import { serving } from './child.ts';
import { givenFor } from './contract/setup.ts';
import { message, type WireRequest } from './contract/wire.ts';
import { rawClient, statuses, type RawClient } from './raw-client.ts';

let seller: FakeSeller;
beforeAll(async () => {
  seller = await createFakeSeller();
});
afterAll(() => seller.close());

const EACH = 20;

interface Sent {
  readonly key: string;
  readonly client: RawClient;
  readonly bytes: Buffer;
}

async function prepared(port: number): Promise<Sent> {
  const payload = seller.payloads.tool('completed');
  const request: WireRequest = await givenFor(seller).signed({ payload });
  const headers = [...request.headers, ['Connection', 'close'] as const];
  const client = await rawClient(port);
  return { key: payload.idempotency_key, client, bytes: message({ ...request, headers }) };
}

const many = (port: number): Promise<Sent[]> =>
  Promise.all(Array.from({ length: EACH }, () => prepared(port)));

const answers = (all: readonly Sent[]): Promise<number[]> =>
  Promise.all(all.map(async ({ client }) => statuses(await client.closed())[0] ?? 0));

describe.each(['node', 'express', 'fastify', 'hono'])('SIGTERM under load: %s', (framework) => {
  test('running deliveries finish, new ones get 503, and no event answered 200 is lost', async () => {
    await using child = await serving(framework, {
      sender: seller.sender,
      holdHandlers: true,
      // How fast this machine is decides nothing.
      options: { handlerDeadlineMs: 300_000, advanced: { bodyDeadlineMs: 300_000 } },
    });
    const { port, said } = child;

    const underWay = await many(port);
    for (const { client, bytes } of underWay) client.socket.write(bytes);
    await expect.poll(() => said.filter(({ started }) => started).length).toBe(EACH);

    // These were let in, and are still being uploaded when the signal comes.
    const uploading = await many(port);
    for (const { client, bytes } of uploading) client.socket.write(bytes.subarray(0, -1));

    child.terminate();
    await child.hears('stopping');
    const late = await many(port);
    for (const { client, bytes } of late) client.socket.write(bytes);
    expect(await answers(late)).toEqual(Array<number>(EACH).fill(503));
    for (const { client, bytes } of uploading) client.socket.write(bytes.subarray(-1));
    expect(await answers(uploading)).toEqual(Array<number>(EACH).fill(503));
    expect(said.filter(({ handled }) => handled)).toEqual([]);

    child.tell('go');
    expect(await answers(underWay)).toEqual(Array<number>(EACH).fill(200));
    expect(await child.exited).toBe(0);
    expect(new Set(said.map(({ handled }) => handled).filter(Boolean))).toEqual(
      new Set(underWay.map(({ key }) => key)),
    );
    expect(said.filter(({ error, unhandled }) => error ?? unhandled)).toEqual([]);
  });
});
