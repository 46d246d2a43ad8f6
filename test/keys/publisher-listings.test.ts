import { describe, expect, test } from 'vitest';
import type { Alarm } from '../../src/alarms.ts';
import {
  ADAGENTS,
  type AdAgents,
  createPublisherListings,
  type Listing,
} from '../../src/keys/publisher-pins.ts';
import type { Copy } from '../../src/keys/document.ts';
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

test('what a sound file says, or that it says nothing', () => {
  const { publish, alarms } = bench();
  expect(kids(publish([publicJwk('a')]))).toEqual(['a']);
  expect(publish(undefined)).toEqual({});
  expect(publish([publicJwk('a')], 'https://other.example/')).toEqual({});
  expect(alarms).toEqual([]);
});

describe('an alarm says that a publisher begins to pin (verification.md §5.28)', () => {
  const NEWS = { code: 'publisher_pins', sender: AGENT, url: AT };

  test('once, and again only after it had ceased', () => {
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

  test('leaves the last sound word in force until its hard limit, with one alarm a copy', () => {
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

  test('is undecided where there was no word before', () => {
    const { publish, alarms } = bench();
    expect(publish('broken')).toEqual({ undecided: expect.stringContaining('not an array') });
    expect(alarms).toHaveLength(1);
  });

  test('is over with the next sound one', () => {
    const { publish } = bench();
    publish([publicJwk('a')]);
    publish(BROKEN);
    expect(kids(publish([publicJwk('b')]))).toEqual(['b']);
  });

  test('so is a key that could verify and was replaced by one that cannot', () => {
    const { publish, alarms } = bench();
    publish([publicJwk('a')]);
    const listing = publish([{ ...publicJwk('a'), kty: 'RSA' }]);
    expect(listing.set?.jwks.get('a')).toMatchObject({ kty: 'OKP' });
    expect(listing).toMatchObject({ broken: expect.any(String) });
    expect(alarms).toHaveLength(1);
  });
});

test('a word is kept as long as the newest copy that bears it out', () => {
  const { listed, copyOf, publish, advance } = bench();
  const copy = copyOf([{ url: AGENT, signing_keys: [publicJwk('a')] }]);
  listed(AGENT, AT, copy);
  // The server said "not changed": the same value in a copy of its own.
  listed(AGENT, AT, { ...copy, hardUntil: copy.hardUntil + HARD_LIMIT });
  advance(HARD_LIMIT);
  expect(kids(publish('broken'))).toEqual(['a']);
});

test('keys pinned for a URL that only looks like the agent pin nothing, and the owner hears of it once', () => {
  const { listed, copyOf, alarms } = bench();
  const copy = copyOf([{ url: `${AGENT}/`, signing_keys: [publicJwk('a')] }]);
  expect(listed(AGENT, AT, copy)).toEqual({});
  expect(listed(AGENT, AT, copy)).toEqual({});
  expect(alarms).toMatchObject([{ code: 'agent_not_listed', sender: AGENT, nearMisses: [`${AGENT}/`] }]);
  expect(alarms[0]?.message).toContain('differs in trailing slash');
});
