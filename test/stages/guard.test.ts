import { describe, expect, it } from 'vitest';
import type { Alarm } from '../../src/alarms.ts';
import { contentTypes } from '../../src/config/content-types.ts';
import { headerFields } from '../../src/delivery.ts';
import { protocolsFor } from '../../src/protocol.ts';
import {
  declaredLength,
  guard,
  type GuardContext,
  guardDeclaredLength,
  guardHeaders,
} from '../../src/stages/guard.ts';

const alarms: Alarm[] = [];
const context = (types?: readonly string[]): GuardContext => ({
  config: { maxBodyBytes: 1_000, contentTypes: contentTypes(types) },
  protocols: protocolsFor(),
  raiseAlarm: (alarm) => alarms.push(alarm),
});
const pass = (headers: [string, string][], method = 'POST', size = 2, types?: readonly string[]) =>
  guard(
    { method, url: undefined, headers: headerFields(headers), rawBody: new Uint8Array(size) },
    context(types),
  );
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

describe('guard: the alarm for a 415 of a likely delivery', () => {
  const raised = (...headers: [string, string][]): Alarm[] => {
    alarms.length = 0;
    pass(headers);
    return [...alarms];
  };
  const signed: [string, string] = ['signature-input', 'sig1=()'];

  it('of a well-formed type names the option and the type', () => {
    const [alarm] = raised(['content-type', 'application/a2a+json; version=1'], signed);
    expect(alarm?.code).toBe('unsupported_media_type');
    expect(alarm?.message).toContain("contentTypes: ['application/a2a+json']");
  });

  it('of any other type quotes nothing and has no control character', () => {
    const [alarm] = raised(['content-type', "application/x', 'y+json\u001b[31m"], signed);
    expect(alarm?.message).toContain('contentTypes: [application/…+json]');
    expect(alarm?.message).not.toContain('\u001b');
  });

  it('of a compressed body names a proxy as the likely cause', () => {
    const [alarm] = raised(json, ['content-encoding', 'gzip'], ['x-proto-signature', 'sha256=00']);
    expect(alarm?.code).toBe('unsupported_content_encoding');
    expect(alarm?.message).toMatch(/x-proto-signature.*"gzip".*proxy of yours/);
  });

  it('is missing without signature fields, and when the method was wrong', () => {
    expect(raised(['content-type', 'text/plain'])).toEqual([]);
    expect(raised(json, ['content-encoding', 'gzip'], ['authorization', 'Bearer x'])).toEqual([]);
    alarms.length = 0;
    pass([['content-type', 'text/plain'], signed], 'GET');
    expect(alarms).toEqual([]);
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
