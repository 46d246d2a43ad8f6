import { describe, expect, test } from 'vitest';
import { type BrandJson, brandJsonKind, type Parsed } from '../../src/keys/for-tests.ts';

const AT = 'https://seller.example/.well-known/brand.json';

function parse(json: unknown, allowLoopback = false, at = AT): Parsed<BrandJson> {
  const text = typeof json === 'string' ? json : JSON.stringify(json);
  return brandJsonKind(allowLoopback).parse(new TextEncoder().encode(text), at);
}

function brand(json: unknown, allowLoopback = false, at = AT): BrandJson {
  const parsed = parse(json, allowLoopback, at);
  if (!parsed.ok) throw new Error(parsed.reason);
  return parsed.value;
}

const agent = (url: string, jwks_uri?: unknown): object => ({ url, jwks_uri });

test('entries are read from top-level agents[], house.agents[] and brands[].agents[]', () => {
  const { agents, next } = brand({
    agents: [agent('https://a.example/')],
    house: { agents: [agent('https://b.example/', 'https://b.example/keys')] },
    brands: [
      { name: 'x' },
      { agents: [agent('https://c.example/')] },
      { agents: [agent('https://a.example/', 1)] },
    ],
  });
  expect(next).toBeUndefined();
  expect([...agents].map(([url, entries]) => [url, entries.map(({ jwksUri }) => jwksUri)])).toEqual([
    ['https://a.example/', [undefined, 1]],
    ['https://b.example/', ['https://b.example/keys']],
    ['https://c.example/', [undefined]],
  ]);
});

test('at most 2 MiB, and 32 levels', () => {
  expect(brandJsonKind(false).maxBytes).toBe(2_097_152);
  const deep = (levels: number): string =>
    `{"agents":[],"x":${'['.repeat(levels - 1)}${']'.repeat(levels - 1)}}`;
  expect(parse(deep(32)).ok).toBe(true);
  expect(parse(deep(33))).toEqual({ ok: false, reason: 'the body nests deeper than 32 levels' });
});

test('entries without a url are passed over; a member named __proto__ does no harm', () => {
  const { agents } = brand(
    '{"agents":[null,1,"x",[],{},{"url":5},{"__proto__":{"url":"https://a.example/"}},{"url":"ok"}]}',
  );
  expect([...agents.keys()]).toEqual(['ok']);
});

describe('a file that only points elsewhere', () => {
  test('authoritative_location', () => {
    expect(brand({ $schema: 's', authoritative_location: 'https://HOUSE.example/b.json' }).next).toBe(
      'https://house.example/b.json',
    );
  });

  test('a house domain means its well-known path', () => {
    expect(brand({ house: 'house.example', note: 'n' }).next).toBe(
      'https://house.example/.well-known/brand.json',
    );
  });

  test('the pointer is not followed where the file lists agents itself', () => {
    expect(brand({ house: 'house.example', agents: [] }).next).toBeUndefined();
    expect(brand({ authoritative_location: 'https://h.example/', brands: [] }).next).toBeUndefined();
    expect(brand({ authoritative_location: 'https://h.example/', house: {} }).next).toBeUndefined();
  });

  test('a house is fetched over https, and over http only in development from a file fetched over http', () => {
    const house = { house: '127.0.0.1:3000' };
    const at = 'http://127.0.0.1:2000/.well-known/brand.json';
    expect(brand(house, true, at).next).toBe('http://127.0.0.1:3000/.well-known/brand.json');
    expect(brand(house, true).next).toBe('https://127.0.0.1:3000/.well-known/brand.json');
    expect(brand(house, false, at).next).toBe('https://127.0.0.1:3000/.well-known/brand.json');
  });

  test.each([
    '',
    'https://house.example',
    'house.example/x',
    'u@house.example',
    'a b',
    'house.example?',
    'h:99999',
    7,
    false,
  ])('a house that is no domain makes the file invalid: %j', (house) => {
    expect(parse({ house })).toEqual({ ok: false, reason: 'house is not a domain' });
  });

  test.each(['', '/b.json', 'house.example', 7, false])(
    'an authoritative_location that is not an absolute URL makes the file invalid: %j',
    (authoritative_location) => {
      expect(parse({ authoritative_location })).toEqual({
        ok: false,
        reason: 'authoritative_location is not an absolute URL',
      });
    },
  );
});

test('a file with an empty list is valid', () => {
  for (const json of [{}, { agents: [] }, { house: {} }, { brands: [] }]) {
    expect(brand(json)).toMatchObject({ agents: new Map(), operators: new Map() });
  }
});

describe('null for an optional member counts as absent', () => {
  const a = agent('https://a.example/');

  test.each([
    ['beside agents[]', { agents: [a], house: null, brands: null, authoritative_location: null }],
    ['beside house.agents[]', { agents: null, house: { agents: [a] }, brands: null }],
    [
      'beside brands[].agents[]',
      { agents: null, house: null, brands: [null, { agents: null }, { agents: [a] }] },
    ],
    ['in the house', { agents: [a], house: { agents: null } }],
    ['a jwks_uri', { agents: [agent('https://a.example/', null)] }],
  ])('%s', (_where, json) => {
    expect([...brand(json).agents]).toEqual([['https://a.example/', [{}]]]);
  });

  test('a pointer is followed where everything else is null', () => {
    const location = 'https://h.example/b.json';
    const nothing = { agents: null, brands: null };
    expect(brand({ ...nothing, house: null, authoritative_location: location }).next).toBe(location);
    expect(brand({ ...nothing, house: 'h.example', authoritative_location: null }).next).toBe(
      'https://h.example/.well-known/brand.json',
    );
  });

  test('a file with nothing else lists nothing and points nowhere', () => {
    const json = { agents: null, brands: null, house: null, authoritative_location: null };
    expect(brand(json)).toMatchObject({ agents: new Map(), operators: new Map() });
  });
});

test.each([
  [{ agents: {} }, 'agents is not an array'],
  [{ house: { agents: 'x' } }, 'agents is not an array'],
  [{ brands: [{ agents: false }] }, 'agents is not an array'],
  [{ agents: '' }, 'agents is not an array'],
  [{ brands: {} }, 'brands is not an array'],
  [{ brands: 0 }, 'brands is not an array'],
  ['<html></html>', 'the body is not JSON'],
  ['[]', 'the body is not a JSON object'],
  ['{"agents":[],"agents":[]}', 'an object in the body has a name twice: "agents"'],
])('a broken file is refused: %j', (json, reason) => {
  expect(parse(json)).toEqual({ ok: false, reason });
});

test('authorized_operators[].domain, as URLs write hosts', () => {
  const { operators } = brand({
    agents: [],
    authorized_operators: [
      { domain: 'Ops.example' },
      { domain: 'dots.example.' },
      { domain: 'bücher.example' },
      { domain: 'bü cher/x' },
      { domain: 5 },
      'x',
      null,
      { brands: [] },
    ],
  });
  expect([...operators.keys()]).toEqual([
    'ops.example',
    'dots.example',
    'xn--bcher-kva.example',
    'bü cher/x',
  ]);
  expect(brand({ agents: [], authorized_operators: 'ops.example' }).operators.size).toBe(0);
});

test('authorized_operators[] keep their times, and one whose time cannot be read counts for nothing', () => {
  const day = Date.parse('2026-03-01T00:00:00Z');
  const timed = (domain: string, valid_from: unknown, valid_until: unknown): object => ({
    domain,
    valid_from,
    valid_until,
  });
  const { operators, isHouse } = brand({
    house: { name: 'House' },
    brands: [],
    authorized_operators: [
      timed('two.example', '2026-03-01T00:00:00Z', '2026-03-01'),
      timed('two.example', null, null),
      timed('odd.example', 'soon', null),
      timed('odd.example', 1, null),
      timed('odd.example', null, '2026-02-30'),
    ],
  });
  expect([...operators]).toEqual([['two.example', [{ from: day, until: day + 86_400_000 }, {}]]]);
  expect(isHouse).toBe(true);
  expect(brand({ agents: [], house: 'house.example' }).isHouse).toBe(false);
});
