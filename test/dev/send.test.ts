import { describe, expect, it } from 'vitest';
import type { SendRequest } from '../../src/dev/for-tests.ts';
import { inThisForm } from '../reliability/form.ts';
import { SCHEMES, world } from './kit.ts';

describe('what is sent', () => {
  it('every payload in every edition by every scheme is answered as expected', async () => {
    const { send, state, handled } = await world();
    const { choices } = await state();
    const payloads: SendRequest['payload'][] = [
      ...choices.transports.flatMap((transport) =>
        choices.statuses.map((status) => ({ kind: 'task', transport, status }) as const),
      ),
      ...choices.reports.map((type) => ({ kind: 'report', type }) as const),
      ...choices.families.map((name) => ({ kind: 'family', name }) as const),
      { kind: 'challenge' },
      { kind: 'body', text: '{"idempotency_key":"key-of-my-own-event","task_id":"t","status":"working"}' },
    ];
    const orders = SCHEMES.flatMap((scheme) =>
      choices.editions.flatMap((edition) => payloads.map((payload) => ({ scheme, edition, payload }))),
    );
    const wrong: unknown[] = [];
    // A prime: each payload, edition and scheme is among them.
    for (const order of inThisForm(orders, (_, index) => index % 13 === 0)) {
      const row = await send(order);
      if (row.status !== 200 || row.asExpected !== true || row.cause || row.next) wrong.push([order, row]);
    }
    expect(wrong).toEqual([]);
    expect(orders.length).toBeGreaterThan(300);
    expect(handled.length).toBeGreaterThan(20);
  });

  it('every mistake that a scheme can make is answered as its row says', async () => {
    const { send, state } = await world();
    const { choices } = await state();
    const payload = { kind: 'task', transport: 'tool', status: 'completed' } as const;
    const orders = choices.mistakes.flatMap(({ name: mistake, schemes }) =>
      schemes.map((scheme) => ({ payload, scheme, mistake })),
    );
    const wrong: unknown[] = [];
    for (const order of inThisForm(orders, (_, index) => index % 7 === 0)) {
      const row = await send(order);
      if (row.asExpected !== true || !row.cause || row.next) wrong.push([order, row]);
    }
    expect(wrong).toEqual([]);
    expect(orders.length).toBeGreaterThan(190);
  });
});
