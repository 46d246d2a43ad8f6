import type { IncomingHttpHeaders } from 'node:http';
import { describe, expect, test } from 'vitest';
import type { DocumentKind, Freshness } from '../../src/keys/document.ts';
import { LEAVE, type Bench, setup, TEXT, textOf } from './cache-bench.ts';
import { MINUTE } from './setup.ts';

interface Revalidating extends Bench {
  /** Headers of each request so far. */
  readonly seen: readonly IncomingHttpHeaders[];
  /** Sets text and validators at `url`: a request that knows them is answered 304, with `extra` headers. */
  readonly publish: (
    text: string,
    validators: Readonly<Record<string, string>>,
    extra?: Readonly<Record<string, string>>,
  ) => void;
}

async function revalidating(): Promise<Revalidating> {
  const bench = await setup();
  const seen: IncomingHttpHeaders[] = [];
  return {
    ...bench,
    seen,
    publish: (text, validators, extra = {}) => {
      bench.server.answer('/doc', (req, res) => {
        seen.push(req.headers);
        const { etag, 'last-modified': modified } = validators;
        const known =
          etag === undefined
            ? modified !== undefined && req.headers['if-modified-since'] === modified
            : req.headers['if-none-match'] === etag;
        if (known) res.writeHead(304, extra).end();
        else res.writeHead(200, { ...validators, ...extra }).end(text);
      });
    },
  };
}

const DATED = { 'last-modified': 'Sun, 01 Mar 2026 11:00:00 GMT' };

describe('a refresh asks whether the copy is still the document (RFC 9110 §13.1)', () => {
  test.each([
    ['ETag', { etag: '"v1"' }],
    ['a weak ETag', { etag: 'W/"v1"' }],
    ['Last-Modified', DATED],
  ])('%s: 304 keeps the copy and renews its life and its hard limit', async (_name, validators) => {
    const { publish, current, advance, fail, fetches, cache, url, seen } = await revalidating();
    publish('one', validators);
    await current();
    const value = cache.cached(TEXT, url);
    advance(6 * MINUTE);
    expect(await current()).toBe('one');
    expect(seen.map((headers) => headers['if-none-match'] ?? headers['if-modified-since'])).toEqual([
      undefined,
      Object.values(validators)[0],
    ]);
    expect(cache.cached(TEXT, url)?.value).toBe(value?.value);
    fail();
    advance(29 * MINUTE);
    expect(await current()).toBe('one');
    expect(fetches()).toBe(3);
  });

  test('what was read from the copy is not read again', async () => {
    let parsed = 0;
    const kind: DocumentKind<{ text: string }> = {
      name: 'counted',
      maxBytes: 100,
      parse: (bytes) => {
        parsed += 1;
        return { ok: true, value: { text: new TextDecoder().decode(bytes) } };
      },
    };
    const { publish, cache, url, advance, seen } = await revalidating();
    publish('one', { etag: '"v1"' });
    const first = await cache.current(kind, url, LEAVE);
    advance(6 * MINUTE);
    const second = await cache.current(kind, url, LEAVE);
    // It was asked for, and confirmed.
    expect(seen.map((headers) => headers['if-none-match'])).toEqual([undefined, '"v1"']);
    expect(parsed).toBe(1);
    expect(second.ok && first.ok && second.copy.value === first.copy.value).toBe(true);
  });

  test('the 304 says how long: its Cache-Control, else what held before (RFC 9111 §4.3.4)', async () => {
    const { publish, current, advance, fetches } = await revalidating();
    publish('one', { etag: '"v1"' }, { 'cache-control': 'max-age=600' });
    await current();
    publish('one', { etag: '"v1"' });
    advance(10 * MINUTE);
    await current();
    advance(7 * MINUTE);
    await current();
    expect(fetches()).toBe(2);
    publish('one', { etag: '"v1"' }, { 'cache-control': 'max-age=60' });
    advance(3 * MINUTE);
    await current();
    publish('two', { etag: '"v2"' });
    advance(MINUTE);
    expect(await current()).toBe('two');
  });

  test('a document that changed comes whole, and its own validators count from then on', async () => {
    const { publish, current, advance, seen } = await revalidating();
    publish('one', { etag: '"v1"' });
    await current();
    publish('two', { etag: '"v2"' });
    advance(6 * MINUTE);
    expect(await current()).toBe('two');
    advance(6 * MINUTE);
    expect(await current()).toBe('two');
    expect(seen.map((headers) => headers['if-none-match'])).toEqual([undefined, '"v1"', '"v2"']);
  });

  test('validators of a broken document are not kept: the copy in force has its own', async () => {
    const { publish, current, advance, seen } = await revalidating();
    publish('one', { etag: '"v1"' });
    await current();
    publish('bad', { etag: '"bad"' });
    advance(6 * MINUTE);
    expect(await current()).toBe('one');
    advance(MINUTE);
    expect(await current()).toBe('one');
    expect(seen.map((headers) => headers['if-none-match'])).toEqual([undefined, '"v1"', '"v1"']);
  });

  test('a 304 without a copy is a failure', async () => {
    const { server, current, alarms } = await setup();
    server.answer('/doc', (_req, res) => res.writeHead(304).end());
    expect(await current()).toBe('none: answered 304 to a request without conditions');
    expect(alarms).toMatchObject([{ code: 'key_fetch_failing' }]);
  });

  test('a 304 to a server that gave nothing to ask by is a failure too, and the copy stays', async () => {
    const { server, say, current, advance, alarms } = await setup();
    say('one');
    await current();
    server.answer('/doc', (_req, res) => res.writeHead(304).end());
    advance(6 * MINUTE);
    expect(await current()).toBe('one');
    expect(alarms).toMatchObject([{ code: 'key_fetch_failing' }]);
  });

  test('validators that no honest server sends are not sent back', async () => {
    const { publish, current, advance, seen } = await revalidating();
    publish('one', { etag: `"${'x'.repeat(1000)}"` });
    await current();
    advance(6 * MINUTE);
    await current();
    expect(seen.map((headers) => headers['if-none-match'])).toEqual([undefined, undefined]);
  });
});

describe('a refetch beyond the life of a copy', () => {
  const fresh = (order: number): Freshness<string> => ({
    hasWanted: () => false,
    isFreshEnough: (copy) => copy.fetchNumber > order && copy.isRevalidated !== true,
  });

  test('asks for the whole document, from its origin: validators can be as coarse as a second', async () => {
    const { publish, current, cache, url, seen } = await revalidating();
    publish('one', { etag: '"v1"' });
    await current();
    // Replaced within the second that its validator tells.
    publish('two', { etag: '"v1"' });
    expect(textOf(await cache.renewed(TEXT, url, fresh(cache.fetchCount()), LEAVE))).toBe('two');
    expect(seen[1]).toMatchObject({ 'cache-control': 'no-cache' });
    expect(seen[1]).not.toHaveProperty('if-none-match');
  });

  test('a copy that a 304 confirmed after the arrival is not decisive: the document is fetched', async () => {
    const { publish, current, advance, cache, url, fetches } = await revalidating();
    publish('one', { etag: '"v1"' });
    await current();
    const order = cache.fetchCount();
    advance(6 * MINUTE);
    await current();
    expect(cache.cached(TEXT, url)).toMatchObject({ isRevalidated: true });
    publish('two', { etag: '"v1"' });
    expect(textOf(await cache.renewed(TEXT, url, fresh(order), LEAVE))).toBe('two');
    expect(fetches()).toBe(3);
  });
});

describe('a copy that would spoil the one in force', () => {
  const careful: DocumentKind<string> = {
    ...TEXT,
    name: 'careful',
    rejectsUpdate: (next, inForce) => (next.length < inForce.length ? 'it is shorter' : undefined),
  };

  test('is refused with an alarm; where nothing is in force it is taken', async () => {
    const { cache, url, say, advance, alarms } = await setup();
    say('one');
    await cache.current(careful, url, LEAVE);
    say('1');
    advance(6 * MINUTE);
    expect(textOf(await cache.current(careful, url, LEAVE))).toBe('one');
    expect(alarms).toMatchObject([{ code: 'key_document_invalid', document: 'careful' }]);
    advance(25 * MINUTE);
    expect(textOf(await cache.current(careful, url, LEAVE))).toBe('1');
  });
});
