import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { webhookHandler } from '../../src/adapters/fetch.ts';
import type { Alarm, ReceiverOptions } from '../../src/index.ts';
import { memoryStore } from '../../src/stores/memory.ts';
import { createMemoryState } from '../../src/stores/for-tests.ts';
import { createFakeSeller, type FakeSeller } from '../../src/testing/index.ts';
import { inThisForm } from '../reliability/form.ts';
import { PUBLIC_URL } from './contract/cases.ts';
import { DOORS } from './contract/doors.ts';
import { givenFor, openSetup } from './contract/setup.ts';
import type { WireRequest } from './contract/wire.ts';

let seller: FakeSeller;
beforeAll(async () => {
  seller = await createFakeSeller();
});
afterAll(() => seller.close());

/** What a receiver's owner writes in place of `PUBLIC_URL`, and what the alarm says to write. */
const SLIPS = [
  ['scheme', 'http://buyer.example/webhooks/proto', PUBLIC_URL],
  ['trailing slash', `${PUBLIC_URL}/`, PUBLIC_URL],
  ['path', 'https://buyer.example/hooks', PUBLIC_URL],
  ['query', `${PUBLIC_URL}?tenant=1`, PUBLIC_URL],
  ['host', 'https://www.buyer.example/webhooks/proto', PUBLIC_URL],
  ['port', 'https://buyer.example:8443/webhooks/proto', PUBLIC_URL],
  ['everything', 'http://internal:8080/', PUBLIC_URL],
  ['host of a prefix', 'https://www.buyer.example/webhooks/*', 'https://buyer.example/webhooks/*'],
] as const;

/** At one door all of them, at each other one the two that need all that a door gives. */
const AT_DOORS = inThisForm(
  DOORS.flatMap((door, i) =>
    SLIPS.map(([what, publicUrl, meant]) => ({
      door,
      name: door.name,
      isFirst: i === 0,
      what,
      publicUrl,
      meant,
    })),
  ),
  ({ isFirst, what }) => isFirst || what === 'everything' || what === 'host of a prefix',
);

describe('publicUrl differs from the URL that the seller has', () => {
  test.each(AT_DOORS)(
    '$name, another $what: 503 and an alarm, never 401',
    async ({ door, publicUrl, meant }) => {
      const alarms: Alarm[] = [];
      const state = createMemoryState();
      const more: Partial<ReceiverOptions> = {
        store: memoryStore({ state }),
        onAlarm: (alarm) => void alarms.push(alarm),
      };
      const { signed } = givenFor(seller);
      const first = await signed();
      const { receiver, handled } = openSetup(seller, { ...more, publicUrl });
      await using open = await door.open(receiver);
      expect(await open.ask(first)).toMatchObject({
        status: 503,
        headers: expect.arrayContaining([['retry-after', '5']]) as unknown,
      });
      expect(alarms).toMatchObject([
        { code: 'public_url_mismatch', sender: seller.agentUrl, signedUrl: PUBLIC_URL },
      ]);
      expect(alarms[0]?.message).toBe(
        `${seller.agentUrl} signed for ${PUBLIC_URL}. If ${PUBLIC_URL} is what you gave ${seller.agentUrl}, set publicUrl to ${meant}; if not, somebody replays another receiver's deliveries here: change nothing.`,
      );
      // The finding holds, without a budget: a burst is not answered 401 but for one a second.
      const burst = await Promise.all(Array.from({ length: 5 }, async () => open.ask(await signed())));
      expect(burst.map(({ status }) => status)).toEqual([503, 503, 503, 503, 503]);
      expect(handled).toEqual([]);
      // Nothing was burned: the seller's retry is accepted once the URL is right.
      const mended = openSetup(seller, { ...more, publicUrl: meant });
      await using reopened = await door.open(mended.receiver);
      expect((await reopened.ask(first)).status).toBe(200);
      expect(mended.handled).toHaveLength(1);
    },
  );
});

const PREFIX = 'https://buyer.example/webhooks/*';

/** What platforms percent-encode, as a seller may have it in the URL behind `PUBLIC_URL`. */
const ENCODED = [
  ['in the query', "?q='x'"],
  ['in the path', '/{a}'],
  ['in both', '/{a}?q="x"'],
  ['in one, and encoded before in the other', "/%7Ba%7D?q='x'"],
  ['in the other, and encoded before in the one', '/{a}?q=%27x%27'],
  ['every one', '/"<>^`{}?q="<>\''],
] as const;

/** With another signature. */
const forged = (request: WireRequest): WireRequest => ({
  ...request,
  headers: request.headers.map(([name, value]) => [
    name,
    name === 'Signature' ? value.replace(/=:.{4}/, '=:AAAA') : value,
  ]),
});

describe.each(inThisForm(DOORS, () => true))(
  'a URL with what platforms percent-encode (verification.md §2.34): $name',
  (door) => {
    test.each([...ENCODED, ['of a member', '?q=a:b/c,d']] as const)(
      '%s: never a final 401',
      async (_, rest) => {
        const { signed } = givenFor(seller);
        const { receiver } = openSetup(seller, { publicUrl: PREFIX });
        await using open = await door.open(receiver);
        const given = await signed({ url: PUBLIC_URL + rest });
        expect((await open.ask(forged(given))).status).toBe(401);
        expect([200, 503]).toContain((await open.ask(given)).status);
      },
    );
  },
);

test.each(inThisForm(ENCODED, () => true))(
  '`Request.url`, %s: 503 and an alarm, also after one that verified',
  async (_, rest) => {
    const alarms: Alarm[] = [];
    const { receiver, handled } = openSetup(seller, {
      publicUrl: PREFIX,
      onAlarm: (alarm) => void alarms.push(alarm),
    });
    const handle = webhookHandler(receiver);
    const { signed } = givenFor(seller);
    const ask = async (url: string, change = (request: WireRequest) => request): Promise<number> => {
      const { method, headers, body } = change(await signed({ url }));
      return (
        await handle(
          new Request(url, { method, headers: headers.map((line) => [...line]), body: Buffer.from(body) }),
        )
      ).status;
    };
    const url = PUBLIC_URL + rest;
    expect(await ask(url, forged)).toBe(401);
    expect(await ask(url)).toBe(503);
    expect(alarms).toMatchObject([{ code: 'public_url_mismatch', sender: seller.agentUrl, signedUrl: url }]);
    expect(await ask(PUBLIC_URL)).toBe(200);
    expect(await Promise.all([ask(url), ask(url, forged), ask(url)])).toEqual([503, 401, 503]);
    expect(handled).toHaveLength(1);
  },
);
