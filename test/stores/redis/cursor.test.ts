import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { cursorOf, readCursor } from '../../../src/stores/redis/cursor.ts';

describe('inbox.list, after', () => {
  it('gives back where a page ended, whatever sender and key are', () => {
    const text = fc.string({ unit: 'binary' });
    fc.assert(
      fc.property(fc.double({ noNaN: true, noDefaultInfinity: true }), text, text, (at, sender, key) => {
        const cursor = { place: String(at), sender, key };
        expect(readCursor(cursorOf(cursor))).toEqual(cursor);
      }),
    );
  });

  it('keeps lone surrogates apart', () => {
    const cursor = { place: '1', sender: '\ud800', key: '\udfff' };
    expect(readCursor(cursorOf(cursor))).toEqual(cursor);
  });

  it('is nothing on the first page, and refused where no page gave it', () => {
    expect(readCursor(undefined)).toBeUndefined();
    for (const text of ['', '17', 'x', cursorOf({ place: 'x', sender: '', key: '' }), btoa('["1","a"]')]) {
      expect(readCursor(text), text).toBeNull();
    }
  });
});
