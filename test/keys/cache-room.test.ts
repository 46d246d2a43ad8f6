import { expect, test } from 'vitest';
import type { KeyFetch } from '../../src/index.ts';
import {
  createDocumentCache,
  type DocumentKind,
  KEY_LIMITS,
  unlimitedBudget,
} from '../../src/keys/for-tests.ts';
import { MINUTE, publicJwk, senderEntry, setup, SILENT, START } from './setup.ts';

const BUDGET = unlimitedBudget('https://seller.example/mcp');
const TEXT: DocumentKind<string> = {
  name: 'text',
  maxBytes: 1_000_000,
  parse: (bytes) => ({ ok: true, value: new TextDecoder().decode(bytes) }),
};

/** A cache before servers that answer every URL with so many bytes. */
function cacheOf({ bytes = 1_000, maxBytes = KEY_LIMITS.maxBytes ?? 0, status = 200 } = {}) {
  let time = START;
  let asked = 0;
  const transport: KeyFetch = async () => {
    asked += 1;
    return new Response('x'.repeat(bytes), { status });
  };
  const cache = createDocumentCache({
    fetch: transport,
    allowLoopback: false,
    deadlineMs: 1_000,
    now: () => time,
    limits: { ...KEY_LIMITS, maxBytes },
    raiseAlarm: () => undefined,
    logger: SILENT,
  });
  return { cache, advance: (ms: number) => (time += ms), asked: () => asked };
}

const urlOf = (index: number): string => `https://host-${index}.example/brand.json`;

test.each([200, 500])(
  'a day of documents that are elsewhere every minute leaves those within their hard limit (%i)',
  async (status) => {
    const { cache, advance } = cacheOf({ bytes: 262_144, status });
    let most = 0;
    for (let minute = 0; minute < 24 * 60; minute += 1) {
      await cache.current(TEXT, urlOf(minute), BUDGET);
      advance(MINUTE);
      most = Math.max(most, cache.held().documents);
    }
    expect(most).toBeLessThanOrEqual(31);
    const { documents, bytes } = cache.held();
    expect(bytes).toBe(status === 200 ? documents * 262_144 * 6 : 0);
  },
);

test('documents together are held up to the bound; the least recently used go, and are fetched again', async () => {
  const { cache, asked } = cacheOf({ bytes: 1_000, maxBytes: 10 * 6_000 });
  for (let index = 0; index < 10; index += 1) await cache.current(TEXT, urlOf(index), BUDGET);
  expect(cache.held()).toEqual({ documents: 10, bytes: 60_000 });
  await cache.current(TEXT, urlOf(0), BUDGET);
  await cache.current(TEXT, urlOf(10), BUDGET);
  expect(cache.held()).toEqual({ documents: 10, bytes: 60_000 });
  expect([cache.cached(TEXT, urlOf(0))?.value.length, cache.cached(TEXT, urlOf(1))]).toEqual([
    1_000,
    undefined,
  ]);
  await cache.current(TEXT, urlOf(1), BUDGET);
  expect(asked()).toBe(12);
  cache.forget(TEXT, urlOf(1));
  expect(cache.held()).toEqual({ documents: 9, bytes: 54_000 });
});

test('what is held beside documents counts, and leaves them at least half', async () => {
  const { cache } = cacheOf({ bytes: 1_000, maxBytes: 10 * 6_000 });
  for (let index = 0; index < 10; index += 1) await cache.current(TEXT, urlOf(index), BUDGET);
  cache.reserve(TEXT, 'https://list.example/', 20_000);
  expect(cache.held()).toEqual({ documents: 6, bytes: 56_000 });
  cache.reserve(TEXT, 'https://list.example/', 12_000);
  await cache.current(TEXT, urlOf(20), BUDGET);
  await cache.current(TEXT, urlOf(21), BUDGET);
  await cache.current(TEXT, urlOf(22), BUDGET);
  expect(cache.held()).toEqual({ documents: 8, bytes: 60_000 });
  cache.reserve(TEXT, 'https://list.example/', 1_000_000);
  expect(cache.held()).toEqual({ documents: 5, bytes: 1_030_000 });
  cache.reserve(TEXT, 'https://list.example/', 0);
  expect(cache.held()).toEqual({ documents: 5, bytes: 30_000 });
});

test('one document that is larger than the bound is held until the next comes', async () => {
  const { cache } = cacheOf({ bytes: 1_000, maxBytes: 5_000 });
  for (const index of [0, 1]) await cache.current(TEXT, urlOf(index), BUDGET);
  expect([cache.held(), cache.cached(TEXT, urlOf(1))?.value.length]).toEqual([
    { documents: 1, bytes: 6_000 },
    1_000,
  ]);
});

test('a seller that moves its brand.json every minute for a day keeps its key', async () => {
  const sender = senderEntry('https://seller.example/mcp');
  const jwk = publicJwk('k');
  let minute = 0;
  const transport: KeyFetch = async (url) => {
    const { hostname, pathname } = new URL(url);
    if (pathname.endsWith('jwks.json')) return Response.json({ keys: [jwk] });
    const headers = { 'cache-control': 'max-age=60' };
    if (hostname !== 'seller.example')
      return Response.json({ agents: [{ url: sender.agentUrl }] }, { headers });
    return Response.json(
      { authoritative_location: `https://house-${minute}.example/brand.json` },
      { headers },
    );
  };
  const { keys, now, advance, alarmsOf } = await setup({ fetch: transport, allowLoopback: false });
  for (minute = 0; minute < 24 * 60; minute += 1) {
    const { candidates } = await keys.find('k', { senders: [sender], arrivedAt: now() });
    expect(candidates).toHaveLength(1);
    advance(MINUTE);
  }
  const moved = alarmsOf('jwks_uri_moved');
  expect(moved.length).toBeGreaterThan(1_000);
  expect(moved[0]).toMatchObject({ sender: sender.agentUrl, first: 'https://house-0.example/brand.json' });
  expect(moved[0]?.message).toContain('brand.json points to https://house-');
});
