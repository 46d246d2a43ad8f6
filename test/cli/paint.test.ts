import { describe, expect, it } from 'vitest';
import { createPaint, harmless, inLine, inLines, wantsColour } from '../../src/cli/for-tests.ts';

describe('terminal output', () => {
  it('keeps text, line ends and our own colours', () => {
    const text = `${createPaint(true)('bad', 'FAIL')} caf\u00e9\r\n\tend\n`;
    expect(text).toContain('\u001b[31m');
    expect(harmless(text)).toBe(text);
  });

  it('keeps all our colours', () => {
    for (const style of ['good', 'bad', 'warn', 'dim', 'bold'] as const) {
      const text = createPaint(true)(style, 'x');
      expect(harmless(text)).toBe(text);
    }
  });

  it('keeps foreign texts in one line, at any depth', () => {
    expect(inLine('k\r\n\u001b[32mgood\u2028')).toBe('k???[32mgood?');
    expect(inLines({ a: ['x\ny', 1, undefined], b: { c: null } })).toEqual({
      a: ['x?y', 1, undefined],
      b: { c: null },
    });
  });

  it.each([
    ['hidden text', '\u001b[8mx', '?[8mx'],
    ['colours that are not ours', '\u001b[41mx\u001b[0m', '?[41mx?[0m'],
    ['moves of the cursor', '\u001b[2Ja', '?[2Ja'],
    ['a window title', '\u001b]0;x\u0007', '?]0;x?'],
    ['C1', '\u009b2J', '?2J'],
    ['a carriage return that would overwrite the line', 'FAIL\rpass', 'FAIL?pass'],
    ['a turned direction of text', 'a\u202eb\u2066c', 'a?b?c'],
  ])('removes %s', (_, given, shown) => {
    expect(harmless(given)).toBe(shown);
  });

  it('has colours only on a terminal and without NO_COLOR', () => {
    expect(wantsColour(true, { TERM: 'xterm' })).toBe(true);
    expect(wantsColour(true, { NO_COLOR: '1' })).toBe(false);
    expect(wantsColour(true, { TERM: 'dumb' })).toBe(false);
    expect(wantsColour(false, {})).toBe(false);
  });
});
