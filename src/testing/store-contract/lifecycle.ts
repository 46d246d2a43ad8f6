import assert from 'node:assert/strict';
import { Fault } from '../../errors.ts';
import type { Cases } from './kit.ts';

const LEVELS = ['process', 'disk', 'failover'];

const unavailable = (error: unknown): boolean => error instanceof Fault && error.code === 'store_unavailable';

/** `open`, `durability`, `close`. */
export const lifecycleCases: Cases = {
  'it has a name, and says what its answers survive': async ({ a, b }) => {
    assert.notEqual(a.name, '');
    assert.ok(LEVELS.includes(await a.durability()));
    assert.equal(await b.durability(), await a.durability());
  },
  'open may be called again, also at once, and changes nothing': async ({ a, apply, peek }) => {
    await apply();
    await Promise.all([a.open(), a.open()]);
    assert.equal(await peek(), 'applied');
  },
  'close waits for what runs': async ({ a, b, request, peek }) => {
    const running = a.accept(request());
    await a.close();
    assert.equal((await running).kind, 'won');
    assert.equal(await peek({}, b), 'busy');
  },
  'after close every call is store_unavailable, and close may be called again': async (kit) => {
    const { lease } = await kit.win();
    await kit.a.close();
    await kit.a.close();
    await assert.rejects(kit.accept(), unavailable);
    await assert.rejects(kit.complete(lease.owner), unavailable);
    await assert.rejects(kit.fail(lease.owner), unavailable);
    await assert.rejects(kit.renew(lease.owner), unavailable);
    await assert.rejects(kit.peek(), unavailable);
    await assert.rejects(kit.a.open(), unavailable);
    assert.equal(await kit.complete(lease.owner, {}, kit.b), 'done');
  },
};

/** For stores that outlive their handles. */
export const persistenceCases: Cases = {
  'what was answered is there after both handles are closed': async (kit) => {
    await kit.apply({ key: 'event-done-of-the-seller' });
    const { lease } = await kit.win();
    await kit.accept({ event: false, nonce: 'nonce-of-16-bytes-or-more' });
    await kit.a.close();
    await kit.b.close();
    const store = await kit.reopen();
    assert.equal((await kit.accept({ key: 'event-done-of-the-seller' }, store)).kind, 'done');
    const burned = { event: false, nonce: 'nonce-of-16-bytes-or-more' } as const;
    assert.equal((await kit.accept(burned, store)).kind, 'replayed');
    assert.equal((await kit.accept({}, store)).kind, 'in-flight');
    assert.equal(await kit.complete(lease.owner, {}, store), 'done');
  },
};
