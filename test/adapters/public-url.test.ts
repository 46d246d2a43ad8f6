import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Alarm } from '../../src/alarms.ts';
import type { ReceiverOptions } from '../../src/options.ts';
import { createMemoryState, memoryStore } from '../../src/stores/memory.ts';
import { createFakeSeller, type FakeSeller } from '../../src/testing/fake-seller.ts';
import { PUBLIC_URL } from './contract/cases.ts';
import { DOORS } from './contract/doors.ts';
import { givenFor, openSetup } from './contract/setup.ts';

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

describe.each(DOORS)('publicUrl differs from the URL that the seller has: $name', (door) => {
  test.each(SLIPS)('another %s: 503 and an alarm, never 401', async (_, publicUrl, meant) => {
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
  });
});
