import { expect, it } from 'vitest';
import { jsonLog } from '../../src/serve/for-tests.ts';

/** One line of it. */
function line(fields: object, message = 'a line'): string {
  const lines: string[] = [];
  jsonLog(
    (text) => void lines.push(text),
    () => Date.UTC(2026, 0, 31, 12),
  ).logger.warn(fields, message);
  expect(lines).toHaveLength(1);
  return lines[0] ?? '';
}

const HEAD = { time: '2026-01-31T12:00:00.000Z', level: 'warn', msg: 'a line' };

it('a line is one JSON object with time, level and message, which no field replaces', () => {
  expect(JSON.parse(line({ sender: 'https://seller.example/mcp', level: 'x', time: 0, msg: 5 }))).toEqual({
    ...HEAD,
    sender: 'https://seller.example/mcp',
  });
});

it('an alarm has its code as alarm, and an answer 503 is none', () => {
  const docs = 'docs/alarms.md#dead';
  expect(JSON.parse(line({ code: 'dead', docs }))).toEqual({ ...HEAD, alarm: 'dead', docs });
  const answer = { kind: 'unavailable', code: 'store_unavailable', docs: 'docs/errors.md#store_unavailable' };
  expect(JSON.parse(line(answer))).toEqual({ ...HEAD, ...answer });
});

it('an error is its name, message, code, stack and cause', () => {
  const cause = new DOMException('too late', 'TimeoutError');
  const error = Object.assign(new TypeError('it broke', { cause }), { code: 'E_X' });
  expect(JSON.parse(line({ err: error }))).toMatchObject({
    err: {
      name: 'TypeError',
      message: 'it broke',
      code: 'E_X',
      stack: expect.stringContaining('it broke') as string,
      cause: { name: 'TimeoutError', message: 'too late' },
    },
  });
});

it('no line has bytes, a line end, or what steers a terminal; each is still JSON', () => {
  const hostile = 'a\n\r\u0000\u001b[2J\u007f\u0085\u009b\u2028\u202e\u200bb';
  const text = line({ hostile, body: Buffer.from('secret'), more: new Uint8Array(3), big: 10n }, hostile);
  // oxlint-disable-next-line no-control-regex -- control characters are what it is for
  expect(text).not.toMatch(/[\u0000-\u001f\u007f-\u009f\u200b\u2028\u202e]/);
  expect(JSON.parse(text)).toMatchObject({
    msg: hostile,
    hostile,
    body: '6 bytes',
    more: '3 bytes',
    big: '10',
  });
  expect(text).not.toContain('secret');
});

it('what cannot be written, or is too long, costs its fields and not the line', () => {
  const circle: Record<string, unknown> = {};
  circle['self'] = circle;
  const throwing = {
    get value(): never {
      throw new Error('no');
    },
  };
  for (const fields of [circle, throwing, { long: 'x'.repeat(100_000) }])
    expect(JSON.parse(line(fields))).toEqual(HEAD);
});
