import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { decodeBase64, encodeBase64, encodeBase64Url } from '../../src/codec/for-tests.ts';

const bytes = (...values: number[]): Uint8Array => Uint8Array.from(values);

describe('byte sequences in either alphabet, padded correctly or not at all (verification.md §3.1)', () => {
  test.each([
    ['', bytes()],
    ['Zg==', bytes(102)],
    ['Zg', bytes(102)],
    ['Zm8=', bytes(102, 111)],
    ['Zm8', bytes(102, 111)],
    ['Zm9v', bytes(102, 111, 111)],
    ['+/+/', bytes(251, 255, 191)],
    ['-_-_', bytes(251, 255, 191)],
    ['-_8=', bytes(251, 255)],
    ['+/8', bytes(251, 255)],
  ])('%j is decoded', (text, expected) => {
    expect(decodeBase64(text)).toEqual(expected);
  });

  test.each([
    ['mixed alphabets', '+_+_'],
    ['mixed alphabets, the other way', '-/8='],
    ['inner padding', 'Zg==Zg=='],
    ['padding that is too short', 'Zg='],
    ['padding that is too long', 'Zm8=='],
    ['padding where none belongs', 'Zm9v='],
    ['four characters of padding', 'Zm9v===='],
    ['padding alone', '='],
    ['two characters of padding alone', '=='],
    ['one character of a group', 'Zm9vZ'],
    ['trailing bits in the last of two characters', 'Zh=='],
    ['trailing bits in the last of three characters', 'Zm9='],
    ['trailing bits without padding', 'Zh'],
    ['a space', 'Zm 9'],
    ['a line feed', 'Zm9v\n'],
    ['NUL', 'Zm9\u0000'],
    ['latin-1', 'Zm9\u00e9'],
    ['a character beyond the table', 'Zm9\u0141'],
    ['a colon', 'Zm9:'],
  ])('%s is refused', (_, text) => {
    expect(decodeBase64(text)).toBeUndefined();
  });

  test('every value has exactly one text of each of the four forms', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 80 }), (value) => {
        const reference = Buffer.from(value);
        expect(encodeBase64(value)).toBe(reference.toString('base64'));
        expect(encodeBase64Url(value)).toBe(reference.toString('base64url'));
        const forms = [encodeBase64(value), encodeBase64Url(value)];
        for (const form of [...forms, ...forms.map((text) => text.replaceAll('=', ''))]) {
          expect(decodeBase64(form)).toEqual(value);
        }
      }),
    );
  });

  test('decoded bytes encode to the same text: no second text means the same bytes', () => {
    const text = fc.string({ unit: fc.constantFrom(...Array.from('AQgwZz09+/-_=')), maxLength: 12 });
    let decoded = 0;
    fc.assert(
      fc.property(text, (sent) => {
        const value = decodeBase64(sent);
        if (!value) return;
        if (value.length > 0) decoded += 1;
        const data = sent.replaceAll('=', '');
        const again = /[-_]/.test(data) ? encodeBase64Url(value) : encodeBase64(value).replaceAll('=', '');
        expect(again).toBe(data);
      }),
      { numRuns: 2000 },
    );
    expect(decoded).toBeGreaterThan(100);
  });
});
