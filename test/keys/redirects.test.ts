import { describe, expect, test } from 'vitest';
import type { KeyFetch } from '../../src/index.ts';
import { fetchDocument } from '../../src/keys/for-tests.ts';

const FIRST = 'https://publisher.example/.well-known/adagents.json';

/** What comes of a fetch of `FIRST`, and what was asked for, where each URL redirects to the next. */
async function redirected(
  hops: readonly (readonly [from: string, to: string | undefined, status?: number])[],
  { first = FIRST, redirects = true, allowLoopback = false } = {},
) {
  const asked: string[] = [];
  const transport: KeyFetch = async (url) => {
    asked.push(url);
    const hop = hops.find(([from]) => from === url);
    if (hop === undefined) return Response.json({});
    const [, location, status = 302] = hop;
    return new Response(null, { status, headers: location === undefined ? {} : { location } });
  };
  const result = await fetchDocument(
    { fetch: transport, allowLoopback, deadlineMs: 5_000 },
    { url: first, maxBytes: 1_000, redirects },
    new AbortController(),
  );
  return { asked, said: result.ok ? (result.at ?? 'as asked') : result.reason };
}

const within = (path: string): string => `https://www.publisher.example/${path}`;

describe('redirects of a document that may have them (verification.md §5.10)', () => {
  test.each([301, 302, 303, 307, 308])('are followed within the registrable domain: %i', async (status) => {
    expect(await redirected([[FIRST, within('a'), status]])).toEqual({
      asked: [FIRST, within('a')],
      said: within('a'),
    });
  });

  test('are followed three times and no more, a loop too', async () => {
    const chain = (length: number) =>
      Array.from(
        { length },
        (_, hop) => [hop === 0 ? FIRST : within(`${hop}`), within(`${hop + 1}`)] as const,
      );
    expect((await redirected(chain(3))).said).toBe(within('3'));
    const four = await redirected(chain(4));
    expect([four.said, four.asked.length]).toEqual(['redirected more than 3 times', 4]);
    expect((await redirected([[FIRST, FIRST]])).asked).toHaveLength(4);
  });

  test('are relative to where they come from', async () => {
    const { said } = await redirected([
      [FIRST, '//cdn.publisher.example/x/y'],
      ['https://cdn.publisher.example/x/y', '../z'],
    ]);
    expect(said).toBe('https://cdn.publisher.example/z');
  });

  test.each([
    ['another registrable domain', 'https://other.example/adagents.json', 'to another registrable domain'],
    ['a domain that ends alike', 'https://evilpublisher.example/', 'to another registrable domain'],
    ['http', 'http://publisher.example/adagents.json', 'https'],
    ['a private address', 'https://127.0.0.1/adagents.json', ''],
    ['user information', 'https://a:b@www.publisher.example/', ''],
    ['another scheme', 'data:application/json,{}', ''],
    ['no URL', 'https://', 'not a URL'],
    ['nowhere', undefined, 'not a URL'],
  ])('are refused to %s, and nothing is asked there', async (_what, location, reason) => {
    const { asked, said } = await redirected([[FIRST, location]]);
    expect(asked).toEqual([FIRST]);
    expect(said).toMatch(/^redirected/);
    expect(said).toContain(reason);
  });

  test('are refused between customers of one hosting service', async () => {
    const first = 'https://one.github.io/.well-known/adagents.json';
    const { asked } = await redirected([[first, 'https://two.github.io/adagents.json']], { first });
    expect(asked).toEqual([first]);
  });

  test('are measured by the domain that was asked first', async () => {
    const hops = [
      [FIRST, within('a')],
      [within('a'), 'https://other.example/'],
    ] as const;
    expect((await redirected(hops)).said).toContain('another registrable domain');
  });

  test('from https to http are refused in development too; from http they are not', async () => {
    const [from, to] = ['https://localhost/a', 'http://localhost/b'];
    const options = { allowLoopback: true };
    expect((await redirected([[from, to]], { ...options, first: from })).said).toContain(
      'from https to http',
    );
    expect((await redirected([[to, from]], { ...options, first: to })).said).toBe(from);
  });

  test('of any other document are not followed', async () => {
    expect(await redirected([[FIRST, within('a')]], { redirects: false })).toEqual({
      asked: [FIRST],
      said: 'answered with a redirect (302)',
    });
  });
});
