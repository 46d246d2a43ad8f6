import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createFakeSeller, type FakeSeller } from '../../src/testing/index.ts';
import { serving } from './child.ts';
import { givenFor } from './contract/setup.ts';
import { message } from './contract/wire.ts';
import { rawClient, statuses, type RawClient } from './raw-client.ts';

const MIB = 1_048_576;
const UPLOADS = 1_000;
const ROOM = 64 * MIB;

let seller: FakeSeller;
beforeAll(async () => {
  seller = await createFakeSeller();
});
afterAll(() => seller.close());

interface Upload {
  readonly client: RawClient;
  /** The last byte of the body is kept back, so that no upload is over before we say so. */
  readonly finish: () => void;
  status: number | 'reset' | undefined;
}

/** White space behind the JSON, shared by all of them: this process must not run out of memory either. */
const PADDING = Buffer.alloc(MIB, ' ');

async function upload(port: number): Promise<Upload> {
  const payload = JSON.stringify(seller.payloads.tool('completed'));
  const request = await givenFor(seller).signed({ payload: payload.padEnd(MIB) });
  const headers = [...request.headers, ['Connection', 'close'] as const];
  // Copied: a slice would keep its megabyte.
  const head = Buffer.from(message({ ...request, headers }).subarray(0, -MIB));
  const client = await rawClient(port);
  const made: Upload = { client, finish: () => void client.socket.write(' '), status: undefined };
  client.socket.on('data', (chunk: string) => (made.status ??= statuses(chunk)[0]));
  client.socket.on('close', () => (made.status ??= 'reset'));
  client.socket.write(head);
  client.socket.write(payload);
  client.socket.write(PADDING.subarray(payload.length + 1));
  return made;
}

/** Where the platform owns the connection, it may reset one whose upload goes on before the answer was read. */
const OWN_CONNECTION = ['node', 'express', 'fastify'];

describe.each([...OWN_CONNECTION, 'hono'])('1,000 uploads of 1 MiB at once: %s', (framework) => {
  test('memory is bounded by maxBufferedBytes; what does not fit gets 503; the rest is accepted', async () => {
    await using child = await serving(framework, {
      sender: seller.sender,
      options: { advanced: { maxBufferedBytes: ROOM, bodyDeadlineMs: 120_000 } },
    });
    child.tell('memory');
    const before = await child.hears('peakBytes');
    const uploads: Upload[] = [];
    for (let sent = 0; sent < UPLOADS; sent += 1) uploads.push(await upload(child.port));

    // None of them is whole yet, and no more than 64 MiB of them are held: so the others have to be refused.
    const refused = (): number => uploads.filter(({ status }) => status !== undefined).length;
    await expect.poll(refused, { timeout: 100_000 }).toBeGreaterThanOrEqual(UPLOADS - ROOM / MIB);
    for (const { finish, status } of uploads) if (status === undefined) finish();
    await Promise.all(uploads.map(({ client }) => client.closed()));

    const seen = new Set(uploads.map(({ status }) => status));
    if (!OWN_CONNECTION.includes(framework)) seen.delete('reset');
    expect(seen).toEqual(new Set([200, 503]));
    const taken = uploads.filter(({ status }) => status === 200).length;
    expect(taken).toBeLessThanOrEqual(ROOM / MIB);
    expect(child.said.filter(({ handled }) => handled)).toHaveLength(taken);
    expect(child.said.filter(({ error, unhandled }) => error ?? unhandled)).toEqual([]);
    const peak = await peakOf(child);
    // 1,000 MiB were sent. Held: the room, twice where chunks are joined, and a read buffer for each socket.
    expect((peak - before) / MIB).toBeLessThan(600);
  }, 180_000);
});

async function peakOf(child: Awaited<ReturnType<typeof serving>>): Promise<number> {
  child.tell('memory');
  const peaks = (): readonly number[] => child.said.flatMap(({ peakBytes }) => peakBytes ?? []);
  await expect.poll(() => peaks().length).toBe(2);
  return Math.max(...peaks());
}
