import { createHash } from 'node:crypto';
import { describe, expect, onTestFinished, test } from 'vitest';
import { type Alarm, type AlarmCode, createReceiver, type Sender, type Store } from '../../src/index.ts';
import { createKeyRecords, JWKS, type KeySet } from '../../src/keys/for-tests.ts';
import { type KeyPair, signDelivery } from '../../src/sender/sign.ts';
import { memoryStore } from '../../src/stores/memory.ts';
import { samplePayloads } from '../../src/testing/index.ts';
import { said, URL_GIVEN } from '../receiver/setup.ts';
import { ACCEPTED, keyNamed, UNAVAILABLE } from './delivery-bench.ts';
import {
  BRAND,
  JWKS_PATH,
  MINUTE,
  PATIENT,
  publicJwk,
  type Seller,
  SILENT,
  START,
  startSeller,
} from './setup.ts';

const DAY = 24 * 60 * MINUTE;

/** A world of one store in which receivers, each as a process of its own, come and go. */
function world() {
  let time = START;
  const now = (): number => time;
  const store = memoryStore({ clockOffsetMs: () => time - Date.now() });
  const payloads = samplePayloads({ now });
  return {
    store,
    advance: (ms: number) => (time += ms),
    /** A process. @param keeps its store; one of its own, which is empty, where absent. */
    start: (senders: readonly Sender[], keeps: Store = store) => {
      const alarms: Alarm[] = [];
      const receiver = createReceiver({
        publicUrl: URL_GIVEN,
        senders,
        store: keeps,
        durability: { require: 'process' },
        allowLoopback: true,
        now,
        logger: SILENT,
        handlers: { other: () => undefined },
        onAlarm: (alarm) => alarms.push(alarm),
      });
      onTestFinished(() => receiver.stop());
      return {
        alarmsOf: (code: AlarmCode) => alarms.filter((alarm) => alarm.code === code),
        /** `kind code status`, and whose the event is where it was accepted. */
        deliver: async ({ privateJwk }: KeyPair): Promise<readonly (string | undefined)[]> => {
          const signed = await signDelivery({
            url: URL_GIVEN,
            body: payloads.tool('completed'),
            key: privateJwk,
            now,
          });
          const outcome = await receiver.verifyAndDispatch(signed.body, signed.headers);
          return outcome.kind === 'accepted' ? [said(outcome), outcome.sender] : [said(outcome)];
        },
      };
    },
  };
}

const fail = ({ server }: Seller): void => {
  for (const path of [BRAND, JWKS_PATH]) server.answer(path, (_req, res) => res.writeHead(500).end());
};

const idOf = ({ sender }: Seller): Sender => ({ agentUrl: sender.agentUrl });

/** A victim, and a copier that publishes the victim's key beside its own from the time that `copy` says. */
async function victimAndCopier() {
  const [key, own] = [await keyNamed('k'), await keyNamed('own')];
  const [victim, copier] = [await startSeller(key.publicJwk), await startSeller(own.publicJwk)];
  return {
    ...world(),
    key,
    own,
    victim,
    copier,
    senders: [idOf(copier), idOf(victim)],
    copy: () => copier.publish(own.publicJwk, key.publicJwk),
  };
}

/** Thumbprints are stored while nobody waits. */
const stored = async (store: Store, agentUrl: string, ...keys: readonly KeyPair[]): Promise<void> => {
  const records = createKeyRecords({ store, logger: SILENT });
  for (const { publicJwk: jwk } of keys)
    await expect
      .poll(async () => (await records.of(agentUrl)).hasPublished(String(jwk['kid']), jwk), PATIENT)
      .toBe(true);
};

describe('while the victim’s documents cannot be had nobody else has its events (verification.md §2.36)', () => {
  test('31 minutes later, in the process that verified the victim', async () => {
    const { start, senders, victim, copy, key, advance } = await victimAndCopier();
    const process = start(senders);
    expect(await process.deliver(key)).toEqual([ACCEPTED, victim.sender.agentUrl]);
    copy();
    fail(victim);
    advance(31 * MINUTE);
    for (let event = 0; event < 3; event += 1) {
      expect(await process.deliver(key)).toEqual([UNAVAILABLE]);
      advance(MINUTE);
    }
    expect(process.alarmsOf('key_shared')).not.toEqual([]);
    victim.server.serve(BRAND, { agents: [{ url: victim.sender.agentUrl }] });
    victim.publish(key.publicJwk);
    advance(MINUTE);
    await expect.poll(() => process.deliver(key), PATIENT).toEqual([ACCEPTED, victim.sender.agentUrl]);
  });

  test('in a process that starts while they are away, on a store that saw them', async () => {
    const { start, store, senders, victim, copier, copy, key, own } = await victimAndCopier();
    expect(await start(senders).deliver(key)).toEqual([ACCEPTED, victim.sender.agentUrl]);
    await stored(store, victim.sender.agentUrl, key);
    copy();
    fail(victim);
    const later = start(senders);
    expect(await later.deliver(key)).toEqual([UNAVAILABLE]);
    expect(later.alarmsOf('key_shared')).toMatchObject([
      { sender: copier.sender.agentUrl, other: victim.sender.agentUrl, keyid: 'k' },
    ]);
    // The copier's own key has nothing to do with it.
    expect(await later.deliver(own)).toEqual([ACCEPTED, copier.sender.agentUrl]);
  });

  test('on a store that never saw them: undecided, and the alarm names who blocks; until they are had once', async () => {
    const { start, senders, victim, copier, copy, key, own, advance } = await victimAndCopier();
    copy();
    fail(victim);
    const process = start(senders);
    expect([await process.deliver(key), await process.deliver(own)]).toEqual([[UNAVAILABLE], [UNAVAILABLE]]);
    const named = { sender: copier.sender.agentUrl, other: victim.sender.agentUrl };
    expect(process.alarmsOf('key_owner_unchecked')).toMatchObject([
      { ...named, keyid: 'k', message: expect.stringContaining('are answered 503 until') as unknown },
    ]);
    victim.server.serve(BRAND, { agents: [{ url: victim.sender.agentUrl }] });
    victim.publish(key.publicJwk);
    advance(MINUTE);
    await expect.poll(() => process.deliver(own), PATIENT).toEqual([ACCEPTED, copier.sender.agentUrl]);
    expect((await process.deliver(key))[0]).toBe(UNAVAILABLE);
  });

  test('the victim that was taken as the owner keeps the key after a restart, though the copier publishes it', async () => {
    const { start, store, senders, victim, copier, copy, key } = await victimAndCopier();
    const first = start(senders);
    expect(await first.deliver(key)).toEqual([ACCEPTED, victim.sender.agentUrl]);
    await stored(store, victim.sender.agentUrl, key);
    const records = createKeyRecords({ store, logger: SILENT });
    await expect
      .poll(async () => (await records.of(victim.sender.agentUrl)).wasOwn('k', key.publicJwk), PATIENT)
      .toBe(true);
    copy();
    const later = start(senders);
    expect(await later.deliver(key)).toEqual([ACCEPTED, victim.sender.agentUrl]);
    fail(copier);
    expect(await start(senders).deliver(key)).toEqual([ACCEPTED, victim.sender.agentUrl]);
  });
});

describe('a sender that hangs does not stop the others', () => {
  test('whose keys have verified here, also where none of its own were ever had', async () => {
    const { start, store, victim: seller, copier: other, key } = await victimAndCopier();
    fail(other);
    expect(await start([idOf(seller)]).deliver(key)).toEqual([ACCEPTED, seller.sender.agentUrl]);
    const records = createKeyRecords({ store, logger: SILENT });
    await expect
      .poll(async () => (await records.of(seller.sender.agentUrl)).hasVerified('k', key.publicJwk), PATIENT)
      .toBe(true);
    const later = start([idOf(seller), idOf(other)]);
    expect(await later.deliver(key)).toEqual([ACCEPTED, seller.sender.agentUrl]);
    expect(later.alarmsOf('key_owner_unchecked')).toHaveLength(1);
  });

  test('whose keys are new, once a copy of its own was had: accepted, with an alarm', async () => {
    const { start, store, senders, victim, copier, key, own } = await victimAndCopier();
    await start(senders).deliver(key);
    await stored(store, victim.sender.agentUrl, key);
    fail(victim);
    const later = start(senders);
    expect(await later.deliver(own)).toEqual([ACCEPTED, copier.sender.agentUrl]);
    expect(later.alarmsOf('key_owner_unchecked')).toMatchObject([{ other: victim.sender.agentUrl }]);
  });
});

test('a key that verified at a URL of its sender alone is not known to be its own where another publishes it', async () => {
  const { start, store, victim, copier, copy, key } = await victimAndCopier();
  copy();
  // E.g. somebody who is a customer of the victim too named the copier's URL to it.
  expect(await start([idOf(copier)]).deliver(key)).toEqual([ACCEPTED, copier.sender.agentUrl]);
  const records = createKeyRecords({ store, logger: SILENT });
  await expect
    .poll(async () => (await records.of(copier.sender.agentUrl)).hasVerified('k', key.publicJwk), PATIENT)
    .toBe(true);
  expect(await start([idOf(copier), idOf(victim)]).deliver(key)).toEqual([UNAVAILABLE]);
});

describe('records of keys', () => {
  const setOf = (...keys: readonly object[]): KeySet => {
    const parsed = JWKS.parse(new TextEncoder().encode(JSON.stringify({ keys })), 'https://seller.example/');
    if (!parsed.ok) throw new Error(parsed.reason);
    return parsed.value;
  };
  const AGENT = 'https://seller.example/mcp';

  test('are of kid and material, and go from one process to the next', async () => {
    const store = memoryStore();
    await store.open();
    const [a, b] = [publicJwk('a'), publicJwk('b')];
    const first = createKeyRecords({ store, logger: SILENT });
    expect((await first.of(AGENT)).isKnown).toBe(false);
    first.published(AGENT, setOf(a));
    first.verified(AGENT, 'b', b, false);
    await first.of(AGENT);
    const of = await createKeyRecords({ store, logger: SILENT }).of(AGENT);
    expect([of.isKnown, of.hasPublished('a', { ...a, use: 'enc' }), of.wasOwn('b', b)]).toEqual([
      true,
      true,
      true,
    ]);
    expect([of.hasPublished('b', a), of.hasPublished('a', publicJwk('a')), of.wasOwn('a', a)]).toEqual([
      false,
      false,
      false,
    ]);
    expect((await createKeyRecords({ store, logger: SILENT }).of('https://other.example/')).isKnown).toBe(
      false,
    );
  });

  /** A store that counts what is asked of it and what it saves. */
  const counting = async () => {
    let time = START;
    const store = memoryStore({ clockOffsetMs: () => time - Date.now() });
    await store.open();
    const { registrations } = store;
    if (!registrations) throw new Error('it keeps rows');
    const counts = { calls: 0, saves: 0 };
    const run: typeof registrations.run = (sender, plan) => {
      counts.calls += 1;
      return registrations.run(sender, (rows, now) =>
        plan(
          { ...rows, get: rows.get.bind(rows), save: (row) => ((counts.saves += 1), rows.save(row)) },
          now,
        ),
      );
    };
    const counted = { registrations: { ...registrations, run } };
    return {
      counts,
      start: () => createKeyRecords({ store: counted, logger: SILENT }),
      advance: (ms: number) => (time += ms),
      registrations,
    };
  };

  test('are saved for what is new and, to stay, after half of their 400 days, and for nothing else', async () => {
    const { start, counts, advance } = await counting();
    const [a, b] = [publicJwk('a'), publicJwk('b')];
    const first = start();
    const saves = async (records = start()): Promise<number> => {
      await records.of(AGENT);
      return counts.saves;
    };
    first.published(AGENT, setOf(a));
    expect(await saves(first)).toBe(1);
    expect([await saves(first), await saves()]).toEqual([1, 1]);
    first.verified(AGENT, 'a', a, false);
    expect([await saves(first), await saves(first), await saves()]).toEqual([2, 2, 2]);
    first.published(AGENT, setOf(b, a));
    expect([await saves(first), await saves()]).toEqual([3, 3]);
    advance(200 * DAY - MINUTE);
    expect(await saves()).toBe(3);
    advance(2 * MINUTE);
    expect([await saves(), await saves()]).toEqual([4, 4]);
    advance(399 * DAY);
    expect((await start().of(AGENT)).hasPublished('a', a)).toBe(true);
  });

  test('ask nothing of the store for another copy of known keys, or for a key that verified before', async () => {
    const { start, counts } = await counting();
    const [a, b] = [publicJwk('a'), publicJwk('b')];
    const records = start();
    /** Calls beside the one that reads. */
    const asked = async (): Promise<number> => {
      const before = counts.calls;
      await records.of(AGENT);
      return counts.calls - before - 1;
    };
    records.published(AGENT, setOf(a, b));
    records.verified(AGENT, 'a', a, false);
    expect(await asked()).toBe(2);
    records.published(AGENT, setOf(b, a));
    records.published(AGENT, setOf(a));
    records.verified(AGENT, 'a', { ...a }, false);
    expect(await asked()).toBe(0);
    records.published(AGENT, setOf(publicJwk('c'), a));
    records.verified(AGENT, 'b', b, false);
    expect(await asked()).toBe(2);
  });

  test.each([
    ['Ed25519', { kty: 'OKP', crv: 'Ed25519', x: 'eA' }, ['OKP', 'Ed25519', 'eA', '']],
    [
      'Ed25519, with a member that it does not need',
      { kty: 'OKP', crv: 'Ed25519', x: 'eA', y: 'eQ' },
      ['OKP', 'Ed25519', 'eA', ''],
    ],
    ['P-256', { kty: 'EC', crv: 'P-256', x: 'eA', y: 'eQ' }, ['EC', 'P-256', 'eA', 'eQ']],
  ])('that an earlier release stored are known: %s', async (_what, members, material) => {
    const { start, registrations } = await counting();
    const sha256 = (text: string) => createHash('sha256').update(text);
    const print = sha256(JSON.stringify([JSON.stringify(material), 'k'])).digest('base64url');
    const value = JSON.stringify({ published: ['-', print], verified: [`~${print}`] });
    const id = `keys ${sha256(AGENT).digest('hex')}`;
    await registrations.run('', (rows, now) =>
      rows.save({ kind: 'watch', sender: '', id, value, dueAt: null, list: null, expiresAt: now + DAY }),
    );
    const jwk = { ...members, kid: 'k' };
    const of = await start().of(AGENT);
    expect([of.hasPublished('k', jwk), of.hasVerified('k', jwk), of.wasOwn('k', jwk)]).toEqual([
      true,
      true,
      false,
    ]);
    const others = [
      of.hasPublished('j', jwk),
      ...[{ kty: 'RSA' }, { crv: 'X' }, { x: 'eQ' }].map((other) =>
        of.hasPublished('k', { ...jwk, ...other }),
      ),
    ];
    expect(others).toEqual([false, false, false, false]);
    expect(of.hasPublished('k', { ...jwk, y: 'eg' })).toBe(members.kty === 'OKP');
  });

  test('know of a copy without keys', async () => {
    const records = createKeyRecords({ logger: SILENT });
    records.published(AGENT, setOf());
    expect((await records.of(AGENT)).isKnown).toBe(true);
  });

  test('keep the newest thousand that were published and hundred that verified', async () => {
    const store = memoryStore();
    await store.open();
    const records = createKeyRecords({ store, logger: SILENT });
    const key = (index: number) => ({ kty: 'OKP', crv: 'Ed25519', x: `${index}`, kid: `${index}` });
    for (const from of [0, 600])
      records.published(AGENT, setOf(...Array.from({ length: 600 }, (_, index) => key(from + index))));
    for (let index = 0; index < 101; index += 1) records.verified(AGENT, `${index}`, key(index), false);
    const of = await records.of(AGENT);
    const published = Array.from({ length: 1_200 }, (_, index) => of.hasPublished(`${index}`, key(index)));
    expect([published.filter(Boolean).length, published[199], published[200]]).toEqual([1_000, false, true]);
    expect([of.wasOwn('0', key(0)), of.wasOwn('1', key(1)), of.wasOwn('100', key(100))]).toEqual([
      false,
      true,
      true,
    ]);
  });

  test('that could not be stored are, with the next copy', async () => {
    const store = memoryStore();
    await store.open();
    const { registrations } = store;
    if (!registrations) throw new Error('it keeps rows');
    let isDown = true;
    const run: typeof registrations.run = (sender, plan) =>
      isDown ? Promise.reject(new Error('down')) : registrations.run(sender, plan);
    const failing = { registrations: { ...registrations, run } };
    const records = createKeyRecords({ store: failing, logger: SILENT });
    const jwk = publicJwk('a');
    records.published(AGENT, setOf(jwk));
    await expect(records.of(AGENT)).rejects.toThrow('down');
    isDown = false;
    records.published(AGENT, setOf(jwk));
    const other = createKeyRecords({ store, logger: SILENT });
    await expect.poll(async () => (await other.of(AGENT)).hasPublished('a', jwk), PATIENT).toBe(true);
  });
});
