import { describe, expect, it } from 'vitest';
import { createHashes } from '../../src/crypto/for-tests.ts';
import { deliveryId } from '../../src/for-tests.ts';
import { storedId, storedNonce } from '../../src/stages/for-tests.ts';

const hashes = createHashes();
const stored = (id: string): string => storedId(id, hashes);

/** Written down: with another form an upgrade would lose the marks that stores hold. */
describe('stored form of ids', () => {
  it.each(['task_1', ' ', '~', 'a"b\\c', 'x'.repeat(255), 'sha-256:not-a-hash'])(
    'keeps %j unchanged',
    (id) => {
      expect(stored(id)).toBe(id);
    },
  );

  it.each([
    ['', '12ae32cb1ec02d01eda3581b127c1fee3b0dc53572ed6baf239721a03d82e126'],
    ['x'.repeat(256), 'dbfdd035aca42f2e8ed032df4e144e80695805c105c958e29853c0466a39d15f'],
    ['t\u00e4sk', '81c2c22f6f793230688f5b8246bfe8c0d319ac658b6a2f46ff32b5fa058af8bb'],
    ['\n', 'd7a5e915306d21dc1937ad5616f1dc9682e759e75ef51dd05fd9ddc98a078ea1'],
    ['\x7f', '6fe76740e12a93d5598fe685cb6ad3d3c94e44609065a56866b69647772026ec'],
    ['\ud800', '8c0c59dd0d275aadcd462a5fe12eb352cbdfeaf961eae4f85a4660521df7d2f5'],
  ])('stores %j as the hash of its JSON', (id, hash) => {
    expect(stored(id)).toBe(`sha-256:${hash}`);
  });

  it('keeps an id apart from one that is its hash', () => {
    const long = stored('x'.repeat(256));
    expect(stored(long)).not.toBe(long);
    expect(stored(long)).toMatch(/^sha-256:[0-9a-f]{64}$/);
  });

  it('keeps lone surrogates distinct, which UTF-8 would merge', () => {
    expect(stored('\ud800')).not.toBe(stored('\udfff'));
  });
});

describe('stored form of nonces', () => {
  const of = (keyid: string, nonce: string): object => storedNonce({ keyid, nonce }, hashes);

  it('is the place of the key id, and both', () => {
    expect(of('seller-1', 'AAAA')).toEqual({ keyid: '99', nonce: 'seller-1 AAAA' });
    expect(of('k'.repeat(400), 'AAAA')).toEqual({
      keyid: '0',
      nonce: expect.stringMatching(/^sha-256:[0-9a-f]{64}$/),
    });
  });

  it('keeps pairs apart, in at most 256 places', () => {
    const pairs = [
      ['a b', 'c'],
      ['a', 'c'],
      ['A', 'c'],
      ['a', 'C'],
      ['', 'c'],
    ] as const;
    expect(new Set(pairs.map((pair) => JSON.stringify(of(pair[0], pair[1])))).size).toBe(pairs.length);
    const places = Array.from({ length: 5000 }, (_, n) =>
      storedNonce({ keyid: `key-${n}`, nonce: 'n' }, hashes),
    );
    const { size } = new Set(places.map(({ keyid }) => keyid));
    expect(size > 200 && size <= 256, String(size)).toBe(true);
    expect(new Set(places.map(({ nonce }) => nonce)).size).toBe(5000);
  });
});

it('deliveryId: UUID version 8 of the sender and its key, always the same', () => {
  expect(deliveryId(hashes, 'https://seller.example/mcp', 'event-0001-of-the-seller')).toBe(
    '77a8ffba-2670-8ee1-a91e-b80f34839945',
  );
});
