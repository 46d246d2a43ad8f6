import { describe, expect, it } from 'vitest';
import { contentTypes } from '../../src/config/for-tests.ts';
import { type AuthPolicy, headerFields, type SenderEntry } from '../../src/for-tests.ts';
import {
  declaredLength,
  guard,
  guardAgentPush,
  type GuardContext,
  guardDeclaredLength,
  guardHeaders,
} from '../../src/stages/for-tests.ts';

const context = (types?: readonly string[]): GuardContext => ({
  config: { maxBodyBytes: 1_000, contentTypes: contentTypes(types) },
});
const pass = (headers: [string, string][], method = 'POST', size = 2, types?: readonly string[]) =>
  guard({ method, url: undefined, headers: headerFields(headers) }, context(types), new Uint8Array(size));
const code = (result: ReturnType<typeof pass>): string =>
  result.kind === 'refused' ? result.code : 'passed';
const json: [string, string] = ['Content-Type', 'application/json'];

describe('guard: content type (verification.md §7.24)', () => {
  it.each([
    'application/json',
    'Application/JSON',
    'application/json; charset=utf-8',
    'application/json; charset=utf8',
    'application/json;charset="UTF8"',
    'application/json;charset="UTF-8"',
    'application/json ; charset=utf-8 ; version=1',
    'application/json;',
    'application/json; ; ;\t; charset=utf-8',
    'application/json; charset="ut\\f-8"',
    'application/json; note="; charset=latin1"',
    '  application/json  ',
  ])('passes %j', (type) => {
    expect(code(pass([['content-type', type]]))).toBe('passed');
  });

  it.each([
    'text/plain',
    'application/json5',
    'application/jsonp',
    'application/problem+json',
    'application/json; charset=latin1',
    'application/json; charset=utf-8; charset=utf-16',
    'application/json; charset="utf-16"',
    'application/json, application/json',
    'application/json; charset',
    'application/json charset=utf-8',
    'application/json; note="',
    '',
  ])('refuses %j with 415', (type) => {
    expect(code(pass([['content-type', type]]))).toBe('unsupported_media_type');
  });

  it('takes no time over white space between parameters', () => {
    // No more than that: a reader that takes exponential time is to fail here, not to hang.
    const count = 27;
    for (const filler of ['; ', ' ;', ';\t ', ' ', 'a=b; ']) {
      const before = process.threadCpuUsage();
      const type = `application/json; ${filler.repeat(count)}!`;
      expect(code(pass([['content-type', type]]))).toBe('unsupported_media_type');
      expect(process.threadCpuUsage(before).user).toBeLessThan(500_000);
    }
  });

  it('refuses an absent and a doubled Content-Type', () => {
    expect(code(pass([]))).toBe('unsupported_media_type');
    expect(code(pass([json, ['content-type', 'application/json']]))).toBe('unsupported_media_type');
  });
});

describe('guard: contentTypes', () => {
  const types = ['application/a2a+json', 'application/Problem+JSON'];

  it.each([
    'application/a2a+json',
    'Application/A2A+Json',
    'application/a2a+json; charset=utf-8',
    'application/problem+json',
    'application/json',
  ])('passes %j', (type) => {
    expect(code(pass([['content-type', type]], 'POST', 2, types))).toBe('passed');
  });

  it.each([
    'application/a2a+json; charset=latin1',
    'application/a2a+json, application/json',
    'application/a2a+jsonp',
    'application/ld+json',
    'text/plain',
  ])('refuses %j with 415', (type) => {
    expect(code(pass([['content-type', type]], 'POST', 2, types))).toBe('unsupported_media_type');
  });
});

describe('guard: the agent transport’s own push (verification.md §7.25)', () => {
  const push = (type: string, auth: AuthPolicy, types?: readonly string[]): string | undefined => {
    const headers = headerFields([['content-type', type]]);
    expect(guardHeaders('POST', headers, context(types))).toBeUndefined();
    return guardAgentPush(headers, [{ auth } as SenderEntry], context(types))?.code;
  };
  const tokens = ['a-token-of-thirty-two-characters'];
  const own: AuthPolicy = { scheme: 'bearer', tokens, header: 'x-a2a-notification-token' };

  it.each<[string, AuthPolicy, boolean]>([
    ['a token in a header of its own', own, true],
    ['a token in Authorization', { scheme: 'bearer', tokens }, false],
    ['HMAC', { scheme: 'hmac', secrets: tokens }, false],
    ['signatures', { scheme: 'signature' }, false],
  ])('of a sender with %s: %j %s', (_, auth, isTaken) => {
    for (const type of ['application/a2a+json', 'Application/A2A+JSON; charset=utf-8']) {
      expect(push(type, auth)).toBe(isTaken ? undefined : 'unsupported_media_type');
      expect(push(type, auth, ['application/a2a+json'])).toBeUndefined();
    }
    expect(push('application/json', auth)).toBeUndefined();
    expect(push('application/json; charset=utf-8', auth)).toBeUndefined();
  });
});

describe('guard: method, encoding, size', () => {
  it.each(['GET', 'PUT', 'OPTIONS', 'post', ''])('refuses the method %j', (method) => {
    expect(code(pass([json], method))).toBe('method_not_allowed');
  });

  it.each([
    ['identity', 'passed'],
    ['Identity', 'passed'],
    ['gzip', 'unsupported_content_encoding'],
    ['identity, gzip', 'unsupported_content_encoding'],
    ['br', 'unsupported_content_encoding'],
  ])('Content-Encoding %s: %s', (encoding, expected) => {
    expect(code(pass([json, ['content-encoding', encoding]]))).toBe(expected);
  });

  it('counts the bytes of the body', () => {
    expect(code(pass([json], 'POST', 1_000))).toBe('passed');
    expect(code(pass([json], 'POST', 1_001))).toBe('payload_too_large');
  });

  it('refuses a declared length over the limit, and trusts none under it', () => {
    const declared = (value: string) => guardDeclaredLength(headerFields([['content-length', value]]), 1_000);
    expect(declared('1001')?.code).toBe('payload_too_large');
    expect(declared('1000')).toBeUndefined();
    expect(code(pass([json, ['content-length', '2']], 'POST', 1_001))).toBe('payload_too_large');
  });

  it.each([
    [['0'], 0],
    [['1001'], 1_001],
    [[], undefined],
    [[''], undefined],
    [['-1'], undefined],
    [['0x10'], undefined],
    [['2', '2'], undefined],
  ])('reads the Content-Length lines %j as %j', (lines, expected) => {
    const headers = lines.map((line): [string, string] => ['content-length', line]);
    expect(declaredLength(headerFields(headers))).toBe(expected);
  });

  it('checks the method before the content type, and both before the encoding', () => {
    expect(guardHeaders('GET', headerFields([]), context())?.code).toBe('method_not_allowed');
    expect(guardHeaders('POST', headerFields([['content-encoding', 'gzip']]), context())?.code).toBe(
      'unsupported_media_type',
    );
  });
});
