import { describe, expect, it } from 'vitest';
import { createPaint, harmless, wantsColour } from '../../src/cli/paint.ts';

describe('what a terminal is given', () => {
  it('keeps text, line ends and our own colours', () => {
    const text = `${createPaint(true)('bad', 'FAIL')} caf\u00e9\r\n\tend\n`;
    expect(text).toContain('\u001b[31m');
    expect(harmless(text)).toBe(text);
  });

  it.each([
    ['moves of the cursor', '\u001b[2Ja', '?[2Ja'],
    ['a window title', '\u001b]0;x\u0007', '?]0;x?'],
    ['C1', '\u009b2J', '?2J'],
    ['a carriage return that would overwrite the line', 'FAIL\rpass', 'FAIL?pass'],
    ['a turned direction of text', 'a\u202eb\u2066c', 'a?b?c'],
  ])('takes out %s', (_, given, shown) => {
    expect(harmless(given)).toBe(shown);
  });

  it('has colours only where a terminal takes them and NO_COLOR is not set', () => {
    expect(wantsColour(true, { TERM: 'xterm' })).toBe(true);
    expect(wantsColour(true, { NO_COLOR: '1' })).toBe(false);
    expect(wantsColour(true, { TERM: 'dumb' })).toBe(false);
    expect(wantsColour(false, {})).toBe(false);
  });
});
