import assert from 'node:assert/strict';
import type { Cases } from './kit.ts';
import { LEASE_MS, bytes, decision, expectWon, text } from './kit.ts';

const FIRST = '{"a":1,"b":2}';
const OTHER = '{"a":1,"b":3}';
const REORDERED = '{ "b": 2, "a": 1 }';

/** Rule 2: the record exists (admission.md §3.2; contract.md §9.4, §9.5; verification.md §2.21). */
export const recordCases: Cases = {
  'a new event is won, with fence 1 and attempt 1': async ({ win, peek, b }) => {
    const { lease } = await win({ id: 'accept-1' });
    assert.deepEqual(lease, { owner: 'accept-1', fence: 1, attempt: 1 });
    assert.equal(await peek({}, b), 'busy');
  },
  'an event that nobody sent is absent': async ({ peek }) => {
    assert.equal(await peek(), 'absent');
  },
  'a duplicate of a finished event is done, on every handle': async ({ accept, apply, peek, b }) => {
    await apply();
    const done = { kind: 'done', changed: false, state: 'applied', died: false };
    assert.deepEqual(decision(await accept()), done);
    assert.deepEqual(decision(await accept({}, b)), done);
    assert.equal(await peek({}, b), 'applied');
  },
  'a duplicate of a running event is in-flight': async ({ accept, win, b }) => {
    await win();
    assert.deepEqual(decision(await accept({}, b)), { kind: 'in-flight', changed: false });
  },
  'a duplicate of a DEAD event is done, and did not die now': async ({ accept, win, fail, peek }) => {
    const { lease } = await win();
    assert.equal(await fail(lease.owner, { permanent: true }), 'dead');
    assert.deepEqual(decision(await accept()), { kind: 'done', changed: false, state: 'dead', died: false });
    assert.equal(await peek(), 'dead');
  },
  'a changed payload of a finished event is done and said to be changed': async ({ accept, apply }) => {
    await apply({ body: FIRST });
    const result = decision(await accept({ body: OTHER }));
    assert.deepEqual(result, { kind: 'done', changed: true, state: 'applied', died: false });
  },
  'a changed payload of a running event is in-flight and said to be changed': async ({ accept, win }) => {
    await win({ body: FIRST });
    assert.deepEqual(decision(await accept({ body: OTHER })), { kind: 'in-flight', changed: true });
  },
  'a changed payload that takes over gets the stored first copy': async ({ accept, win, fail, b }) => {
    const { lease } = await win({ body: FIRST });
    await fail(lease.owner);
    const won = expectWon(await accept({ body: OTHER }, b));
    assert.equal(won.changed, true);
    assert.equal(text(won.body), FIRST);
    await fail(won.lease.owner);
    const again = expectWon(await accept({ body: FIRST }));
    assert.equal(again.changed, false);
    assert.equal(again.body, undefined);
  },
  'the first copy is the bytes as they came, and a copy of them': async ({ a, request, win, advance }) => {
    const all = bytes('xx"\u0000\uD83D\uDE00"xx');
    const draft = request({ body: 'first' });
    assert.ok(draft.event);
    // A view into a larger buffer, as a body parser's pool gives it, and overwritten when it is reused.
    await a.accept({ ...draft, event: { ...draft.event, body: all.subarray(2, all.length - 2) } });
    all.fill(0);
    advance(LEASE_MS + 1);
    assert.equal(text((await win({ body: OTHER })).body), '"\u0000\uD83D\uDE00"');
  },
  'an empty body is kept as one': async ({ win, fail }) => {
    const { lease } = await win({ body: '' });
    await fail(lease.owner);
    assert.equal(text((await win({ body: OTHER })).body), '');
  },
  'onChanged conflict: a changed payload is a conflict, whatever the first copy’s state': async (kit) => {
    const changed = { body: OTHER, onChanged: 'conflict' } as const;
    const { lease } = await kit.win({ body: FIRST });
    assert.deepEqual(decision(await kit.accept(changed)), { kind: 'conflict' });
    await kit.fail(lease.owner);
    assert.deepEqual(decision(await kit.accept(changed)), { kind: 'conflict' });
    assert.equal(await kit.peek(), 'free');
    await kit.apply({ body: FIRST });
    assert.deepEqual(decision(await kit.accept(changed)), { kind: 'conflict' });
  },
  'onChanged conflict: an unchanged payload is none': async ({ accept, apply }) => {
    await apply({ body: FIRST, onChanged: 'conflict' });
    assert.equal((await accept({ body: FIRST, onChanged: 'conflict' })).kind, 'done');
  },
  'a conflict burns its nonce for the event': async ({ accept, apply }) => {
    await apply({ body: FIRST });
    const changed = { body: OTHER, onChanged: 'conflict', nonce: 'nonce-of-16-bytes-or-more' } as const;
    assert.equal((await accept(changed)).kind, 'conflict');
    assert.equal((await accept(changed)).kind, 'replayed');
  },
  'other bytes with the same canonical JSON are unchanged where both copies have it': async (kit) => {
    const strict = { onChanged: 'conflict', canonical: FIRST } as const;
    await kit.apply({ ...strict, body: FIRST });
    const reordered = decision(await kit.accept({ ...strict, body: REORDERED }));
    assert.deepEqual(reordered, { kind: 'done', changed: false, state: 'applied', died: false });
    const other = await kit.accept({ body: OTHER, onChanged: 'conflict', canonical: OTHER });
    assert.equal(other.kind, 'conflict');
  },
  'where one copy has no canonical JSON the bytes decide': async ({ accept, apply }) => {
    await apply({ body: FIRST });
    assert.equal((await accept({ body: FIRST, canonical: FIRST, onChanged: 'conflict' })).kind, 'done');
    assert.equal(
      (await accept({ body: REORDERED, canonical: FIRST, onChanged: 'conflict' })).kind,
      'conflict',
    );
    assert.equal((await accept({ body: REORDERED })).kind, 'done');
  },
};
