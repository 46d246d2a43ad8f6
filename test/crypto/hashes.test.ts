import * as fc from 'fast-check';
import { describe, expect, it, vi } from 'vitest';
import { hex } from '../../src/codec/for-tests.ts';
import type { Hashes } from '../../src/auth/rfc9421/index.ts';
import { createHashes, loadHashes, nobleHashes } from '../../src/crypto/for-tests.ts';
import { concat, fromHex, utf8 } from './make.ts';

const native = await loadHashes();
const noble = nobleHashes();

const EACH_ONCE = { sha256: 1, sha256Hex: 1, sha256Stream: 1, hmacSha256: 1 };
const NONE = { sha256: 0, sha256Hex: 0, sha256Stream: 0, hmacSha256: 0 };

/** How often each function asks node:crypto. Both give the same bytes, so that those show nothing. */
function callsOf(hashes: Hashes): Record<keyof Hashes, number> {
  const crypto = process.getBuiltinModule('node:crypto');
  const spies = (['hash', 'createHash', 'createHmac'] as const).map((name) => vi.spyOn(crypto, name));
  const count = (run: () => unknown): number => {
    for (const spy of spies) spy.mockClear();
    run();
    return spies.reduce((sum, spy) => sum + spy.mock.calls.length, 0);
  };
  const data = utf8('abc');
  try {
    return {
      sha256: count(() => hashes.sha256(data)),
      sha256Hex: count(() => hashes.sha256Hex(data)),
      sha256Stream: count(() => hashes.sha256Stream().update(data).hex()),
      hmacSha256: count(() => hashes.hmacSha256(data, data)),
    };
  } finally {
    for (const spy of spies) spy.mockRestore();
  }
}

describe.each([
  ['the runtime', native],
  ['JavaScript', noble],
])('hashes of %s', (_, hashes) => {
  it('SHA-256 of FIPS 180-4, examples', () => {
    const abc = 'ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad';
    expect(hashes.sha256Hex(utf8('abc'))).toBe(abc);
    expect(hashes.sha256(utf8('abc'))).toEqual(fromHex(abc));
    expect(hashes.sha256Hex(new Uint8Array())).toBe(
      'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855',
    );
  });

  it('HMAC-SHA-256 of RFC 4231 §4.2, §4.3 and §4.7, the data in any parts', () => {
    expect(hex(hashes.hmacSha256(new Uint8Array(20).fill(0x0b), utf8('Hi '), utf8('There')))).toBe(
      'b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7',
    );
    expect(hex(hashes.hmacSha256(utf8('Jefe'), utf8('what do ya want for nothing?')))).toBe(
      '5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843',
    );
    const long = utf8('Test Using Larger Than Block-Size Key - Hash Key First');
    expect(hex(hashes.hmacSha256(new Uint8Array(131).fill(0xaa), new Uint8Array(), long))).toBe(
      '60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54',
    );
  });

  it('give the same result for chunked input', () => {
    const stream = hashes.sha256Stream();
    expect(stream.update(utf8('a')).update(utf8('')).update(utf8('bc'))).toBe(stream);
    expect(stream.hex()).toBe(hashes.sha256Hex('abc'));
  });

  it('gives plain Uint8Arrays', () => {
    expect(Object.getPrototypeOf(hashes.sha256(utf8('a')))).toBe(Uint8Array.prototype);
    expect(Object.getPrototypeOf(hashes.hmacSha256(utf8('a')))).toBe(Uint8Array.prototype);
  });
});

describe('createHashes', () => {
  it('uses the runtime’s hashes, unless noble is asked for', () => {
    expect([callsOf(createHashes()), callsOf(createHashes('noble'))]).toEqual([EACH_ONCE, NONE]);
  });
});

describe('both', () => {
  it('are two: one asks node:crypto each time, the other never', () => {
    expect([callsOf(native), callsOf(noble)]).toEqual([EACH_ONCE, NONE]);
  });

  it('agree on any input, views into larger buffers included', () => {
    const bytes = fc.uint8Array({ maxLength: 200 });
    fc.assert(
      fc.property(bytes, bytes, bytes, (key, one, two) => {
        const view = concat(Uint8Array.of(9), one, Uint8Array.of(9)).subarray(1, one.length + 1);
        expect(native.sha256(view)).toEqual(noble.sha256(one));
        expect(native.hmacSha256(key, view, two)).toEqual(noble.hmacSha256(key, concat(one, two)));
      }),
    );
  });
});
