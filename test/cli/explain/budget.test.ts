import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { CUT_SHORT, type Finding, searchBody, urlForms } from '../../../src/cli/for-tests.ts';
import { signHmac } from '../../../src/sender/sign.ts';
import { BODY, bytes, captured, explained, NOW, signed, URL_GIVEN } from './captures.ts';

const MIB = 1024 * 1024;

interface Searched {
  readonly findings: readonly Finding[];
  readonly tries: number;
  readonly hashed: number;
}

/** What a search for `signedText` in a body comes to, and how much it hashed. */
function searched(body: string, signedText?: string, most?: number): Searched {
  let tries = 0;
  let hashed = 0;
  const wanted = signedText === undefined ? undefined : Buffer.from(signedText);
  const isSigned = (made: Uint8Array): boolean => {
    tries++;
    hashed += made.length;
    return wanted?.equals(made) ?? false;
  };
  return { findings: searchBody(bytes(body), isSigned, '11', most), tries, hashed };
}

const nested = (levels: number): string => `${'[1,'.repeat(levels)}1${']'.repeat(levels)}`;

/** JSON of many small members, about so many bytes. */
const listOf = (size: number): string =>
  JSON.stringify(
    Array.from({ length: Math.ceil(size / 40) }, (_, i) => ({ b: `Caf\u00e9 ${i}`, a: '<x/y>' })),
  );

describe('explain: limits of the search', () => {
  it('stays within its limit, and says when it was cut short', () => {
    const { findings, hashed } = searched(listOf(200_000), undefined, 4 * MIB);
    expect(hashed).toBeGreaterThan(0);
    expect(hashed).toBeLessThanOrEqual(4 * MIB);
    expect(findings).toMatchObject([{ cause: 'body-other', proved: false }]);
    expect(findings[0]?.says).toContain(CUT_SHORT);
  });

  it('gives the same result each time', () => {
    const [first, second] = [1, 2].map(() => searched(listOf(200_000), undefined, 16 * MIB));
    expect(first).toEqual(second);
  });

  it('tries every form of an ordinary body without mentioning a limit', () => {
    const { findings, tries } = searched(BODY);
    expect(tries).toBeGreaterThan(2 * 25);
    expect(findings[0]?.says).not.toContain(CUT_SHORT);
  });

  it('tries what a serialiser makes of a body of 1 MiB', () => {
    const arrived = listOf(MIB - 64 * 1024);
    const made = JSON.parse(arrived) as { a: string; b: string }[];
    const signedText = JSON.stringify(made.map(({ a, b }) => ({ a, b }))).replaceAll('\u00e9', '\\u00e9');
    const { findings } = searched(arrived, signedText);
    expect(findings.map(({ cause, proved }) => [cause, proved])).toEqual([
      ['body-sorted', true],
      ['body-ascii-escaped', true],
    ]);
  });

  it('serialises a body however deeply it is nested, as long as that is not far larger', () => {
    for (const levels of [64, 400]) {
      const indented = JSON.stringify(JSON.parse(nested(levels)), undefined, 4);
      expect(searched(nested(levels), indented).findings).toMatchObject([
        { cause: 'body-indented', proved: true },
      ]);
    }
    const deep = nested(100_000);
    expect(searched(deep, deep.replaceAll(',', ', ')).findings).toMatchObject([
      { cause: 'body-spaced', proved: true },
    ]);
    expect(searched(deep, undefined, 64 * MIB).findings[0]?.says).toContain(CUT_SHORT);
  });

  it('parses no body of more than a million levels, which takes gigabytes', () => {
    const parse = vi.spyOn(JSON, 'parse');
    onTestFinished(() => parse.mockRestore());
    for (const [text, isParsed] of [
      ['['.repeat(1_000_001), false],
      [`{"a":"${'['.repeat(1_000_001)}"}`, true],
      ['[]'.repeat(1_000_001), true],
    ] as const) {
      parse.mockClear();
      searchBody(bytes(text), () => false, '11', 0);
      expect(parse.mock.calls.some(([given]) => given === text)).toBe(isParsed);
    }
  });

  it('stops within a form that is far larger than the body', () => {
    const wide = `${'['.repeat(63)}[${'1,'.repeat(100_000)}1]${']'.repeat(63)}`;
    const { findings, hashed } = searched(wide, undefined, 64 * MIB);
    expect(hashed).toBeLessThanOrEqual(64 * MIB);
    expect(findings[0]?.says).toContain(CUT_SHORT);
  });

  it('does not guess which bytes U+FFFD replaced, or whether it replaced any', () => {
    const { findings, tries } = searched('{"a":"\uFFFD\uFFFD"}');
    expect(tries).toBeLessThan(1_000);
    expect(findings).toMatchObject([
      {
        cause: 'body-utf8-replaced',
        proved: false,
        says: expect.stringContaining('The original bytes are lost'),
      },
    ]);
  });

  it('proves another change of a body in which the seller sent U+FFFD itself', () => {
    const { findings } = searched('{"a": "\uFFFD"}', '{"a":"\uFFFD"}');
    expect(findings).toMatchObject([{ cause: 'body-compact', proved: true }]);
  });

  it('does not take invalid UTF-8 for replaced bytes', () => {
    const latin1 = Uint8Array.of(...Buffer.from('{"a":"\u00e9"}', 'latin1'));
    const [finding] = searchBody(latin1, () => false, '11');
    expect(finding).toMatchObject({ cause: 'body-other', says: expect.stringContaining('not UTF-8') });
  });

  it('removes trailing white space of a body with much of it inside', () => {
    const body = `{"a":1${' '.repeat(MIB)}}`;
    expect(searched(`${body} \t\r\n `, body).findings).toMatchObject([
      { cause: 'body-trailing-newline', proved: true },
    ]);
  });

  it('reads strings of many megabytes', () => {
    const body = `{"a":"${'b'.repeat(20 * MIB)}", "c":"\\""}`;
    const { findings } = searched(body, body.replace('", "', '","'));
    expect(findings).toMatchObject([{ cause: 'body-compact', proved: true }]);
  });

  it('says that a body with white space no serialiser writes was serialised again', () => {
    const { findings } = searched('{"a" :1,  "b":2}', '{"a":1,"b":2}');
    expect(findings).toMatchObject([{ cause: 'body-compact', proved: true }]);
  });

  it('removes at most 32 segments of a path', () => {
    const path = '/a'.repeat(10_000);
    const parts = { scheme: 'https', authority: 'buyer.example', path, query: '' };
    const forms = urlForms('path', { parts, headers: new Map(), target: path, captured: undefined });
    const shorter = forms.filter(({ text }) => text.length < path.length - 1);
    expect(shorter.map(({ text }) => (path.length - text.length) / 2)).toEqual(
      Array.from({ length: 32 }, (_, i) => i + 1),
    );
  });

  it('tries four lines of X-Forwarded-Prefix, however many a request has', () => {
    const prefixes = Array.from({ length: 10_000 }, (_, i) => `/p${i}`);
    const parts = { scheme: 'https', authority: 'buyer.example', path: '/a', query: '' };
    const headers = new Map([['x-forwarded-prefix', prefixes]]);
    const forms = urlForms('path', { parts, headers, target: '/a', captured: undefined });
    expect(forms.filter(({ text }) => text.startsWith('/p')).map(({ text }) => text)).toEqual([
      '/p0/a',
      '/p1/a',
      '/p2/a',
      '/p3/a',
      '/prod/a',
      '/production/a',
      '/public/a',
      '/proto/a',
    ]);
  });

  it('searches a long URL and the body, and of a far longer one the body alone, and says so', async () => {
    for (const [segments, isTried] of [
      [5_000, true],
      [20_000, false],
    ] as const) {
      const long = `https://buyer.example${'/a'.repeat(segments)}`;
      const delivery = await signed({ url: `${long}/b`, body: BODY });
      const capture = captured({ ...delivery, body: bytes(`${BODY}\n\n`) }, { target: '/b' });
      const { findings } = await explained(capture, { url: `${long}/b/` });
      expect(findings).toMatchObject([
        { cause: isTried ? 'trailing-slash' : 'unknown', step: '10', proved: isTried },
        { cause: 'body-trailing-newline', step: '11', proved: true },
      ]);
      expect(findings[0]?.says.includes(CUT_SHORT)).toBe(!isTried);
    }
  });

  it('tries no text of a header that no request has', async () => {
    const long = `/${'a'.repeat(40_000)}`;
    const delivery = await signed({ url: URL_GIVEN.replace('/webhooks', long) });
    const { findings } = await explained(
      captured(delivery, {
        target: '/webhooks/proto',
        headers: [...Object.entries(delivery.headers), ['X-Original-URL', `${long}/proto?tenant=a%2Cb&n=1`]],
      }),
    );
    expect(findings).toMatchObject([{ cause: 'unknown', step: '10', proved: false }]);
  });

  it('says of a body that has the HMAC under no secret what it says of one that has no digest', async () => {
    const secret = 's-'.repeat(16);
    const delivery = signHmac({ url: URL_GIVEN, body: BODY, secret, now: () => NOW });
    const sender = { agentUrl: 'https://seller.example/mcp', auth: { hmac: { secret } } };
    const cut = captured({ ...delivery, body: delivery.body.subarray(0, 100) });
    const { findings } = await explained(cut, { senders: [sender] });
    expect(findings.filter(({ step }) => step === 'hmac')).toMatchObject([
      { cause: 'unknown', proved: false },
      { cause: 'body-cut', proved: false },
    ]);
  });
});
