import type { IncomingHttpHeaders } from 'node:http';
import { describe, expect, test } from 'vitest';
import type { CopyResult, DocumentKind, FetchBudget, Freshness } from '../../src/keys/for-tests.ts';
import { type Bench, LEAVE, setup, TEXT, textOf } from './cache-bench.ts';
import { gate, sends } from './key-server.ts';
import { onWorkerd } from '../support/workerd.ts';
import { MINUTE, PATIENT, START } from './setup.ts';

describe('life of a cached document', () => {
  test('a copy is used for its Cache-Control life without another fetch, and not longer', async () => {
    const { say, fail, current, advance, fetches } = await setup();
    say('one', { 'cache-control': 'max-age=600' });
    expect(await current()).toBe('one');
    fail();
    advance(7 * MINUTE);
    expect(await current()).toBe('one');
    expect(fetches()).toBe(1);
    say('two');
    advance(3 * MINUTE);
    expect(await current()).toBe('two');
    expect(fetches()).toBe(2);
  });

  test('a clock that was set back does not prolong an old copy: it is fetched again', async () => {
    const { say, current, advance } = await setup();
    say('one');
    await current();
    say('two');
    advance(-10 * MINUTE);
    expect(await current()).toBe('two');
  });

  test('a failed refresh keeps serving the last copy until its hard limit, then there is none', async () => {
    const { say, fail, current, advance, cache, url } = await setup();
    say('one');
    await current();
    fail();
    advance(30 * MINUTE - 1);
    expect(await current()).toBe('one');
    expect(cache.cached(TEXT, url)?.value).toBe('one');
    advance(1);
    expect(cache.cached(TEXT, url)).toBeUndefined();
    expect(await current()).toBe('none: the last fetch failed (answered 500)');
    advance(MINUTE);
    expect(await current()).toBe('none: answered 500');
  });

  test('the hard limit is an option', async () => {
    const { say, fail, current, advance } = await setup({ hardLimitMs: 7 * MINUTE });
    say('one');
    await current();
    fail();
    advance(7 * MINUTE);
    expect(await current()).toBe('none: answered 500');
  });

  test('a slow refresh delays no caller that has a copy, and runs once', async () => {
    const { say, current, advance, server, fetches } = await setup({ patienceMs: 1 });
    say('one');
    await current();
    const held = gate(sends('two'));
    server.answer('/doc', held.answerer);
    advance(6 * MINUTE);
    expect(await Promise.all([current(), current()])).toEqual(['one', 'one']);
    expect(await current()).toBe('one');
    // Nobody waited for it to arrive.
    await server.asked('/doc', 2);
    expect(fetches()).toBe(2);
    held.open();
  });
});

describe('near the end of its life a copy is refreshed in the background', () => {
  const TEN_MINUTES = { 'cache-control': 'max-age=600' };

  test('the first use after 80 % begins it and is answered from the copy; later uses have the new one', async () => {
    const { say, current, advance, server, fetches } = await setup({}, { random: () => 0.999 });
    say('one', TEN_MINUTES);
    await current();
    const held = gate(sends('two', TEN_MINUTES));
    server.answer('/doc', held.answerer);
    advance(8 * MINUTE - 1000);
    expect(await current()).toBe('one');
    expect(fetches()).toBe(1);
    advance(1000);
    expect(await current()).toBe('one');
    await server.asked('/doc', 2);
    // Held open by the server: nobody waits for it, and nobody begins another.
    expect(await current()).toBe('one');
    expect(fetches()).toBe(2);
    held.open();
    await expect.poll(current, PATIENT).toBe('two');
    expect(fetches()).toBe(2);
  });

  test('refreshes are spread, so that replicas started together do not fetch together', async () => {
    const refreshedAt = async (random: () => number): Promise<number> => {
      const { cache, say, current, advance } = await setup({}, { random });
      say('one', TEN_MINUTES);
      await current();
      const begun = cache.fetchCount();
      for (let second = 1; second <= 600; second += 1) {
        advance(1000);
        await current();
        if (cache.fetchCount() > begun) return second;
      }
      return 601;
    };
    const [early, late] = [await refreshedAt(() => 0), await refreshedAt(() => 0.999)];
    expect([early, late]).toEqual([432, 480]);
  });

  test('only a copy that is used is refreshed, not one that is inspected', async () => {
    const { cache, url, say, current, advance, server } = await setup();
    say('one', TEN_MINUTES);
    await current();
    advance(9 * MINUTE);
    expect(cache.cached(TEXT, url)?.value).toBe('one');
    expect(cache.fetchCount()).toBe(1);
    cache.noteUse(TEXT, url, LEAVE.seller);
    await server.asked('/doc', 2);
  });

  test('a failed refresh leaves the copy in force, raises an alarm and is repeated with back-off', async () => {
    const { say, fail, current, advance, fetches, alarms } = await setup();
    say('one', TEN_MINUTES);
    await current();
    fail();
    advance(9 * MINUTE);
    expect(await current()).toBe('one');
    await expect.poll(() => alarms.length, PATIENT).toBe(1);
    expect(await current()).toBe('one');
    expect(fetches()).toBe(2);
    say('two');
    advance(10_000);
    expect(await current()).toBe('one');
    await expect.poll(current, PATIENT).toBe('two');
  });

  test('a document that names its next issue is not refreshed early', async () => {
    const { cache, url, say, advance } = await setup();
    const kind = { ...TEXT, name: 'issued', dueAt: (_value: string, began: number) => began + 10 * MINUTE };
    say('one');
    await cache.current(kind, url, LEAVE);
    advance(10 * MINUTE - 1);
    expect(await cache.current(kind, url, LEAVE)).toMatchObject({ ok: true });
    expect(cache.fetchCount()).toBe(1);
  });
});

describe('on workerd each request fetches for itself', () => {
  test('two cold requests make two fetches; a result of one serves later requests', async () => {
    onWorkerd();
    const { current, server, say, fetches } = await setup();
    const [first, second] = [gate(sends('one')), gate(sends('one'))];
    server.answer('/doc', first.answerer);
    const one = current();
    await server.asked('/doc', 1);
    server.answer('/doc', second.answerer);
    const two = current();
    await server.asked('/doc', 2);
    // The first is never answered, as where its request has died: the second does not hang on it.
    second.open();
    expect(await two).toBe('one');
    say('three');
    expect(await current()).toBe('one');
    expect(fetches()).toBe(2);
    first.open();
    expect(await one).toBe('one');
  });

  test('one request begins the refresh, not each', async () => {
    onWorkerd();
    const { cache, current, server, say, advance } = await setup();
    say('one', { 'cache-control': 'max-age=600' });
    await current();
    const held = gate(sends('two'));
    server.answer('/doc', held.answerer);
    advance(9 * MINUTE);
    for (let count = 0; count < 20; count += 1) expect(await current()).toBe('one');
    expect(cache.fetchCount()).toBe(2);
    await server.asked('/doc', 2);
    // It died with its request: another one may try, after the time that one fetch can take.
    say('three');
    advance(10_000);
    expect(await current()).toBe('one');
    await expect.poll(current, PATIENT).toBe('three');
    held.open();
  });

  test('the cooldown holds there too: a flood makes one refetch', async () => {
    onWorkerd();
    const { cache, url, say, current, server, fetches } = await setup();
    say('one');
    await current();
    const held = gate(sends('one'));
    server.answer('/doc', held.answerer);
    const order = cache.fetchCount();
    const wish: Freshness<string> = {
      hasWanted: () => false,
      isFreshEnough: (copy) => copy.fetchNumber > order,
    };
    const asking = Array.from({ length: 50 }, () => cache.renewed(TEXT, url, wish, LEAVE));
    await server.asked('/doc', 2);
    held.open();
    const answers = await Promise.all(asking);
    expect(answers.filter(({ ok }) => ok)).toHaveLength(1);
    expect(fetches()).toBe(2);
  });
});

describe('one fetch per URL at a time', () => {
  test('for any number of callers', async () => {
    const { current, server, fetches } = await setup();
    const held = gate(sends('one'));
    server.answer('/doc', held.answerer);
    const asking = Array.from({ length: 500 }, () => current());
    await server.asked('/doc', 1);
    held.open();
    expect(new Set(await Promise.all(asking))).toEqual(new Set(['one']));
    expect(fetches()).toBe(1);
  });

  test('a refetch joins the fetch that is in flight', async () => {
    const { cache, url, current, server, fetches } = await setup();
    const held = gate(sends('one'));
    server.answer('/doc', held.answerer);
    const first = current();
    await server.asked('/doc', 1);
    const wish: Freshness<string> = { hasWanted: (copy) => copy.value === 'one', isFreshEnough: () => false };
    const second = cache.renewed(TEXT, url, wish, LEAVE);
    held.open();
    expect([await first, textOf(await second)]).toEqual(['one', 'one']);
    expect(fetches()).toBe(1);
  });

  test('a fetch that the runtime dropped silently is not waited for forever', async () => {
    const { cache, url, current, advance, server, say, fetches } = await setup();
    const held = gate(sends('one'));
    server.answer('/doc', held.answerer);
    const dead = cache.current(TEXT, url, LEAVE);
    await server.asked('/doc', 1);
    say('two');
    advance(MINUTE);
    expect(await current()).toBe('two');
    expect(fetches()).toBe(2);
    held.open();
    await dead;
    // The older answer came later: it does not push the newer one out.
    expect(await current()).toBe('two');
  });
});

describe('failures', () => {
  test('are cached with back-off, at most 60 s', async () => {
    const { fail, current, advance, fetches } = await setup();
    fail();
    const asked: number[] = [];
    for (let second = 0; second < 200; second += 1) {
      const before = fetches();
      await current();
      if (fetches() > before) asked.push(second);
      advance(1000);
    }
    expect(asked).toEqual([0, 1, 3, 7, 15, 31, 63, 123, 183]);
  });

  test('are forgotten with the first success', async () => {
    const { fail, say, current, advance } = await setup();
    fail();
    await current();
    advance(1000);
    say('one');
    expect(await current()).toBe('one');
    fail();
    advance(6 * MINUTE);
    await current();
    say('two');
    advance(1000);
    expect(await current()).toBe('two');
  });

  test('raise an alarm that says since when', async () => {
    const { fail, current, advance, alarms, url } = await setup();
    fail();
    await current();
    advance(1000);
    await current();
    expect(alarms).toMatchObject([
      { code: 'key_fetch_failing', url, document: 'text', failures: 1, failingSince: START },
      { code: 'key_fetch_failing', url, failures: 2, failingSince: START },
    ]);
    expect(alarms[0]?.message).toMatch(/^text at http.*: .+\. There is no earlier copy\.$/);
  });

  test('a broken later copy leaves the previous one in force', async () => {
    const { say, current, advance, alarms } = await setup();
    say('one');
    await current();
    say('bad two');
    advance(6 * MINUTE);
    expect(await current()).toBe('one');
    expect(alarms).toMatchObject([{ code: 'key_document_invalid' }]);
  });

  test('a broken first copy gives none', async () => {
    const { say, current, alarms } = await setup();
    say('bad');
    expect(await current()).toBe('none: begins with bad');
    expect(alarms).toMatchObject([{ code: 'key_document_invalid' }]);
  });
});

describe('a refetch beyond the life of a copy', () => {
  const wantsTwo: Freshness<string> = {
    hasWanted: (copy) => copy.value === 'two',
    isFreshEnough: () => true,
  };
  const nothing: Freshness<string> = { hasWanted: () => false, isFreshEnough: () => false };

  test('is not made when the copy has the wanted entry or proves its absence', async () => {
    const { cache, url, say, current, fetches } = await setup();
    say('one');
    await current();
    expect(textOf(await cache.renewed(TEXT, url, { ...nothing, hasWanted: () => true }, LEAVE))).toBe('one');
    expect(textOf(await cache.renewed(TEXT, url, { ...nothing, isFreshEnough: () => true }, LEAVE))).toBe(
      'one',
    );
    expect(fetches()).toBe(1);
  });

  test('is made at most once in 30 s, whatever its result', async () => {
    const { cache, url, say, fail, current, advance, fetches } = await setup();
    const later = (): Promise<CopyResult<string>> => {
      const order = cache.fetchCount();
      return cache.renewed(
        TEXT,
        url,
        { hasWanted: () => false, isFreshEnough: (copy) => copy.fetchNumber > order },
        LEAVE,
      );
    };
    say('one');
    await current();
    expect(textOf(await later())).toBe('one');
    advance(29_999);
    expect(await later()).toEqual({ ok: false, reason: 'fetched again lately, cooling down' });
    expect(fetches()).toBe(2);
    advance(1);
    fail();
    expect(await later()).toEqual({ ok: false, reason: 'answered 500' });
    advance(29_999);
    expect(await later()).toMatchObject({ ok: false });
    expect(fetches()).toBe(3);
    advance(1);
    say('two');
    expect(textOf(await later())).toBe('two');
  });

  test('does not apply past the hard limit: the next fetch is a first one', async () => {
    const { cache, url, say, fail, current, advance } = await setup();
    say('one', { 'cache-control': 'max-age=1800' });
    await current();
    advance(30 * MINUTE - 5_000);
    fail();
    expect(await cache.renewed(TEXT, url, nothing, LEAVE)).toMatchObject({ ok: false });
    advance(6_000);
    say('two');
    expect(textOf(await cache.renewed(TEXT, url, wantsTwo, LEAVE))).toBe('two');
  });

  test('counts a first fetch that lacked the wanted entry', async () => {
    const { cache, url, say, fetches } = await setup();
    say('one');
    expect(textOf(await cache.renewed(TEXT, url, wantsTwo, LEAVE))).toBe('one');
    expect(await cache.renewed(TEXT, url, nothing, LEAVE)).toMatchObject({ ok: false });
    expect(fetches()).toBe(1);
  });

  test('does not count a first fetch that had it: the next miss is fetched', async () => {
    const { cache, url, say, fetches } = await setup();
    say('two');
    expect(textOf(await cache.renewed(TEXT, url, wantsTwo, LEAVE))).toBe('two');
    say('three');
    const wish: Freshness<string> = { ...nothing, hasWanted: (copy) => copy.value === 'three' };
    expect(textOf(await cache.renewed(TEXT, url, wish, LEAVE))).toBe('three');
    expect(fetches()).toBe(2);
  });

  test('has a cooldown that a clock set back does not prolong', async () => {
    const { cache, url, say, current, advance } = await setup();
    say('one');
    await current();
    await cache.renewed(TEXT, url, { ...nothing, isFreshEnough: (copy) => copy.fetchNumber > 1 }, LEAVE);
    advance(-60 * MINUTE);
    say('two');
    expect(
      textOf(
        await cache.renewed(TEXT, url, { ...nothing, hasWanted: (copy) => copy.value === 'two' }, LEAVE),
      ),
    ).toBe('two');
  });

  test('is repeated when the joined fetch began too early to decide', async () => {
    const { cache, url, current, server, say, fetches } = await setup();
    const held = gate(sends('one'));
    server.answer('/doc', held.answerer);
    const first = current();
    await server.asked('/doc', 1);
    const order = cache.fetchCount();
    const second = cache.renewed(
      TEXT,
      url,
      { hasWanted: () => false, isFreshEnough: (copy) => copy.fetchNumber > order },
      LEAVE,
    );
    say('two');
    held.open();
    expect([await first, textOf(await second)]).toEqual(['one', 'two']);
    expect(fetches()).toBe(2);
  });
});

const NO_LEAVE: FetchBudget = { ...LEAVE, mayFetch: () => false };

test('a caller without permission begins no fetch and is told so', async () => {
  const { cache, url, say, current, advance, fetches } = await setup();
  say('one');
  expect(await cache.current(TEXT, url, NO_LEAVE)).toMatchObject({ ok: false });
  expect(fetches()).toBe(0);
  await current();
  advance(6 * MINUTE);
  expect(textOf(await cache.current(TEXT, url, NO_LEAVE))).toBe('one');
  expect(fetches()).toBe(1);
});

test('the number of documents is bounded: the least recently used is dropped', async () => {
  const { cache, server } = await setup({ maxDocuments: 3 });
  const get = async (path: string): Promise<void> => {
    server.answer(path, sends(path));
    await cache.current(TEXT, `${server.origin}${path}`, LEAVE);
  };
  for (const path of ['/a', '/b', '/c', '/a', '/d']) await get(path);
  const held = ['/a', '/b', '/c', '/d'].filter(
    (path) => cache.cached(TEXT, `${server.origin}${path}`) !== undefined,
  );
  expect(held).not.toContain('/b');
  expect(held).toContain('/a');
});

test('a document that is being fetched is not dropped, so that it is not fetched twice', async () => {
  const { cache, url, server, current, fetches } = await setup({ maxDocuments: 1 });
  const held = gate(sends('one'));
  server.answer('/doc', held.answerer);
  const first = current();
  await server.asked('/doc', 1);
  server.answer('/other', sends('other'));
  await cache.current(TEXT, `${server.origin}/other`, LEAVE);
  const second = cache.current(TEXT, url, LEAVE);
  held.open();
  expect([await first, textOf(await second)]).toEqual(['one', 'one']);
  expect(fetches()).toBe(1);
});

test('after stop() cached documents serve, running fetches are aborted, and no fetch begins', async () => {
  const { cache, url, server, say, current, advance, alarms, fetches } = await setup();
  say('one');
  await current();
  const held = gate(sends('two'));
  server.answer('/other', held.answerer);
  const running = cache.current(TEXT, `${server.origin}/other`, LEAVE);
  await server.asked('/other', 1);
  cache.stop();
  expect(await running).toEqual({ ok: false, reason: 'stopped' });
  advance(6 * MINUTE);
  expect(textOf(await cache.current(TEXT, url, LEAVE))).toBe('one');
  expect(fetches()).toBe(1);
  expect(alarms).toEqual([]);
});

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

describe('a refresh is conditional (RFC 9110 §13.1)', () => {
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

  test('what was parsed from the copy is not parsed again', async () => {
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

  test('the life after a 304 is its Cache-Control, else the earlier one (RFC 9111 §4.3.4)', async () => {
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

  test('a changed document is fetched whole, and its own validators count from then on', async () => {
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

  test('validators of a broken document are dropped: the copy in force keeps its own', async () => {
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

  test('a 304 from a server without validators is a failure too, and the copy stays', async () => {
    const { server, say, current, advance, alarms } = await setup();
    say('one');
    await current();
    server.answer('/doc', (_req, res) => res.writeHead(304).end());
    advance(6 * MINUTE);
    expect(await current()).toBe('one');
    expect(alarms).toMatchObject([{ code: 'key_fetch_failing' }]);
  });

  test('malformed validators are not sent back', async () => {
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

  test('fetches the whole document from its origin, as validators may be too coarse', async () => {
    const { publish, current, cache, url, seen } = await revalidating();
    publish('one', { etag: '"v1"' });
    await current();
    // Replaced within the second that its validator tells.
    publish('two', { etag: '"v1"' });
    expect(textOf(await cache.renewed(TEXT, url, fresh(cache.fetchCount()), LEAVE))).toBe('two');
    expect(seen[1]).toMatchObject({ 'cache-control': 'no-cache' });
    expect(seen[1]).not.toHaveProperty('if-none-match');
  });

  test('is made although a 304 confirmed the copy after the arrival', async () => {
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

describe('a copy beside which something of the one in force serves on', () => {
  const careful: DocumentKind<string> = {
    ...TEXT,
    name: 'careful',
    keeps: (next, { value, hardUntil }, now) =>
      next.length < value.length && now < hardUntil
        ? { value: `${next}+${value}`, warning: 'it is shorter', mixedUntil: hardUntil }
        : undefined,
  };

  test('is taken with an alarm, and fetched whole again; if none is in force it is taken as it is', async () => {
    const { cache, url, say, server, advance, alarms, fetches } = await setup();
    say('one');
    await cache.current(careful, url, LEAVE);
    server.answer('/doc', sends('1', { etag: '"v2"' }));
    advance(6 * MINUTE);
    expect(textOf(await cache.current(careful, url, LEAVE))).toBe('1+one');
    expect(alarms).toMatchObject([{ code: 'key_document_invalid', document: 'careful' }]);
    expect(cache.cached(careful, url)).not.toHaveProperty('validators');
    expect(fetches()).toBe(2);
    advance(31 * MINUTE);
    expect(textOf(await cache.current(careful, url, LEAVE))).toBe('1');
  });
});
