import { describe, expect, it } from 'vitest';
import type { SendRequest } from '../../src/dev/for-tests.ts';
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
    const wrong: unknown[] = [];
    let sent = 0;
    for (const scheme of SCHEMES) {
      for (const edition of choices.editions) {
        for (const payload of payloads) {
          const row = await send({ payload, scheme, edition });
          sent += 1;
          if (row.status !== 200 || row.asExpected !== true || row.cause || row.next)
            wrong.push([scheme, edition, payload, row]);
        }
      }
    }
    expect(wrong).toEqual([]);
    expect(sent).toBeGreaterThan(300);
    console.log(handled.length);
  });

  it('every mistake that a scheme can make is answered as its row says', async () => {
    const { send, state } = await world();
    const { choices } = await state();
    const wrong: unknown[] = [];
    const began = performance.now();
    for (const { name, schemes } of choices.mistakes) {
      for (const scheme of schemes) {
        const row = await send({
          payload: { kind: 'task', transport: 'tool', status: 'completed' },
          scheme,
          mistake: name,
        });
        if (row.asExpected !== true || !row.cause || row.next) wrong.push([name, scheme, row]);
      }
    }
    console.log(choices.mistakes.length, performance.now() - began);
    expect(wrong).toEqual([]);
  });
});
