import {
  type AdAgents,
  ADAGENTS,
  type Copy,
  createPublisherListings,
  type Listing,
  type Parsed,
} from '../../src/keys/for-tests.ts';
import { describe, expect, test } from 'vitest';
import type { Alarm } from '../../src/index.ts';
import { publicJwk } from './setup.ts';

const AT = 'https://publisher.example/.well-known/adagents.json';
const AGENT = 'https://seller.example/mcp';
const HARD_LIMIT = 1000;

function bench() {
  let now = 0;
  const alarms: Alarm[] = [];
  const pinned: Alarm[] = [];
  const raiseAlarm = (alarm: Alarm): void =>
    void (alarm.code === 'publisher_pins' ? pinned : alarms).push(alarm);
  const listed = createPublisherListings({ raiseAlarm, now: () => now });
  const copyOf = (authorized_agents: readonly unknown[]): Copy<AdAgents> => {
    const parsed = ADAGENTS.parse(new TextEncoder().encode(JSON.stringify({ authorized_agents })), AT);
    if (!parsed.ok) throw new Error(parsed.reason);
    return {
      value: parsed.value,
      fetchedAt: now,
      fetchNumber: 1,
      freshUntil: now,
      hardUntil: now + HARD_LIMIT,
    };
  };
  /** Reads a file in which the agent has these `signing_keys`. */
  const publish = (signing_keys: unknown, url = AGENT): Listing =>
    listed(AGENT, AT, copyOf([{ url, signing_keys }]));
  return {
    alarms,
    /** Of a pin that decides for the first time. */
    pinned,
    listed,
    copyOf,
    publish,
    advance: (ms: number) => {
      now += ms;
    },
  };
}

const kids = ({ set }: Listing): string[] => [...(set?.jwks.keys() ?? [])];

test('a valid file gives its pins or that it has none', () => {
  const { publish, alarms } = bench();
  expect(kids(publish([publicJwk('a')]))).toEqual(['a']);
  expect(publish(undefined)).toEqual({});
  expect(publish([publicJwk('a')], 'https://other.example/')).toEqual({});
  expect(alarms).toEqual([]);
});

describe('an alarm says that a publisher begins to pin (verification.md §5.28)', () => {
  const NEWS = { code: 'publisher_pins', sender: AGENT, url: AT };

  test('once, and again only after it had stopped', () => {
    const { publish, pinned, advance } = bench();
    publish(undefined);
    expect(pinned).toEqual([]);
    publish([publicJwk('a')]);
    publish([publicJwk('a'), publicJwk('b')]);
    advance(HARD_LIMIT);
    publish([publicJwk('b')]);
    expect(pinned).toMatchObject([NEWS]);
    publish(undefined);
    publish([publicJwk('b')]);
    expect(pinned).toMatchObject([NEWS, NEWS]);
  });

  test('for each agent, and for no list that pins nothing or is broken', () => {
    const { publish, listed, copyOf, pinned } = bench();
    publish([]);
    publish('none');
    publish([publicJwk('a')], 'https://other.example/');
    expect(pinned).toEqual([]);
    const other = 'https://other.example/';
    listed(other, AT, copyOf([{ url: other, signing_keys: [publicJwk('a')] }]));
    publish([publicJwk('a')]);
    expect(pinned.map(({ sender }) => sender)).toEqual([other, AGENT]);
  });
});

describe('a broken entry', () => {
  const BROKEN = [{ ...publicJwk('a'), d: 'x' }];

  test('leaves the last valid listing in force until its hard limit, with one alarm per copy', () => {
    const { publish, listed, copyOf, alarms, advance } = bench();
    publish([publicJwk('a')]);
    const copy = copyOf([{ url: AGENT, signing_keys: BROKEN }]);
    for (let count = 0; count < 5; count += 1) {
      const listing = listed(AGENT, AT, copy);
      expect(kids(listing)).toEqual(['a']);
      expect(listing).toMatchObject({ broken: expect.stringContaining('private half') });
      expect(listing).not.toHaveProperty('undecided');
    }
    expect(alarms).toMatchObject([
      { code: 'key_document_invalid', sender: AGENT, url: AT, document: 'adagents.json' },
    ]);
    advance(HARD_LIMIT);
    expect(listed(AGENT, AT, copy)).toEqual({ undecided: expect.stringContaining('private half') });
  });

  test('leaves "nothing is pinned" in force too', () => {
    const { publish } = bench();
    publish(undefined);
    expect(publish(BROKEN)).toEqual({ broken: expect.any(String) });
  });

  test('is undecided without an earlier valid listing', () => {
    const { publish, alarms } = bench();
    expect(publish('broken')).toEqual({ undecided: expect.stringContaining('not an array') });
    expect(alarms).toHaveLength(1);
  });

  test('is over with the next valid one', () => {
    const { publish } = bench();
    publish([publicJwk('a')]);
    publish(BROKEN);
    expect(kids(publish([publicJwk('b')]))).toEqual(['b']);
  });

  test.each([
    ['an unusable one', [{ ...publicJwk('a'), kty: 'RSA' }]],
    ['several', [publicJwk('a'), publicJwk('a')]],
  ])('a usable key that was replaced by %s serves on, beside what is new', (_what, spoilt) => {
    const { publish, alarms } = bench();
    const key = publicJwk('a');
    publish([key, publicJwk('gone')]);
    const listing = publish([...spoilt, publicJwk('b')]);
    expect(listing.set?.jwks.get('a')).toEqual(key);
    expect(kids(listing).toSorted()).toEqual(['a', 'b']);
    expect(listing).not.toHaveProperty('broken');
    expect(alarms).toHaveLength(1);
  });

  test('and does so until the hard limit, though the server says “not changed” from then on', () => {
    const { listed, copyOf, publish, advance } = bench();
    publish([publicJwk('a')]);
    const copy = copyOf([{ url: AGENT, signing_keys: [{ ...publicJwk('a'), kty: 'RSA' }, publicJwk('b')] }]);
    expect(listed(AGENT, AT, copy).set?.held.size).toBe(1);
    advance(HARD_LIMIT - 1);
    const confirmed = { ...copy, hardUntil: copy.hardUntil + HARD_LIMIT };
    expect(listed(AGENT, AT, confirmed).set?.held.size).toBe(1);
    advance(1);
    expect(listed(AGENT, AT, confirmed).set?.jwks.get('a')).toMatchObject({ kty: 'RSA' });
  });
});

test('a listing is kept as long as the newest copy that confirms it', () => {
  const { listed, copyOf, publish, advance } = bench();
  const copy = copyOf([{ url: AGENT, signing_keys: [publicJwk('a')] }]);
  listed(AGENT, AT, copy);
  // The server said "not changed": the same value in a copy of its own.
  listed(AGENT, AT, { ...copy, hardUntil: copy.hardUntil + HARD_LIMIT });
  advance(HARD_LIMIT);
  expect(kids(publish('broken'))).toEqual(['a']);
});

test('keys pinned for a URL that only resembles the agent’s pin nothing, with one alarm', () => {
  const { listed, copyOf, alarms } = bench();
  const copy = copyOf([{ url: `${AGENT}/`, signing_keys: [publicJwk('a')] }]);
  expect(listed(AGENT, AT, copy)).toEqual({});
  expect(listed(AGENT, AT, copy)).toEqual({});
  expect(alarms).toMatchObject([{ code: 'agent_not_listed', sender: AGENT, nearMisses: [`${AGENT}/`] }]);
  expect(alarms[0]?.message).toContain('differs in trailing slash');
});

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
    [
      'a revoked_at that is none',
      [{ ...publicJwk('a'), revoked_at: 'soon' }],
      'signing_keys has a revoked_at that is not a timestamp',
    ],
    [
      'more than 16 KiB',
      [{ ...publicJwk('a'), x5c: ['x'.repeat(16_384)] }],
      'signing_keys has more than 16 KiB of keys',
    ],
    ['a private half', [{ ...publicJwk('a'), d: 'x' }], 'a key is published with its private half'],
    ['too many', Array.from({ length: 1001 }, () => 0), 'signing_keys has more than 1000 keys'],
  ])('%s', (_what, keys, flaw) => {
    expect(pinned(file(entry(keys)))).toBe(flaw);
  });

  test('beside a valid one for the same agent too', () => {
    expect(pinned(file(entry([publicJwk('a')]), entry({ b: 1 })))).toBe('signing_keys is not an array');
  });

  test('and affects no other agent', () => {
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
  [{ authoritative_location: '/a.json' }, 'authoritative_location is not an absolute URL'],
  [{ authoritative_location: 5 }, 'authoritative_location is not an absolute URL'],
])('a broken file is refused: %#', (json, reason) => {
  expect(pinned(json)).toBe(`refused: ${reason}`);
});

test('thirty thousand entries for one agent are read in linear time', () => {
  const json = `{"authorized_agents":[${Array.from({ length: 30_000 }, () => '{"url":"a","signing_keys":[]}').join(',')}]}`;
  expect(json.length).toBeLessThan(ADAGENTS.maxBytes);
  expect(pinned(json, 'a')).toBeUndefined();
});
