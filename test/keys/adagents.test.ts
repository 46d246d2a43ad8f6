import { describe, expect, test } from 'vitest';
import { ADAGENTS, type AdAgents } from '../../src/keys/publisher-pins.ts';
import type { Parsed } from '../../src/keys/document.ts';
import { publicJwk } from './setup.ts';

const AT = 'https://publisher.example/.well-known/adagents.json';
const AGENT = 'https://seller.example/mcp';

function parse(json: unknown): Parsed<AdAgents> {
  const text = typeof json === 'string' ? json : JSON.stringify(json);
  return ADAGENTS.parse(new TextEncoder().encode(text), AT);
}

/** The kids that are pinned for an agent, or what is wrong, or undefined where nothing is pinned. */
function pinned(json: unknown, agentUrl = AGENT): string[] | string | undefined {
  const parsed = parse(json);
  if (!parsed.ok) return `refused: ${parsed.reason}`;
  const set = parsed.value.pinned.get(agentUrl);
  return typeof set === 'object' ? [...set.jwks.keys()] : set;
}

const entry = (signing_keys: unknown, url = AGENT): object => ({
  url,
  authorized_for: 'all',
  ...(signing_keys !== undefined && { signing_keys }),
});
const file = (...authorized_agents: readonly unknown[]): object => ({ authorized_agents });

test('signing_keys[] of the entry for the agent, by url byte for byte', () => {
  const json = file(
    entry([publicJwk('a'), publicJwk('b')]),
    entry([publicJwk('other')], `${AGENT}/`),
    entry([publicJwk('third')], 'https://Seller.example/mcp'),
  );
  expect(pinned(json)).toEqual(['a', 'b']);
  expect(pinned(json, `${AGENT}/`)).toEqual(['other']);
  expect(pinned(json, 'https://SELLER.example/mcp')).toBeUndefined();
});

test.each([
  ['no signing_keys', file(entry(undefined))],
  ['null', file(entry(null))],
  ['an empty list', file(entry([]))],
  ['no entry for the agent', file(entry([publicJwk('a')], 'https://other.example/'))],
  ['no agents at all', file()],
  ['a catalogue without authorized_agents', { properties: [] }],
  ['entries that are none', file(null, 1, 'x', [], {}, { url: 5, signing_keys: [publicJwk('a')] })],
])('pins nothing: %s', (_what, json) => {
  expect(pinned(json)).toBeUndefined();
});

test('several entries for one agent: the union; one key twice counts once', () => {
  const shared = publicJwk('shared');
  const json = file(entry([publicJwk('a'), shared]), entry([]), entry([shared, publicJwk('b')]));
  expect(pinned(json)).toEqual(['a', 'shared', 'b']);
});

describe('a broken list is told apart from none', () => {
  const { kid: _kid, ...nameless } = publicJwk('x');
  test.each([
    ['not an array', { a: 1 }, 'signing_keys is not an array'],
    ['text', 'a', 'signing_keys is not an array'],
    ['an entry that is no JWK', [publicJwk('a'), 'x'], 'signing_keys has an entry that is not a JWK'],
    ['a key without kid', [nameless], 'signing_keys has a key without a kid'],
    ['an empty kid', [publicJwk('')], 'signing_keys has a key without a kid'],
    ['one kid for two keys', [publicJwk('a'), publicJwk('a')], 'two keys have one kid'],
    ['a private half', [{ ...publicJwk('a'), d: 'x' }], 'a key is published with its private half'],
    ['too many', Array.from({ length: 1001 }, () => 0), 'signing_keys has more than 1000 keys'],
  ])('%s', (_what, keys, flaw) => {
    expect(pinned(file(entry(keys)))).toBe(flaw);
  });

  test('beside a sound one for the same agent too', () => {
    expect(pinned(file(entry([publicJwk('a')]), entry({ b: 1 })))).toBe('signing_keys is not an array');
  });

  test('and harms no other agent', () => {
    const json = file(entry('broken', 'https://other.example/'), entry([publicJwk('a')]));
    expect(pinned(json)).toEqual(['a']);
  });
});

test.each([
  ['<html></html>', 'the body is not JSON'],
  [
    '{"authorized_agents":[],"authorized_agents":[]}',
    'an object in the body has a name twice: "authorized_agents"',
  ],
  [{ authorized_agents: {} }, 'authorized_agents is not an array'],
  [{ authoritative_location: 'https://x.example/a.json' }, 'it only points elsewhere, which is not followed'],
])('a broken file is refused: %#', (json, reason) => {
  expect(pinned(json)).toBe(`refused: ${reason}`);
});

test('thirty thousand entries for one agent are read in passing', () => {
  const json = `{"authorized_agents":[${Array.from({ length: 30_000 }, () => '{"url":"a","signing_keys":[]}').join(',')}]}`;
  expect(json.length).toBeLessThan(ADAGENTS.maxBytes);
  expect(pinned(json, 'a')).toBeUndefined();
});
