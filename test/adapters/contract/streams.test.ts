import { once } from 'node:events';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { createFakeSeller, type FakeSeller } from '../../../src/testing/index.ts';
import { rawClient, statuses, type RawClient } from '../raw-client.ts';
import { MAX_BODY_BYTES } from './cases.ts';
import { READABLE_DOORS } from './doors.ts';
import { givenFor, openSetup } from './setup.ts';
import { message, type WireRequest } from './wire.ts';
import { gate } from '../../support/gate.ts';

let seller: FakeSeller;
beforeAll(async () => {
  seller = await createFakeSeller();
});
afterAll(() => seller.close());

const signed = (payload?: object | string): Promise<WireRequest> =>
  givenFor(seller).signed(payload === undefined ? {} : { payload });

/** `expect.poll` belongs to one test at a time, and these run side by side. */
const until = (holds: () => unknown): Promise<unknown> =>
  vi.waitFor(holds, { timeout: 30_000, interval: 20 });

const codes = ({ outcomes }: ReturnType<typeof openSetup>): readonly unknown[] =>
  outcomes.map((outcome) => outcome.code);

/** The last one on its connection. Not a half-closed socket: Node takes that for a sender that left. */
const last = (request: WireRequest): WireRequest => ({
  ...request,
  headers: [...request.headers, ['Connection', 'close']],
});

/** The head of a request, without a body. */
const head = (request: WireRequest, framing: string): Buffer => {
  const whole = message({ ...request, body: new Uint8Array() }).toString('latin1');
  return Buffer.from(whole.replace('Content-Length: 0', framing), 'latin1');
};

const announcing = (bytes: number): string => `Content-Length: ${bytes}`;
const CHUNKED = 'Transfer-Encoding: chunked';
const JSON_TYPE = ['Content-Type', 'application/json'] as const;
const chunk = (bytes: number): string => `${bytes.toString(16)}\r\n${'x'.repeat(bytes)}\r\n`;

/** All that comes, once the server has closed: it is not asked to. */
async function allOf(client: RawClient): Promise<string> {
  const received = await client.closed();
  client.socket.destroy();
  return received;
}

describe.concurrent.each(READABLE_DOORS)('$name, over a raw connection', (door) => {
  const closes = door.lacks.closes === undefined;

  test('Content-Length over the cap: 413 before a byte of the body, and the connection is closed', async () => {
    const setup = openSetup(seller);
    await using open = await door.open(setup.receiver);
    const client = await rawClient(open.port);
    client.socket.write(head(await signed(), announcing(MAX_BODY_BYTES + 1)));
    expect(statuses(await allOf(client))).toEqual([413]);
    expect([codes(setup), setup.accepts()]).toEqual([['payload_too_large'], 0]);
    await setup.receiver.stop();
  });

  test('chunked over the cap: 413 while it streams, the connection is closed, nothing is stored', async () => {
    const setup = openSetup(seller);
    await using open = await door.open(setup.receiver);
    const client = await rawClient(open.port);
    client.socket.write(head(await signed(), CHUNKED));
    client.socket.write(chunk(MAX_BODY_BYTES));
    client.socket.write(chunk(1));
    expect(statuses(await allOf(client))).toEqual([413]);
    expect([codes(setup), setup.accepts()]).toEqual([['payload_too_large'], 0]);
    await setup.receiver.stop();
  });

  test('a body slower than the deadline: 503, not 408, and the connection is closed', async () => {
    const setup = openSetup(seller, { advanced: { bodyDeadlineMs: 20 } });
    await using open = await door.open(setup.receiver);
    const client = await rawClient(open.port);
    client.socket.write(head(await signed(), announcing(9)));
    client.send('{');
    const received = await allOf(client);
    expect(statuses(received)).toEqual([503]);
    expect(received).toMatch(/^Retry-After: 5\r$/im);
    expect([codes(setup), setup.accepts()]).toEqual([['body_timeout'], 0]);
    await setup.receiver.stop();
  });

  test.each([
    ['a declared length', announcing(MAX_BODY_BYTES)],
    ['chunked', CHUNKED],
  ])('uploads that break off (%s) leave no state and release their buffer space', async (_, framing) => {
    const setup = openSetup(seller, { advanced: { maxBufferedBytes: MAX_BODY_BYTES } });
    await using open = await door.open(setup.receiver);
    for (let upload = 0; upload < 8; upload += 1) {
      const request = await signed();
      const client = await rawClient(open.port);
      client.socket.write(head(request, framing));
      client.socket.write(framing === CHUNKED ? chunk(1_000) : 'x'.repeat(1_000));
      client.socket.end();
      await client.closed();
    }
    const event = JSON.stringify(seller.payloads.tool('completed')).padEnd(MAX_BODY_BYTES);
    await until(async () => expect((await open.ask(await signed(event))).status).toBe(200));
    // Anything but the last delivery, and those that it came too early for, would be a trace of the others.
    expect(codes(setup).filter((code) => code !== 'overloaded')).toEqual([undefined]);
    expect([setup.accepts(), setup.handled.length]).toEqual([1, 1]);
    await setup.receiver.stop();
  });

  test('unauthenticated uploads are refused while they are sent, and take no buffer space', async () => {
    const setup = openSetup(seller, {
      advanced: { maxBufferedBytes: MAX_BODY_BYTES, bodyDeadlineMs: 60_000 },
    });
    await using open = await door.open(setup.receiver);
    const stranger = { ...(await signed()), headers: [['Host', 'a'] as const, JSON_TYPE] };
    const clients = await Promise.all(Array.from({ length: 8 }, () => rawClient(open.port)));
    for (const client of clients) {
      client.socket.write(head(stranger, announcing(MAX_BODY_BYTES)));
      client.socket.write('x'.repeat(MAX_BODY_BYTES - 1));
    }
    for (const client of clients) expect(statuses(await client.until(/\r\n\r\n/))).toEqual([401]);
    const large = JSON.stringify(seller.payloads.tool('completed')).padEnd(MAX_BODY_BYTES);
    expect((await open.ask(await signed(large))).status).toBe(200);
    for (const client of clients) client.socket.destroy();
    await setup.receiver.stop();
  });

  test('a request that is pipelined behind a refusal is read correctly, or not at all', async () => {
    const setup = openSetup(seller);
    await using open = await door.open(setup.receiver);
    const client = await rawClient(open.port);
    // More than a server reads at once: when it is refused, some of it is still to come.
    const size = 1_048_576;
    const refused = await signed('x'.repeat(size));
    // Inside of a body that is not read stands a whole delivery: it must not become one.
    const inside = message(await signed());
    const decoy = Buffer.concat([inside, Buffer.alloc(size - inside.byteLength, ' ')]);
    client.socket.write(message({ ...refused, body: decoy }));
    client.socket.write(message(last(await signed())));
    expect(statuses(await allOf(client))).toEqual(closes ? [413] : [413, 200]);
    expect(setup.handled).toHaveLength(closes ? 0 : 1);
    await setup.receiver.stop();
  });

  test('deliveries that are pipelined are answered in their order', async () => {
    const setup = openSetup(seller);
    await using open = await door.open(setup.receiver);
    const client = await rawClient(open.port);
    const first = await signed();
    const wrong = { ...(await signed()), body: new TextEncoder().encode('{}') };
    client.socket.write(Buffer.concat([first, wrong, last(await signed())].map(message)));
    expect(statuses(await allOf(client))).toEqual([200, 401, 200]);
    await setup.receiver.stop();
  });

  test('an unauthenticated request whose body came with its headers is refused, and the connection kept', async () => {
    const setup = openSetup(seller);
    await using open = await door.open(setup.receiver);
    const client = await rawClient(open.port);
    const stranger = { ...(await signed()), headers: [['Host', 'a'] as const, JSON_TYPE] };
    client.socket.write(message(stranger));
    expect(statuses(await client.until(/\r\n\r\n/))).toEqual([401]);
    // Everything is loaded now: the answer is ready in the turn of the event loop in which the body comes.
    client.socket.write(message(stranger));
    expect(statuses(await client.until(/\r\n\r\n[^]*\r\n\r\n/))).toEqual([401, 401]);
    client.socket.write(message(last(await signed())));
    expect(statuses(await allOf(client))).toEqual([401, 401, 200]);
    await setup.receiver.stop();
  });

  test('Expect: 100-continue gets its 100 and then its answer', async () => {
    const setup = openSetup(seller);
    await using open = await door.open(setup.receiver);
    const client = await rawClient(open.port);
    const request = last(await signed());
    const headers = [...request.headers, ['Expect', '100-continue'] as const];
    client.socket.write(head({ ...request, headers }, announcing(request.body.byteLength)));
    await client.until(/ 100 /);
    client.socket.write(request.body);
    expect(statuses(await allOf(client))).toEqual([100, 200]);
    await setup.receiver.stop();
  });

  test('no buffer space for another body: 503 overloaded, before it is read if its length says so', async () => {
    const held = gate();
    const begun = gate();
    const setup = openSetup(seller, {
      advanced: { maxBufferedBytes: MAX_BODY_BYTES },
      handlers: {
        other: async () => {
          begun.open();
          await held.opened;
        },
      },
    });
    await using open = await door.open(setup.receiver);
    const large = (): string => JSON.stringify(seller.payloads.tool('completed')).padEnd(MAX_BODY_BYTES);
    const [first, second, third] = [await signed(large()), await signed(large()), await signed(large())];
    const running = open.ask(first);
    await begun.opened;
    const client = await rawClient(open.port);
    client.socket.write(head(second, announcing(MAX_BODY_BYTES)));
    expect(statuses(await client.until(/\r\n\r\n/))).toEqual([503]);
    client.socket.destroy();
    const chunked = await open.ask({ ...third, chunked: true });
    expect(chunked).toMatchObject({ status: 503 });
    expect(chunked.headers).toContainEqual(['retry-after', '5']);
    expect(codes(setup)).toEqual(['overloaded', 'overloaded']);
    expect(new Set(setup.alarms)).toEqual(new Set(['overloaded']));
    held.open();
    expect((await running).status).toBe(200);
    // Neither was stored, nor its nonce: the very same bytes are welcome.
    expect([(await open.ask(second)).status, (await open.ask(third)).status]).toEqual([200, 200]);
    await setup.receiver.stop();
  });

  test('a body that was read before: 503, never serialised again; the fix is logged once', async () => {
    const setup = openSetup(seller);
    await using open = await door.open(setup.receiver, { consumed: true });
    for (const request of [await signed(), await signed()]) {
      expect((await open.ask(request)).status).toBe(503);
    }
    expect([codes(setup), setup.accepts()]).toEqual([['body_consumed', 'body_consumed'], 0]);
    expect(setup.alarms).toEqual(['misconfigured']);
    expect(setup.warnings).toEqual([expect.stringMatching(FIXES[door.name.split(' ')[0] ?? ''] ?? /^$/)]);
    await setup.receiver.stop();
  });

  test('a sender that disconnects while its event is handled: the event is completed all the same', async () => {
    const held = gate();
    const begun = gate();
    const setup = openSetup(seller, {
      handlers: {
        other: async () => {
          begun.open();
          await held.opened;
        },
      },
    });
    await using open = await door.open(setup.receiver);
    const event = seller.payloads.tool('completed');
    const client = await rawClient(open.port);
    client.socket.write(message(await signed(event)));
    await begun.opened;
    client.socket.resetAndDestroy();
    if (!client.socket.closed) await once(client.socket, 'close');
    held.open();
    await until(() => expect(setup.outcomes.map(({ kind }) => kind)).toEqual(['accepted']));
    expect((await open.ask(await signed(event))).status).toBe(200);
    expect(setup.outcomes.map(({ kind }) => kind)).toEqual(['accepted', 'duplicate']);
    await setup.receiver.stop();
  });
});

/** What the log has to name, by the first word of the door's name. */
const FIXES: Readonly<Record<string, RegExp>> = {
  node: /Call the handler before/,
  express: /before app\.use\(express\.json\(\)\)/,
  fastify: /outside of the scope/,
  hono: /Register the route before/,
  fetch: /request\.clone\(\)/,
};
