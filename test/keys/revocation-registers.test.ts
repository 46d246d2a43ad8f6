import { describe, expect, test } from 'vitest';
import {
  createRegisters,
  MAX_KID_CHARACTERS,
  MAX_KIDS,
  newRegister,
  registerBytes,
  take,
} from '../../src/keys/for-tests.ts';
import type { SenderEntry } from '../../src/for-tests.ts';
import { type KeyServer, startKeyServer } from './key-server.ts';
import { type Bench, BRAND, MINUTE, senderEntry, setup, START, startSeller } from './setup.ts';
import { type Timers, timers } from './timers.ts';

const WELL_KNOWN = '/.well-known/proto-revocations.json';
const LIST = '/revocations.json';
const HOUR = 60 * MINUTE;

const kids = (name: string, count: number): string[] =>
  Array.from({ length: count }, (_, index) => `${name}${index}`);

function list(server: KeyServer, revoked: readonly string[], at = START): object {
  const [updated, next_update] = [at, at + 5 * MINUTE].map((ms) => new Date(ms).toISOString());
  return { version: 1, issuer: server.origin, updated, next_update, revoked_kids: revoked };
}

describe('lists with the same updated', () => {
  test('together revoke what any of them revokes, up to 10,000 key ids; then the newest alone, with one alarm', async () => {
    const server = await startKeyServer();
    const { keys, advance, alarmsOf } = await setup();
    const revocation = { url: `${server.origin}${LIST}` };
    const sender = senderEntry(`${server.origin}/mcp`, { revocation });
    const serve = async (...revoked: readonly string[]): Promise<void> => {
      server.serve(LIST, list(server, revoked));
      advance(5 * MINUTE);
      await keys.revocation(sender, 'any');
    };
    const states = async (...asked: readonly string[]): Promise<string[]> =>
      Promise.all(asked.map(async (kid) => keys.revocation(sender, kid)));
    await serve('first', ...kids('a', MAX_KIDS - 3));
    await serve('second');
    expect(await states('first', 'second', 'third')).toEqual(['revoked', 'revoked', 'valid']);
    await serve('second', 'third');
    expect([await states('first', 'third'), alarmsOf('revocation_overflow')]).toEqual([
      ['revoked', 'revoked'],
      [],
    ]);
    await serve('fourth');
    expect(await states('first', 'fourth')).toEqual(['valid', 'revoked']);
    await serve('fifth');
    expect(await states('fourth', 'fifth')).toEqual(['valid', 'revoked']);
    expect(alarmsOf('revocation_overflow')).toMatchObject([
      { url: revocation.url, message: expect.stringContaining('10000') },
    ]);
  });

  test('are extended without copying what is held', () => {
    const register = newRegister('https://seller.example/revocations.json');
    const fields = { updated: START, nextUpdate: START + MINUTE, interval: MINUTE };
    take(register, { ...fields, kids: new Set(kids('a', 100)) }, START);
    const held = register.inForce?.kids;
    const published = new Set(['b']);
    expect(take(register, { ...fields, kids: published }, START)).toBe('taken');
    expect(register.inForce?.kids).toBe(held);
    expect([held?.size, published.size]).toEqual([101, 1]);
  });

  test('of long key ids are united up to 1 MiB of characters', () => {
    const register = newRegister('https://seller.example/revocations.json');
    const fields = { updated: START, nextUpdate: START + MINUTE, interval: MINUTE };
    const of = (name: string): Set<string> => new Set([name.padEnd(MAX_KID_CHARACTERS / 4, 'x')]);
    expect(registerBytes(register)).toBe(0);
    const taken = ['a', 'b', 'c', 'd', 'a', 'e'].map((name) =>
      take(register, { ...fields, kids: of(name) }, START),
    );
    expect(taken).toEqual(['taken', 'taken', 'taken', 'taken', 'taken', 'overflow']);
    expect(registerBytes(register)).toBeLessThan(MAX_KID_CHARACTERS / 2);
    expect(registerBytes(register)).toBeGreaterThan(MAX_KID_CHARACTERS / 4);
  });

  test('a list that is longer by itself counts whole, however often it is fetched', () => {
    const register = newRegister('https://seller.example/revocations.json');
    const long = new Set(kids('a', MAX_KIDS + 1));
    const published = { updated: START, nextUpdate: START + MINUTE, interval: MINUTE, kids: long };
    expect([take(register, published, START), take(register, published, START)]).toEqual(['taken', 'taken']);
    expect(register.inForce?.kids.size).toBe(MAX_KIDS + 1);
  });
});

interface Moving extends Bench, Timers {
  readonly sender: SenderEntry;
  /** An origin with a list that revokes `revoked`; the seller's brand.json leads there from now on. */
  readonly moveTo: (revoked: string) => Promise<KeyServer>;
  /** As a delivery does: brand.json by its life, then the list. */
  readonly check: (keyid: string) => Promise<string>;
}

async function moving(): Promise<Moving> {
  const { server, sender } = await startSeller();
  const clock = timers();
  const bench = await setup({ schedule: clock.schedule });
  const pointTo = (house: KeyServer): void => {
    server.serve(
      BRAND,
      { authoritative_location: `${house.origin}${BRAND}` },
      { 'cache-control': 'no-cache' },
    );
    bench.advance(MINUTE);
  };
  return {
    ...bench,
    ...clock,
    sender,
    moveTo: async (revoked) => {
      const house = await startKeyServer();
      house.serve(BRAND, { agents: [{ url: sender.agentUrl }] }, { 'cache-control': 'no-cache' });
      house.serve(WELL_KNOWN, list(house, [revoked], bench.now() + MINUTE));
      pointTo(house);
      return house;
    },
    check: async (keyid) => {
      await bench.keys.find(keyid, { senders: [sender], arrivedAt: bench.now() });
      return await bench.keys.revocation(sender, keyid);
    },
  };
}

describe('origins that brand.json named', () => {
  test('are polled for an hour after it names another, and not longer', async () => {
    const { moveTo, check, advance, waiting, schedule: _, ...clock } = await moving();
    const first = await moveTo('a');
    expect([await check('a'), waiting()]).toEqual(['revoked', [5 * MINUTE]]);
    advance(5 * MINUTE);
    await clock.fire();
    expect(first.count(WELL_KNOWN)).toBe(2);
    const { task } = clock.next();
    const second = await moveTo('b');
    expect([await check('b'), second.count(WELL_KNOWN)]).toEqual(['revoked', 1]);
    // The timer of the second waits; the first one's comes as it was set.
    clock.next();
    advance(HOUR - 2 * MINUTE);
    task();
    await expect.poll(() => first.count(WELL_KNOWN)).toBe(3);
    await expect.poll(waiting).toHaveLength(1);
    const last = clock.next();
    advance(2 * MINUTE);
    last.task();
    // Whatever it asked for would have come before what is asked for now.
    expect([await check('b'), first.count(WELL_KNOWN)]).toEqual(['revoked', 3]);
  });

  test('are polled while it names them, without a delivery', async () => {
    const { moveTo, check, advance, fire } = await moving();
    const house = await moveTo('a');
    await check('a');
    for (const hours of [1, 2, 3]) {
      advance(HOUR);
      await fire();
      expect(house.count(WELL_KNOWN)).toBe(1 + hours);
    }
  });
});

describe('registers', () => {
  /** Senders whose brand.json leads where the test says. */
  function registersOf(at: Map<string, string>) {
    let now = START;
    const forgotten: string[] = [];
    const registers = createRegisters({
      now: () => now,
      sourcesOf: ({ agentUrl }) => [{ url: at.get(agentUrl) ?? '', required: false }],
      forget: (url) => forgotten.push(url),
    });
    const use = (agentUrl: string, url: string): void => {
      at.set(agentUrl, url);
      registers.use([{ url, required: false }], senderEntry(agentUrl));
    };
    return { registers, forgotten, use, advance: (ms: number) => (now += ms) };
  }

  test('that a sender left are dropped beyond the latest hundred, never one that is in use', () => {
    const { registers, forgotten, use, advance } = registersOf(new Map());
    use('other', 'shared');
    use('mover', 'shared');
    for (let count = 0; count < 150; count += 1) {
      advance(HOUR);
      use('mover', `${count}`);
    }
    expect(forgotten).toEqual(Array.from({ length: 49 }, (_, index) => `${index}`));
    expect(['shared', '48', '49', '149'].map((url) => registers.get(url)?.url)).toEqual([
      'shared',
      undefined,
      '49',
      '149',
    ]);
  });

  test('a register that is used again and left counts as newly left', () => {
    const { registers, forgotten, use, advance } = registersOf(new Map());
    use('mover', 'home');
    for (let count = 0; count < 150; count += 1) {
      advance(HOUR);
      use('mover', `${count}`);
      use('mover', 'home');
    }
    expect([registers.get('home')?.url, forgotten.length]).toEqual(['home', 50]);
  });
});

test('a register in use outlives any number of others (an evicted one let a revoked key through)', async () => {
  const { server, sender } = await startSeller();
  server.serve(WELL_KNOWN, list(server, ['k']));
  const { keys, advance } = await setup({ limits: { maxDocuments: 3 } });
  expect(await keys.revocation(sender, 'k')).toBe('revoked');
  const named = senderEntry(`${server.origin}/named`, { revocation: { url: `${server.origin}${LIST}` } });
  server.serve(LIST, list(server, ['n']));
  expect(await keys.revocation(named, 'n')).toBe('revoked');
  const others = await startKeyServer();
  await server.close();
  for (let count = 0; count < 5; count += 1) {
    const revocation = { url: `${others.origin}/${count}` };
    others.serve(`/${count}`, list(others, []));
    await keys.revocation(senderEntry(`${others.origin}/mcp/${count}`, { revocation }), 'k');
  }
  advance(MINUTE);
  expect([await keys.revocation(sender, 'k'), await keys.revocation(named, 'n')]).toEqual([
    'revoked',
    'revoked',
  ]);
});
