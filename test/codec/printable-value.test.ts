import { describe, expect, it } from 'vitest';
import { PrintableError } from '../../src/index.ts';
import { printableValue } from '../../src/codec/for-tests.ts';
import { SellerError } from '../../src/registrations/index.ts';
import { ears as earsOf, HOSTILE, MARK } from '../support/hostile-text.ts';

class PageError extends Error {
  readonly body = HOSTILE;
}

describe('text of others where it leaves (verification.md §2.30)', () => {
  it.each([
    ['text', HOSTILE],
    ['a member and its name', { [HOSTILE]: { deep: [HOSTILE] } }],
    ['an error', new Error(HOSTILE)],
    ['its causes', new Error('a', { cause: new Error('b', { cause: { text: HOSTILE } }) })],
    ['members of an error', new PageError('a')],
    ['errors of an error', new AggregateError([new Error(HOSTILE)], 'a')],
    ['a stack that somebody has set', Object.assign(new Error(MARK), { stack: HOSTILE })],
    ['the name of an error', Object.assign(new Error('a'), { name: HOSTILE })],
    ['a list that is long', Array.from({ length: 1_000 }, () => HOSTILE)],
  ])('%s is printable and short', (_, value) => {
    const ears = earsOf();
    ears.hear(printableValue(value));
    ears.expectClean(1);
  });

  it('is given back itself where nothing is in it', () => {
    const error = Object.assign(new RangeError('no', { cause: { at: 1 } }), { code: 'E' });
    for (const value of ['a', 7, null, undefined, { a: [1, 'b', { c: new Date(0) }] }, error]) {
      expect(printableValue(value)).toBe(value);
    }
  });

  it('an error keeps its class, its members and its frames, and none of the message’s', () => {
    const error = new PageError(`${MARK}\n    at forged (evil.js:1:1)`);
    const shown = printableValue(error);
    expect(shown).toBeInstanceOf(PageError);
    expect(shown.message).toBe(`${MARK}?    at forged (evil.js:1:1)`);
    const [first, ...frames] = (shown.stack ?? '').split('\n');
    expect(first).toBe(`Error: ${shown.message}`);
    expect(frames.length).toBeGreaterThan(0);
    expect(frames.filter((line) => !line.startsWith('    at ') || line.includes('evil.js'))).toEqual([]);
    expect(error.message).toContain('\n');
  });

  it('what is deep, goes in a circle, or throws where it is looked at, ends', () => {
    const circle: Record<string, unknown> = { text: HOSTILE };
    circle['self'] = circle;
    const deep = Array.from({ length: 50 }).reduce<object>((inner) => ({ inner }), { text: HOSTILE });
    const throwing = new Proxy({}, { ownKeys: () => expect.fail('looked at'), getPrototypeOf: () => null });
    const ears = earsOf();
    for (const value of [circle, deep, throwing]) ears.hear(printableValue(value));
    ears.expectClean(1);
  });

  it('is short as a whole, and what one member holds leaves the others as they are', () => {
    const wide = (levels: number): object =>
      Object.fromEntries(
        Array.from({ length: 40 }, (_, at) => [
          `m${at}`,
          levels === 0 ? 'x'.repeat(4_000) : wide(levels - 1),
        ]),
      );
    const long = { ['n'.repeat(20_000)]: 1, after: 'a' };
    const error = new SellerError('CODE', 'said', { details: wide(1) as never, retryAfterMs: 5 });
    const shown = printableValue({ error, long, numbers: wide(0), sender: 'https://seller.example' });
    expect(JSON.stringify(shown).length).toBeLessThan(120_000);
    expect(shown.sender).toBe('https://seller.example');
    expect(printableValue(error)).toMatchObject({ code: 'CODE', retryAfterMs: 5 });
    expect(JSON.stringify(printableValue(error).details).length).toBeLessThan(60_000);
    const fits = { a: 'x'.repeat(4_000), b: { c: [1, 2, 3] } };
    expect(printableValue(fits)).toBe(fits);
  });

  it('errors of the package are printable from the start, with what they are caused by', () => {
    const ears = earsOf();
    class Own extends PrintableError {
      readonly code = 'own';
    }
    ears.hear(new Own(HOSTILE, { cause: new Error(HOSTILE) }));
    ears.hear(new SellerError(HOSTILE, HOSTILE, { cause: new Error(HOSTILE) }));
    ears.expectClean(6);
  });
});
