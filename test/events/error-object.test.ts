import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { withoutNulls } from '../../src/codec/for-tests.ts';
import { errorsIn, errorsOf, recoveryMember, recoveryOfCode } from '../../src/events/for-tests.ts';

const BUDGET = {
  code: 'BUDGET_TOO_LOW',
  message: 'at least 500',
  recovery: 'correctable',
  field: 'packages[0].budget',
  details: { minimum: 500 },
} as const;

describe('calls.md §2.1: an error of a seller', () => {
  it.each([
    [BUDGET, BUDGET],
    // By its code, where it has no recovery.
    [{ code: 'RATE_LIMITED' }, { code: 'RATE_LIMITED', message: '', recovery: 'transient' }],
    [{ code: 'AUTH_INVALID', message: 'x', recovery: null }, { recovery: 'terminal' }],
    // The error's own word wins, and one that is unknown is the safe one.
    [{ code: 'RATE_LIMITED', recovery: 'terminal' }, { recovery: 'terminal' }],
    [{ code: 'BUDGET_TOO_LOW', recovery: 'transient' }, { recovery: 'transient' }],
    [
      { code: 'X', recovery: 'try_again' },
      { code: 'X', recovery: 'terminal' },
    ],
    [{ recovery: 'transient' }, { message: '', recovery: 'transient' }],
    [
      { code: 'X', issues: [{ pointer: '/budget', message: 'm' }] },
      { code: 'X', field: '/budget' },
    ],
    [{ code: 'X', field: 'a', issues: [{ pointer: '/b', message: 'm' }] }, { field: 'a' }],
  ])('%j', (error, expected) => {
    expect(errorsOf(error)).toMatchObject([expected]);
  });

  it('an unknown code without a recovery has none', () => {
    expect(errorsOf({ code: 'NEW_CODE', message: 'm' })).toEqual([{ code: 'NEW_CODE', message: 'm' }]);
    expect(errorsOf({ code: '__proto__' })).toEqual([{ code: '__proto__', message: '' }]);
  });

  it.each([null, undefined, 7, true, [], {}, { code: null, message: null }, { code: '', message: '' }])(
    '%j says nothing',
    (value) => {
      expect(errorsOf(value)).toEqual([]);
    },
  );

  it('a code that is no string, empty or over 64 characters is none', () => {
    for (const code of [7, null, '', 'C'.repeat(65), { a: 1 }]) {
      expect(errorsOf({ code, message: 'm' })).toEqual([{ message: 'm' }]);
    }
    expect(errorsOf({ code: 'C'.repeat(64) })).toMatchObject([{ code: 'C'.repeat(64) }]);
  });

  it('is made printable and bounded', () => {
    const [error] = errorsOf({ code: 'A\u202EB', message: 'm\n'.repeat(9000), field: 'f\u0000' });
    expect(error).toMatchObject({ code: 'A?B', field: 'f?' });
    expect(error?.message.length).toBeLessThan(5000);
    expect(error?.message.startsWith('m?m?')).toBe(true);
    expect(errorsOf(Array.from({ length: 900 }, () => BUDGET)).length).toBe(16);
    expect(errorsOf([[[[BUDGET]]]])).toEqual([]);
  });

  it.each([
    [4, 4000],
    [0.2, 1000],
    [1.1, 2000],
    [0, 1000],
    [-5, 1000],
    [3600, 3_600_000],
    [1e306, 3_600_000],
    [Number.NaN, undefined],
    [Number.POSITIVE_INFINITY, undefined],
    ['4', undefined],
    [null, undefined],
  ])('retry_after %s is %s ms', (seconds, ms) => {
    const [error] = errorsOf({ code: 'RATE_LIMITED', retry_after: seconds });
    expect(error?.retryAfterMs).toBe(ms);
  });
});

describe('where errors stand', () => {
  it.each([
    [{ adcp_error: BUDGET }],
    [{ proto_error: BUDGET }],
    [{ error: BUDGET }],
    [{ errors: [BUDGET] }],
    [{ adcp_error: null, error: null, errors: [null, BUDGET] }],
    // Of JSON-RPC: what the operation says is in its data.
    [{ error: { code: -32_000, data: { adcp_error: BUDGET } } }],
    [{ error: { code: -32_000, data: BUDGET } }],
    [{ error: { code: -32_000, data: { errors: [BUDGET] } } }],
  ])('%j', (holder) => {
    expect(errorsIn(holder)).toEqual([BUDGET]);
  });

  it('the one that counts most comes first, and texts are errors too', () => {
    const found = errorsIn({ errors: [{ code: 'C' }], error: 'boom', adcp_error: { code: 'A' } });
    expect(found.map(({ code, message }) => code ?? message)).toEqual(['A', 'boom', 'C']);
    expect(errorsIn({ error: { code: -32_603, message: 'internal' } })).toEqual([{ message: 'internal' }]);
    expect(errorsIn({ media_buy_id: 'mb1', adcp_error: null, errors: [] })).toEqual([]);
  });
});

describe('calls.md §2.2: the codes of the protocol', () => {
  it('those that are not correctable are those of the page', () => {
    const page = readFileSync('docs/spec/calls.md', 'utf8');
    for (const recovery of ['terminal', 'transient'] as const) {
      const line = page.split('\n').find((one) => one.startsWith(`- **${recovery}**`)) ?? '';
      const codes = [...line.matchAll(/`([A-Z_0-9]+)`/g)].map(([, code = '']) => code);
      expect(codes.length).toBeGreaterThan(7);
      expect(codes.map((code) => recoveryOfCode(code))).toEqual(codes.map(() => recovery));
    }
    expect(recoveryOfCode('NOT_CANCELLABLE')).toBe('correctable');
    expect(recoveryOfCode('VAST_PARSE_FAILED')).toBe('correctable');
    expect(recoveryOfCode('toString')).toBeUndefined();
  });

  it('a recovery is one of three words', () => {
    expect(['transient', 'correctable', 'terminal', 'later', '', 5, null].map(recoveryMember)).toEqual([
      'transient',
      'correctable',
      'terminal',
      'terminal',
      undefined,
      undefined,
      undefined,
    ]);
  });
});

it('members that are null are dropped, what is inside others stays', () => {
  const given = JSON.parse('{"a":null,"b":{"c":null},"__proto__":1}') as Record<string, unknown>;
  expect(JSON.stringify(withoutNulls(given))).toBe('{"b":{"c":null},"__proto__":1}');
});
