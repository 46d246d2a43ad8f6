import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createFakeSeller, type FakeSeller } from '../../src/testing/index.ts';
import { DOORS } from './contract/doors.ts';
import { givenFor, openSetup, type Setup } from './contract/setup.ts';
import type { WireRequest } from './contract/wire.ts';

let seller: FakeSeller;
beforeAll(async () => {
  seller = await createFakeSeller();
});
afterAll(() => seller.close());

const BASES = ['https://new.example:8443/webhooks/*', 'https://old.example/webhooks/*'];
const NEW = 'https://new.example:8443/webhooks/proto?a=1';
const OLD = 'https://old.example/webhooks/proto?a=1';

const at = (request: WireRequest, host: string): WireRequest => ({
  ...request,
  headers: request.headers.map(([name, value]) => [name, name === 'Host' ? host : value]),
});

/** A valid delivery for the URL, sent to that Host. */
const signedFor = async (url: string, host = new URL(url).host): Promise<WireRequest> =>
  at(await givenFor(seller).signed({ url }), host);

const outcomesOf = ({ outcomes }: Setup): unknown => outcomes.map(({ kind, code, url }) => [kind, code, url]);

describe.each(DOORS)('two bases behind one door (verification.md §4.16): $name', (door) => {
  test('Host chooses: each is accepted at its own, and at no other', async () => {
    const setup = openSetup(seller, { publicUrl: BASES });
    await using open = await door.open(setup.receiver);
    const statuses = [];
    for (const request of [
      await signedFor(OLD),
      await signedFor(NEW),
      await signedFor(OLD, 'new.example:8443'),
    ])
      statuses.push((await open.ask(request)).status);
    expect(statuses).toEqual([200, 200, 503]);
    expect(outcomesOf(setup)).toEqual([
      ['accepted', undefined, OLD],
      ['accepted', undefined, NEW],
      ['unavailable', 'webhook_target_uri_malformed', NEW],
    ]);
    expect(setup.alarms).toEqual(['host_rewritten']);
    expect(setup.handled).toHaveLength(2);
  });

  test("hostCheck: 'off': each is tried, whatever a proxy has made of Host", async () => {
    const setup = openSetup(seller, { publicUrl: BASES, hostCheck: 'off' });
    await using open = await door.open(setup.receiver);
    for (const url of [OLD, NEW]) expect((await open.ask(await signedFor(url, 'upstream'))).status).toBe(200);
    const other = await signedFor('https://other.example/webhooks/proto', 'upstream');
    expect((await open.ask(other)).status).toBe(401);
    expect(outcomesOf(setup)).toMatchObject([
      ['accepted', undefined, OLD],
      ['accepted', undefined, NEW],
      ['refused', 'webhook_signature_invalid', {}],
    ]);
    expect(setup.alarms).toEqual([]);
  });
});

test('a URL that the seller was given and that is not listed: the alarm says to add it', async () => {
  const messages: string[] = [];
  const onAlarm = ({ message }: { message: string }): void => void messages.push(message);
  const setup = openSetup(seller, { publicUrl: BASES, onAlarm });
  const [door] = DOORS;
  if (!door) return expect.fail('there are doors');
  await using open = await door.open(setup.receiver);
  const third = 'https://third.example/webhooks/proto';
  expect((await open.ask(await signedFor(third))).status).toBe(503);
  expect(messages).toEqual([
    `${seller.agentUrl} signed for ${third}. If ${third} is what you gave ${seller.agentUrl}, add https://third.example/webhooks/* to publicUrl; if not, somebody replays another receiver's deliveries here: change nothing.`,
  ]);
  expect(setup.handled).toEqual([]);
});
