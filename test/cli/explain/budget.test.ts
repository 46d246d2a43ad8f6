import { describe, expect, it } from 'vitest';
import {
  type Budget,
  createBudget,
  CUT_SHORT,
  type Finding,
  searchBody,
  urlForms,
} from '../../../src/cli/for-tests.ts';
import { signHmac } from '../../../src/sender/sign.ts';
import { BODY, bytes, captured, explained, NOW, signed, URL_GIVEN } from './captures.ts';

const MIB = 1024 * 1024;

interface Searched {
  readonly findings: readonly Finding[];
  readonly tries: number;
  readonly hashed: number;
}

/** What a search for `signedText` in a body comes to, and how much it hashed. */
function searched(body: string, budget: Budget, signedText?: string): Searched {
  let tries = 0;
  let hashed = 0;
  const wanted = signedText === undefined ? undefined : Buffer.from(signedText);
  const matches = (made: Uint8Array): boolean => {
    if (!budget.take(made.length)) return false;
    tries++;
    hashed += made.length;
    return wanted?.equals(made) ?? false;
  };
  return { findings: searchBody(bytes(body), matches, '11', budget), tries, hashed };
}

const nested = (levels: number): string => `${'[1,'.repeat(levels)}1${']'.repeat(levels)}`;

/** JSON of many small members, about so many bytes. */
const listOf = (size: number): string =>
  JSON.stringify(
    Array.from({ length: Math.ceil(size / 40) }, (_, i) => ({ b: `Caf\u00e9 ${i}`, a: '<x/y>' })),
  );

describe('explain: limits of the search', () => {
  it('stays within its budget, and says when it was cut short', () => {
    const budget = createBudget(4 * MIB);
    const { findings, hashed } = searched(listOf(200_000), budget);
    expect(hashed).toBeGreaterThan(0);
    expect(hashed).toBeLessThanOrEqual(4 * MIB);
    expect(budget.left()).toBeGreaterThanOrEqual(0);
    expect(findings).toMatchObject([{ cause: 'body-other', proved: false }]);
    expect(findings[0]?.says).toContain(CUT_SHORT);
  });

  it('gives the same result each time', () => {
    const [first, second] = [1, 2].map(() => searched(listOf(200_000), createBudget(16 * MIB)));
    expect(first).toEqual(second);
  });

  it('tries every form of an ordinary body without mentioning a budget', () => {
    const { findings, tries } = searched(BODY, createBudget());
    expect(tries).toBeGreaterThan(2 * 192);
    expect(findings[0]?.says).not.toContain(CUT_SHORT);
  });

  it('tries the forms of a body of 1 MiB that differ in two things', () => {
    const arrived = listOf(MIB - 64 * 1024);
    const made = JSON.parse(arrived) as { a: string; b: string }[];
    const signedText = JSON.stringify(made.map(({ a, b }) => ({ a, b }))).replaceAll('\u00e9', '\\u00e9');
    const { findings } = searched(arrived, createBudget(), signedText);
    expect(findings.map(({ cause, proved }) => [cause, proved])).toEqual([
      ['body-sorted', true],
      ['body-ascii-escaped', true],
    ]);
  });

  it('does not serialise a body that is nested deeper than 64 levels', () => {
    const indented = JSON.stringify(JSON.parse(nested(64)), undefined, 4);
    expect(searched(nested(64), createBudget(), indented).findings).toMatchObject([
      { cause: 'body-indented', proved: true },
    ]);
    for (const levels of [65, 400, 100_000]) {
      const { findings, tries } = searched(nested(levels), createBudget());
      expect(tries).toBeLessThan(12);
      expect(findings[0]?.says).toContain(CUT_SHORT);
    }
  });

  it('stops within a form that is far larger than the body', () => {
    const wide = `${'['.repeat(63)}[${'1,'.repeat(100_000)}1]${']'.repeat(63)}`;
    const { hashed } = searched(wide, createBudget(16 * MIB));
    expect(hashed).toBeLessThanOrEqual(16 * MIB);
  });

  it('does not guess which bytes U+FFFD replaced, or whether it replaced any', () => {
    const { findings, tries } = searched('{"a":"\uFFFD\uFFFD"}', createBudget());
    expect(tries).toBeLessThan(1_000);
    expect(findings).toMatchObject([
      { cause: 'body-utf8-replaced', proved: false, says: expect.stringContaining('may also have sent') },
    ]);
  });

  it('proves another change of a body in which the seller sent U+FFFD itself', () => {
    const { findings } = searched('{"a": "\uFFFD"}', createBudget(), '{"a":"\uFFFD"}');
    expect(findings).toMatchObject([{ cause: 'body-compact', proved: true }]);
  });

  it('does not take invalid UTF-8 for replaced bytes', () => {
    const latin1 = Uint8Array.of(...Buffer.from('{"a":"\u00e9"}', 'latin1'));
    const [finding] = searchBody(latin1, () => false, '11', createBudget());
    expect(finding).toMatchObject({ cause: 'body-other', says: expect.stringContaining('not UTF-8') });
  });

  it('removes trailing white space of a body with much of it inside', () => {
    const body = `{"a":1${' '.repeat(MIB)}}`;
    expect(searched(`${body} \t\r\n `, createBudget(), body).findings).toMatchObject([
      { cause: 'body-trailing-newline', proved: true },
    ]);
  });

  it('reads strings of many megabytes', () => {
    const body = `{"a":"${'b'.repeat(20 * MIB)}", "c":"\\""}`;
    const { findings } = searched(body, createBudget(), body.replace('", "', '","'));
    expect(findings).toMatchObject([{ cause: 'body-compact', proved: true }]);
  });

  it('says that a body with white space no serialiser writes was serialised again', () => {
    const { findings } = searched('{"a" :1,  "b":2}', createBudget(), '{"a":1,"b":2}');
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

  it('searches a long URL within half of the budget, and the body with the rest', async () => {
    const long = `https://buyer.example${'/a'.repeat(10_000)}`;
    const delivery = await signed({ url: 'https://unheard.example/of', body: BODY });
    const capture = captured({ ...delivery, body: bytes(`${BODY}\n\n`) });
    const { findings } = await explained(capture, { url: long }, createBudget(2 * MIB));
    expect(findings).toMatchObject([
      { cause: 'unknown', step: '10', proved: false },
      { cause: 'body-trailing-newline', step: '11', proved: true },
    ]);
    expect(findings[0]?.says).toContain(CUT_SHORT);
  });

  it('says for an HMAC too that its search was cut short', async () => {
    const secret = 's-'.repeat(16);
    const body = `{"a":${nested(70)}}`;
    const delivery = signHmac({ url: URL_GIVEN, body, secret: 't-'.repeat(16), now: () => NOW });
    const sender = { agentUrl: 'https://seller.example/mcp', auth: { hmac: { secret } } };
    const { findings } = await explained(captured(delivery), { senders: [sender] });
    expect(findings[0]?.says).toContain(CUT_SHORT);
  });
});
