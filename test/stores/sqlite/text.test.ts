import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { columnText, fromColumnText } from '../../../src/stores/for-tests.ts';

const anyText = fc.string({
  unit: fc.integer({ min: 0, max: 0xffff }).map((unit) => String.fromCharCode(unit)),
});

describe('columnText', () => {
  it('leaves ordinary text unchanged', () => {
    for (const text of ['', 'event-1', 'https://seller.example/mcp', '{}*:', '\u{1F600}', "'"]) {
      expect(columnText(text)).toBe(text);
    }
  });

  it('removes NUL and lone surrogates without losing information', () => {
    fc.assert(
      fc.property(anyText, (text) => {
        const column = columnText(text);
        expect(column).not.toContain('\0');
        expect(new TextDecoder().decode(new TextEncoder().encode(column))).toBe(column);
        expect(fromColumnText(column)).toBe(text);
      }),
    );
  });

  it('keeps texts distinct that look like encoded ones', () => {
    const encoded = columnText('a\0b');
    expect(columnText(encoded)).not.toBe(encoded);
    expect(fromColumnText(columnText(encoded))).toBe(encoded);
  });
});
