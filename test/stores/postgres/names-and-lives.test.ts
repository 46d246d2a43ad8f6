import { beforeEach, describe, expect, it } from 'vitest';
import type { AcceptRequest } from '../../../src/stores/index.ts';
import { expectCountsRight, ownSchema } from '../postgres-schemas.ts';
import { acceptRequest, key, leaseOf, RETENTION_MS } from '../requests.ts';

const at = ownSchema();
beforeEach(() => at.clear());

/** The nonce of another form. */
function signed(request: AcceptRequest, keyid: string, nonce: string): AcceptRequest {
  return { ...request, nonce: { keyid, nonce, nowMs: 0, expiresAtMs: 60_000 } };
}

function unsigned({ nonce: _nonce, ...request }: AcceptRequest): AcceptRequest {
  return request;
}

describe('names in every form', () => {
  it('a nonce that is long only in its stored form is recognised when repeated', async () => {
    const store = at.store();
    await store.open();
    const nonce = `${'\ud800'.repeat(400)}n`;
    expect((await store.accept(signed(acceptRequest({ key: key(1) }), 'kid', nonce))).kind).toBe('won');
    expect((await store.accept(signed(acceptRequest({ key: key(2) }), 'kid', nonce))).kind).toBe('replayed');
    await store.close();
  });

  it('a sender and a key id that concatenate to another pair stay distinct', async () => {
    const store = at.store();
    await store.open();
    const pairs = [
      { sender: 'urn:seller x', keyid: 'y' },
      { sender: 'urn:seller', keyid: 'x y' },
    ];
    const results = await Promise.all(
      pairs.map(({ sender, keyid }, n) =>
        store.accept(signed(acceptRequest({ sender, key: key(n) }), keyid, `nonce-${n}`)),
      ),
    );
    expect(results.map(({ kind }) => kind)).toEqual(['won', 'won']);
    const rows = await at.sql(
      'SELECT n.sender, r.key, n.keyid FROM record r JOIN nonce n ON n.record_key = r.key AND n.sender = r.sender ORDER BY r.key',
    );
    expect(rows).toEqual(pairs.map((pair, n) => ({ ...pair, key: key(n) })));
    await store.close();
  });

  it('a delivery without a nonce is not confused with the key id "undefined"', async () => {
    const store = at.store();
    await store.open();
    const requests = [
      unsigned(acceptRequest({ key: key(1) })),
      signed(acceptRequest({ key: key(2) }), 'undefined', 'nonce-2'),
    ];
    const results = await Promise.all(requests.map((request) => store.accept(request)));
    expect(results.map(({ kind }) => kind)).toEqual(['won', 'won']);
    await expectCountsRight(at);
    await store.close();
  });
});

/** Numbers from 0 to 1, evenly. */
function spread(): () => number {
  let at = 0;
  return () => (at += 0.618) % 1;
}

describe('clean-up by accepts', () => {
  it('leaves at most a few hundred expired rows of one sender', async () => {
    let offsetMs = 0;
    const store = at.store(at.pools[0], { clockOffsetMs: () => offsetMs, random: spread() });
    await store.open();
    const one = async (n: number): Promise<void> => {
      const request = acceptRequest({ key: key(n) });
      expect((await store.accept(request)).kind).toBe('won');
      expect(await store.complete({ ...leaseOf(request), retentionMs: RETENTION_MS })).toBe('done');
    };
    for (let n = 0; n < 40; n += 1) await one(n);
    offsetMs = 2 * RETENTION_MS;
    for (let n = 40; n < 120; n += 1) await one(n);
    expect(await at.sql('SELECT count(*)::integer AS n FROM record')).toEqual([{ n: 80 }]);
    expect(await at.sql('SELECT count(*)::integer AS n FROM nonce')).toEqual([{ n: 80 }]);
    await expectCountsRight(at);
    await store.close();
  });

  it('reaches every sender, however many there are', async () => {
    let offsetMs = 0;
    const store = at.store(at.pools[0], { clockOffsetMs: () => offsetMs, random: spread() });
    await store.open();
    const one = (n: number): Promise<unknown> =>
      store.accept(acceptRequest({ sender: `https://seller-${n % 4}.example/mcp`, key: key(n) }));
    for (let n = 0; n < 40; n += 1) await one(n);
    offsetMs = 2 * RETENTION_MS;
    for (let n = 40; n < 440; n += 1) await one(n);
    expect(await at.sql('SELECT count(*)::integer AS n FROM record')).toEqual([{ n: 400 }]);
    expect(await at.sql('SELECT count(*)::integer AS n FROM nonce')).toEqual([{ n: 400 }]);
    await expectCountsRight(at);
    await store.close();
  });
});
