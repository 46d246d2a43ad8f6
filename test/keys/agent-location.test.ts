import { describe, expect, test } from 'vitest';
import type { Alarm } from '../../src/index.ts';
import { canonicalTargetUri } from '../../src/auth/rfc9421/index.ts';
import {
  type BrandJson,
  brandJsonKind,
  brandJsonUrl,
  type CopyResult,
  createLocate,
  entriesOf,
  type Location,
  registrableDomain,
  sameRegistrableDomain,
} from '../../src/keys/for-tests.ts';
import { editionFor, type SenderEntry } from '../../src/for-tests.ts';
import { senderEntry } from './setup.ts';

const AGENT = 'https://ads.seller.com/mcp';
const BRAND = 'https://ads.seller.com/.well-known/brand.json';

interface Web {
  readonly alarms: Alarm[];
  readonly loaded: string[];
  /** Sets the file at a URL: a new copy each time. */
  readonly publish: (url: string, json: unknown) => void;
  readonly locate: (sender: SenderEntry) => Promise<Location>;
}

function web(files: Readonly<Record<string, unknown>>, now: () => number = () => 0): Web {
  const copies = new Map<string, BrandJson>();
  const alarms: Alarm[] = [];
  const loaded: string[] = [];
  const publish = (url: string, json: unknown): void => {
    const parsed = brandJsonKind(false).parse(new TextEncoder().encode(JSON.stringify(json)), url);
    if (!parsed.ok) throw new Error(parsed.reason);
    copies.set(url, parsed.value);
  };
  for (const [url, json] of Object.entries(files)) publish(url, json);
  const load = (_kind: unknown, url: string): CopyResult<BrandJson> => {
    loaded.push(url);
    const value = copies.get(url);
    if (value === undefined) return { ok: false, reason: 'answered 404' };
    return { ok: true, copy: { value, fetchedAt: 0, fetchNumber: 1, freshUntil: 1, hardUntil: 1 } };
  };
  const locate = createLocate({
    allowLoopback: false,
    now,
    raiseAlarm: (alarm) => alarms.push(alarm),
  });
  return { alarms, loaded, publish, locate: async (sender) => await locate(sender, load) };
}

const listing = (jwks_uri?: unknown, more: object = {}): object => ({
  agents: [{ url: AGENT, jwks_uri }],
  ...more,
});

describe('step 1: the location of brand.json', () => {
  test('at the host of the agent URL, with its port', async () => {
    const { locate, loaded } = web({});
    await locate(senderEntry(AGENT));
    await locate(senderEntry('https://ads.seller.com:8443/mcp?x#y'));
    await locate(senderEntry('http://ads.seller.com/mcp'));
    expect(loaded).toEqual([BRAND, 'https://ads.seller.com:8443/.well-known/brand.json', BRAND]);
  });

  test('or at the configured URL', async () => {
    const brandJsonUrl = 'https://seller.com/brand.json';
    const { locate } = web({ [brandJsonUrl]: listing('https://keys.example/jwks') });
    expect(await locate(senderEntry(AGENT, { brandJsonUrl }))).toEqual({
      ok: true,
      jwksUri: 'https://keys.example/jwks',
    });
  });

  test('a file that cannot be fetched: undecided, without an alarm about its content', async () => {
    const { locate, alarms } = web({});
    expect(await locate(senderEntry(AGENT))).toEqual({
      ok: false,
      renewable: false,
      reason: `brand.json at ${BRAND}: answered 404`,
    });
    expect(alarms).toEqual([]);
  });

  test('an agent URL that is not a URL: undecided', async () => {
    expect(await web({}).locate(senderEntry('seller'))).toMatchObject({ ok: false });
  });

  test.each([
    [
      'authoritative_location',
      { authoritative_location: 'https://house.example/b.json' },
      'https://house.example/b.json',
    ],
    ['house', { house: 'house.example' }, 'https://house.example/.well-known/brand.json'],
  ])('%s is followed once', async (_name, pointer, target) => {
    const { locate } = web({ [BRAND]: pointer, [target]: listing() });
    expect(await locate(senderEntry(AGENT))).toEqual({
      ok: true,
      jwksUri: 'https://ads.seller.com/.well-known/jwks.json',
    });
  });

  test('no chains: a second pointer is refused, also one to itself', async () => {
    const target = 'https://house.example/.well-known/brand.json';
    const chained = web({ [BRAND]: { house: 'house.example' }, [target]: { house: 'third.example' } });
    expect(await chained.locate(senderEntry(AGENT))).toMatchObject({ ok: false });
    expect(chained.loaded).toEqual([BRAND, target]);
    expect(chained.alarms).toMatchObject([{ code: 'agent_not_listed', sender: AGENT, url: target }]);
    const looped = web({ [BRAND]: { authoritative_location: BRAND } });
    expect(await looped.locate(senderEntry(AGENT))).toMatchObject({ ok: false });
  });
});

describe('a file that is configured at another registrable domain', () => {
  const brandJsonUrl = 'https://house.com/brand.json';
  const sender = senderEntry(AGENT, { brandJsonUrl });

  test.each(['ads.seller.com', 'seller.com', 'SELLER.com'])('must list the agent: %s', async (domain) => {
    const { locate } = web({ [brandJsonUrl]: listing(undefined, { authorized_operators: [{ domain }] }) });
    expect(await locate(sender)).toMatchObject({ ok: true });
  });

  test.each(['com', 'other.com', 'x.ads.seller.com', 'www.seller.com', ''])(
    '%j does not list it',
    async (domain) => {
      const { locate, alarms } = web({
        [brandJsonUrl]: listing(undefined, { authorized_operators: [{ domain }] }),
      });
      expect(await locate(sender)).toMatchObject({ ok: false, renewable: true });
      expect(alarms).toMatchObject([{ code: 'agent_not_listed', sender: AGENT }]);
    },
  );

  test('the list counts in the file with the entries', async () => {
    const target = 'https://third.com/b.json';
    const pointer = { authoritative_location: target };
    const silent = web({ [brandJsonUrl]: pointer, [target]: listing() });
    expect(await silent.locate(sender)).toMatchObject({ ok: false });
    const telling = web({
      [brandJsonUrl]: pointer,
      [target]: listing(undefined, { authorized_operators: [{ domain: 'seller.com' }] }),
    });
    expect(await telling.locate(sender)).toMatchObject({ ok: true });
  });

  test('or in the configured file that points to it', async () => {
    const target = 'https://third.com/b.json';
    const pointer = { authoritative_location: target, authorized_operators: [{ domain: 'seller.com' }] };
    const { locate, publish } = web({ [brandJsonUrl]: pointer, [target]: listing() });
    expect(await locate(sender)).toMatchObject({ ok: true });
    publish(brandJsonUrl, { authoritative_location: target });
    expect(await locate(sender)).toMatchObject({ ok: false });
  });

  test('a file that points back to the agent’s domain needs no list', async () => {
    const { locate } = web({ [brandJsonUrl]: { authoritative_location: BRAND }, [BRAND]: listing() });
    expect(await locate(sender)).toMatchObject({ ok: true });
  });

  test('the agent’s own domain may point anywhere', async () => {
    const target = 'https://house.com/.well-known/brand.json';
    const { locate } = web({ [BRAND]: { house: 'house.com' }, [target]: listing() });
    expect(await locate(senderEntry(AGENT))).toMatchObject({ ok: true });
  });
});

describe('an operator is authorized for a time', () => {
  const brandJsonUrl = 'https://house.example/brand.json';
  const [from, until] = ['2026-03-01T12:00:00Z', '2026-03-02T12:00:00Z'];
  const at = Date.parse(from);
  const sender = senderEntry(AGENT, { brandJsonUrl });
  const house = (operator: object): object =>
    listing(undefined, { house: {}, authorized_operators: [{ domain: 'seller.com', ...operator }] });

  test('within it the file counts, before and after it does not, by one copy', async () => {
    let now = at - 1;
    const { locate } = web({ [brandJsonUrl]: house({ valid_from: from, valid_until: until }) }, () => now);
    const isFound: boolean[] = [];
    for (now of [at - 1, at, Date.parse(until) - 1, Date.parse(until)])
      isFound.push((await locate(sender)).ok);
    expect(isFound).toEqual([false, true, true, false]);
  });

  test('a change while the file is judged counts for the next delivery', async () => {
    for (const [change, ok] of [
      [from, true],
      [until, false],
    ] as const) {
      const changesAt = Date.parse(change);
      for (let early = 1; early <= 8; early += 1) {
        let now = changesAt - early;
        // Each reading of the clock is 1 ms later.
        const clock = (): number => now++;
        const { locate } = web({ [brandJsonUrl]: house({ valid_from: from, valid_until: until }) }, clock);
        await locate(sender);
        now = changesAt + 60_000;
        expect((await locate(sender)).ok).toBe(ok);
      }
    }
  });

  test('a time that cannot be read is none', async () => {
    for (const valid_until of ['soon', 7, {}]) {
      const { locate } = web({ [brandJsonUrl]: house({ valid_until }) });
      expect((await locate(sender)).ok).toBe(false);
    }
  });
});

describe('a place that the seller declares (verification.md §5.1a)', () => {
  const brandJsonUrl = 'https://house.example/brand.json';
  const operators = { authorized_operators: [{ domain: 'seller.com' }] };
  const declared = (keyOrigin?: string): SenderEntry =>
    senderEntry(AGENT, { brandJsonUrl, declared: keyOrigin === undefined ? {} : { keyOrigin } });

  test('only a house’s portfolio speaks for its operators', async () => {
    const portfolio = web({ [brandJsonUrl]: listing(undefined, { ...operators, house: { name: 'House' } }) });
    expect((await portfolio.locate(declared())).ok).toBe(true);
    for (const more of [operators, { house: {} }, {}]) {
      const { locate, alarms } = web({ [brandJsonUrl]: listing(undefined, more) });
      expect((await locate(declared())).ok).toBe(false);
      expect(alarms).toMatchObject([{ code: 'agent_not_listed', url: brandJsonUrl }]);
    }
  });

  test('the host of the JWKS is that of the declared origin', async () => {
    const jwksUri = 'https://keys.seller.com:8443/jwks.json';
    const file = listing(jwksUri, { ...operators, house: {} });
    for (const [origin, ok] of [
      ['https://keys.seller.com:8443', true],
      ['https://KEYS.seller.com:8443/', true],
      ['https://keys.seller.com', false],
      ['https://victim.example', false],
      ['nonsense', false],
    ] as const) {
      const { locate, alarms } = web({ [brandJsonUrl]: file });
      expect((await locate(declared(origin))).ok).toBe(ok);
      expect(alarms.map(({ code }) => code)).toEqual(ok ? [] : ['agent_not_listed']);
    }
  });
});

describe('step 2: the entry', () => {
  test('of edition 3.0 is matched byte for byte; near misses are named', async () => {
    const { locate, alarms } = web({
      [BRAND]: { agents: [{ url: `${AGENT}/` }, { url: 'https://x.com/' }] },
    });
    expect(await locate(senderEntry(AGENT))).toMatchObject({ ok: false, renewable: true });
    expect(alarms).toMatchObject([
      { code: 'agent_not_listed', sender: AGENT, url: BRAND, nearMisses: [`${AGENT}/`] },
    ]);
    expect(alarms[0]?.message).toContain(`it does list ${AGENT}/ (differs in trailing slash)`);
  });

  describe('by canonical URL, as the edition says', () => {
    const KEYS = 'https://ads.seller.com/keys';
    const [none, exact, canonical] = [editionFor(), editionFor('3.0'), editionFor('3.3')];
    const alike = ['HTTPS://ADS.Seller.com/mcp', `${AGENT}#x`, 'https://ads.seller.com:443/./%6Dcp'];
    const found = async (edition: SenderEntry['edition'], ...agents: readonly object[]): Promise<unknown> => {
      const location = await web({ [BRAND]: { agents } }).locate(senderEntry(AGENT, { edition }));
      return location.ok ? location.jwksUri : location.reason;
    };

    test.each(alike)('%s is the agent', async (url) => {
      const entry = { type: 'sales', url, jwks_uri: KEYS };
      expect(await found(none, entry)).toBe(KEYS);
      expect(await found(canonical, entry)).toBe(KEYS);
      for (const name of ['3.0', '3.1', '3.2'] as const)
        expect(await found(editionFor(name), entry)).toContain('has no agent with this url');
    });

    test.each([
      `${AGENT}/`,
      'http://ads.seller.com/mcp',
      'https://ads.seller.com:8443/mcp',
      `${AGENT}?`,
      'https://ads.seller.com@evil.example/mcp',
      'https://ads.seller.com/MCP',
      'https://ads.seller.com/x/%2e%2e/mcp',
      'https://аds.seller.com/mcp',
      'https://ａds.seller.com/mcp',
      '//ads.seller.com/mcp',
      '',
    ])('%j is not', async (url) => {
      const entry = { type: 'sales', url, jwks_uri: KEYS };
      for (const edition of [none, canonical])
        expect(await found(edition, entry)).toContain('has no agent with this url');
    });

    test('without an edition the very URL comes first, whatever is beside it', async () => {
      const [first = ''] = alike;
      const own = { type: 'sales', url: AGENT, jwks_uri: KEYS };
      const other = { type: 'sales', url: first, jwks_uri: 'https://other.example/keys' };
      expect(await found(none, other, own)).toBe(KEYS);
      expect(await found(exact, other, own)).toBe(KEYS);
      expect(await found(canonical, other, own)).toContain('several entries that differ');
    });

    test('entries alike are ambiguous where their type or JWKS differ, and only there', async () => {
      const [first, second] = alike.map((url) => ({ type: 'sales', url, jwks_uri: KEYS }));
      for (const edition of [none, canonical]) {
        expect(await found(edition, { ...first }, { ...second })).toBe(KEYS);
        for (const other of [{ type: 'creative' }, { jwks_uri: 'https://other.example/keys' }])
          expect(await found(edition, { ...first }, { ...second, ...other })).toContain(
            'entries that differ',
          );
      }
    });

    test('among thousands of others: of other hosts with its path, of its host with other paths', async () => {
      const others = [
        ...Array.from({ length: 10_000 }, (_, index) => `https://s${index}.seller.com/mcp`),
        ...Array.from({ length: 10_000 }, (_, index) => `https://ads.seller.com/${index}/agent`),
        ...Array.from({ length: 1_000 }, (_, index) => `https://ads.seller.com/${index}/%6Dcp`),
      ].map((url) => ({ type: 'sales', url, jwks_uri: 'https://other.example/keys' }));
      for (const url of alike) {
        const entry = { type: 'sales', url, jwks_uri: KEYS };
        for (const edition of [none, canonical]) expect(await found(edition, ...others, entry)).toBe(KEYS);
      }
    });

    test.each([
      ['encoded', (index: number) => `https://ads.seller.com/%6Dcp/${index}`],
      ['long', (index: number) => `https://ads.seller.com/${'%2f'.repeat(5_000)}${index}`],
    ])(
      'a file full of what may be spellings of it, %s: unknown, unless it is there itself',
      async (_, spell) => {
        const many: object[] = [];
        for (let bytes = 0, index = 0; bytes < 1_900_000; index += 1) {
          const entry = { url: spell(index) };
          many.push(entry);
          bytes += JSON.stringify(entry).length + 1;
        }
        const own = { url: AGENT, jwks_uri: KEYS };
        expect(await found(none, ...many)).toContain('too many urls that may be spellings');
        expect(await found(none, ...many, own)).toBe(KEYS);
        expect(await found(exact, ...many, own)).toBe(KEYS);
        expect(await found(canonical, ...many, own)).toContain('too many urls that may be spellings');
      },
    );

    test('whatever the spelling, it is what its canonical form says', async () => {
      const pieces = {
        begin: ['https://', 'HTTPS://', 'http://', 'https://u:p@', ''],
        host: ['ads.seller.com', 'ADS.seller.COM', 'ads.seller.com.', 'ads.seller.org', 'xads.seller.com'],
        port: ['', ':443', ':0443', ':8443', ':'],
        path: ['', '/', '/mcp', '/m%63p', '/x/../mcp', '/./mcp', '/mcp/', '/MCP', '/%2e/mcp', '//mcp'],
        end: ['', '?', '?a=b', '#f', '?a=b#f', '#/mcp'],
      };
      const agents = [
        'https://ads.seller.com/mcp',
        'https://ads.seller.com',
        'https://ads.seller.com:8443/mcp?a=b',
      ];
      let taken = 0;
      for (const agentUrl of agents) {
        const wanted = canonicalTargetUri(agentUrl).targetUri;
        const sender = senderEntry(agentUrl, { edition: canonical });
        for (let number = 0; number < 7_500; number += 7) {
          let rest = number;
          const url = Object.values(pieces)
            .map((choices) => {
              const piece = choices[rest % choices.length] ?? '';
              rest = Math.floor(rest / choices.length);
              return piece;
            })
            .join('');
          let isSame = url === agentUrl;
          try {
            isSame ||= !/%2e/i.test(url) && canonicalTargetUri(url).targetUri === wanted;
          } catch {
            // It has no canonical form.
          }
          const { entries } = entriesOf(sender, {
            agents: new Map([[url, [{ jwksUri: KEYS, type: 'sales' }]]]),
            operators: new Map(),
            isHouse: false,
          });
          expect([url, entries?.length]).toEqual([url, isSame ? 1 : 0]);
          if (isSame) taken += 1;
        }
      }
      expect(taken).toBeGreaterThan(20);
    });

    test('one copy is judged for each edition by its own rule', async () => {
      const { locate } = web({ [BRAND]: { agents: [{ url: alike[0], jwks_uri: KEYS }] } });
      for (const [edition, ok] of [
        [none, true],
        [exact, false],
        [canonical, true],
        [exact, false],
      ] as const)
        expect((await locate(senderEntry(AGENT, { edition }))).ok).toBe(ok);
    });
  });

  test('without jwks_uri: the well-known path at the origin, whatever the path of the agent', async () => {
    const url = 'https://ads.seller.com/agents/7/mcp';
    const { locate } = web({ [BRAND]: { agents: [{ url }] } });
    expect(await locate(senderEntry(url))).toEqual({
      ok: true,
      jwksUri: 'https://ads.seller.com/.well-known/jwks.json',
    });
  });

  test('twice with different jwks_uri is ambiguous', async () => {
    const twice = [
      { url: AGENT, jwks_uri: 'https://a.example/' },
      { url: AGENT, jwks_uri: 'https://b.example/' },
    ];
    const { locate, alarms } = web({ [BRAND]: { agents: twice } });
    expect(await locate(senderEntry(AGENT))).toMatchObject({ ok: false });
    expect(alarms).toMatchObject([{ code: 'agent_not_listed', sender: AGENT }]);
  });

  test('twice with one jwks_uri is one entry, the well-known path spelled out too', async () => {
    const spelled = 'https://ads.seller.com/.well-known/jwks.json';
    const { locate } = web({
      [BRAND]: listing(undefined, { house: { agents: [{ url: AGENT, jwks_uri: spelled }] } }),
    });
    expect(await locate(senderEntry(AGENT))).toEqual({ ok: true, jwksUri: spelled });
  });

  test.each(['/jwks.json', '', 7, false, {}])(
    'a jwks_uri that is not an absolute URL: %j',
    async (jwksUri) => {
      const { locate, alarms } = web({ [BRAND]: listing(jwksUri) });
      expect(await locate(senderEntry(AGENT))).toMatchObject({ ok: false });
      expect(alarms).toMatchObject([{ code: 'key_document_invalid', sender: AGENT }]);
    },
  );

  test('a jwks_uri that is null: the well-known path, and one entry with another that has none', async () => {
    const { locate, alarms } = web({ [BRAND]: listing(null, { house: { agents: [{ url: AGENT }] } }) });
    expect(await locate(senderEntry(AGENT))).toEqual({
      ok: true,
      jwksUri: 'https://ads.seller.com/.well-known/jwks.json',
    });
    expect(alarms).toEqual([]);
  });
});

test('alarms are raised once per copy, not per delivery', async () => {
  const { locate, alarms, publish } = web({ [BRAND]: { agents: [] } });
  await Promise.all(Array.from({ length: 10 }, () => locate(senderEntry(AGENT))));
  expect(alarms).toHaveLength(1);
  publish(BRAND, { agents: [] });
  await locate(senderEntry(AGENT));
  expect(alarms).toHaveLength(2);
});

test('a jwks_uri other than the first is reported once for each value', async () => {
  const { locate, alarms, publish } = web({ [BRAND]: listing('https://a.example/') });
  const sender = senderEntry(AGENT);
  await locate(sender);
  await locate(sender);
  expect(alarms).toEqual([]);
  publish(BRAND, listing('https://b.example/'));
  await locate(sender);
  await locate(sender);
  expect(alarms).toMatchObject([
    { code: 'jwks_uri_moved', sender: AGENT, first: 'https://a.example/', jwksUri: 'https://b.example/' },
  ]);
  publish(BRAND, listing('https://a.example/'));
  await locate(sender);
  expect(alarms).toHaveLength(1);
});

test.each([
  [AGENT, true, BRAND],
  [AGENT, false, BRAND],
  ['http://127.0.0.1:4555/mcp', true, 'http://127.0.0.1:4555/.well-known/brand.json'],
  ['http://127.0.0.1:4555/mcp', false, 'https://127.0.0.1:4555/.well-known/brand.json'],
])('the brand.json of %s, where loopback is allowed: %j, is at %s', (agentUrl, allowLoopback, url) => {
  expect(brandJsonUrl(senderEntry(agentUrl), allowLoopback)).toBe(url);
});

test.each([
  ['seller.example', 'seller.example', true],
  ['ads.seller.com', 'brand.seller.com', true],
  ['seller.com', 'ads.seller.com', true],
  ['a.co.uk', 'b.co.uk', false],
  ['x.a.co.uk', 'a.co.uk', true],
  ['a.github.io', 'b.github.io', false],
  ['seller.com', 'seller.org', false],
  ['evilseller.com', 'seller.com', false],
  ['127.0.0.1', '127.0.0.1', true],
  ['127.0.0.1', '127.0.0.2', false],
  ['localhost', 'ads.localhost', false],
  ['com', 'seller.com', false],
])('%s and %s: %s', async (a, b, same) => {
  expect(await sameRegistrableDomain(a, b)).toBe(same);
  expect(await sameRegistrableDomain(b, a)).toBe(same);
});

test('addresses, single labels and public suffixes have no registrable domain', async () => {
  for (const host of ['127.0.0.1', '[::1]', 'localhost', 'co.uk', 'github.io', '']) {
    expect(await registrableDomain(host)).toBeUndefined();
  }
  expect(await registrableDomain('ads.seller.co.uk')).toBe('seller.co.uk');
});
