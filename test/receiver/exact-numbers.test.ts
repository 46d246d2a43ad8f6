import { describe, expect, it } from 'vitest';
import { canonicalJson, inexactNumbers, parseStrictObject } from '../../src/codec/for-tests.ts';
import type { EditionName } from '../../src/index.ts';
import { payloads, said, testReceiver } from './setup.ts';

const bytesOf = (text: string): Uint8Array => new TextEncoder().encode(text);
const textOf = (bytes: Uint8Array): string => new TextDecoder().decode(bytes);

function read(text: string): { readonly paths: readonly string[]; readonly canonical: string } {
  const json = parseStrictObject(bytesOf(text));
  if (!json.ok) throw new Error(json.detail);
  const found = inexactNumbers(json.text, json.value);
  return {
    paths: (found?.paths ?? []).map((path) => path.join('.')),
    canonical: canonicalJson(json.value, { inexact: found?.numbers }),
  };
}

describe('numbers that a double changes', () => {
  it.each([
    '9007199254740993',
    '-9007199254740993',
    '7615917337495251231',
    '0.1000000000000000055511151231257827',
    '9007199254740993.0',
    '90071992547409930e-1',
    '1e400',
    '-1E+400',
    '1e-400',
    '123456789012345678e5',
  ])('%s is found', (token) => {
    expect(read(`{"a":${token}}`).paths).toEqual(['a']);
    expect(read(`{ "a" :\n ${token} }`).paths).toEqual(['a']);
    expect(read(`{"a":[0,{"b":${token}}]}`).paths).toEqual(['a.1.b']);
  });

  it.each([
    '0',
    '-0',
    '0.0000000000000000',
    '9007199254740992',
    '9007199254740994',
    '1e21',
    '1E+2',
    '0.1',
    '5e-324',
    '1.7976931348623157e308',
    '100000000000000000000',
    '0.30000000000000004',
    '1000000000000000000000.000',
    '1e0000000000000000001',
    '1E-0000000000000000000',
    '0e-9999999999999999999',
  ])('%s is not', (token) => {
    expect(read(`{"a":${token},"b":[${token}]}`).paths).toEqual([]);
  });

  it('is not a string, a name, or something in a string', () => {
    expect(
      read(String.raw`{"9007199254740993":"9007199254740993","a":": 9007199254740993","b\"":", 1e400"}`)
        .paths,
    ).toEqual([]);
  });

  it('stands in members of any name', () => {
    const names = ['__proto__', 'constructor', String.raw`a\"b`, String.raw`\u0061`, ''];
    const text = `{${names.map((name) => `"${name}":9007199254740993`).join(',')}}`;
    expect(read(text).paths).toEqual(['__proto__', 'constructor', 'a"b', 'a', '']);
  });

  it('is written exactly where it is compared, alike for each spelling of one value', () => {
    const of = (token: string): string => read(`{"a":[${token}],"b":${token}}`).canonical;
    const same = [
      '9007199254740993',
      '9007199254740993.00',
      '900719925474099300e-2',
      '0.9007199254740993E16',
    ];
    expect(new Set(same.map(of)).size).toBe(1);
    const others = [
      '9007199254740992',
      '9007199254740993.5',
      '-9007199254740993',
      '"~9007199254740993e0"',
      '1e400',
      '1e401',
    ];
    expect(new Set([same[0] ?? '', ...others].map(of)).size).toBe(others.length + 1);
  });

  it('costs time in proportion to the text', () => {
    const zeros = '0'.repeat(200_000);
    for (const token of [`1${zeros}1`, `0.${zeros}1`, `1e${zeros}1`, `1${zeros}`, `-1.${zeros}e-${zeros}`]) {
      expect(read(`{"a":${token}}`).paths.length).toBeLessThanOrEqual(1);
    }
  });
});

describe('an event with such a number', () => {
  const payload = { ...payloads.tool('completed'), result: { media_buy_id: 'ID' } };
  const body = (id: string): string => JSON.stringify(payload).replace('"ID"', id);

  it('has the bytes as they were sent, and a warning that names the member', async () => {
    const { deliver, seen } = await testReceiver();
    const sent = body('9007199254740993');
    expect(said(await deliver(sent))).toBe('accepted 200');
    const event = seen[0]?.event ?? expect.fail();
    expect(textOf(event.rawBody)).toBe(sent);
    expect(event.warnings).toMatchObject([
      { code: 'inexact_number', message: expect.stringContaining('at result.media_buy_id') as string },
    ]);
    expect(Object.keys(event)).not.toContain('rawBody');
  });

  it.each<readonly [EditionName, string]>([
    ['3.1', 'duplicate 200'],
    ['3.2', 'refused payload_changed 409'],
  ])('is another payload if the number is another one (edition %s)', async (edition, answer) => {
    const { deliver, alarms, seen } = await testReceiver({ edition });
    expect(said(await deliver(body('9007199254740993')))).toBe('accepted 200');
    expect(said(await deliver(body('9007199254740992')))).toBe(answer);
    expect(said(await deliver(body('9007199254740993')))).toBe('duplicate 200');
    expect(alarms.map(({ code }) => code)).toEqual(['payload_changed']);
    expect(seen).toHaveLength(1);
  });

  it('is the same payload in another spelling (edition 3.2)', async () => {
    const { deliver, alarms } = await testReceiver({ edition: '3.2' });
    await deliver(body('9007199254740993'));
    expect(said(await deliver(body('9007199254740993.0')))).toBe('duplicate 200');
    expect(alarms).toEqual([]);
  });
});

it('every event has its bytes, whatever is added to it', async () => {
  const { deliver, seen } = await testReceiver({
    resultSchemas: {
      create_media_buy: { '~standard': { version: 1, vendor: 'test', validate: (value) => ({ value }) } },
    },
  });
  for (const payload of [payloads.tool('completed'), payloads.tool('working'), payloads.agent('completed')]) {
    const sent = JSON.stringify(payload);
    await deliver(sent);
    expect(textOf(seen.at(-1)?.event.rawBody ?? new Uint8Array())).toBe(sent);
  }
});
