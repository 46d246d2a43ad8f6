import { describe, expect, onTestFinished, test } from 'vitest';
import { createKeyRecords, JWKS, type KeySet } from '../../src/keys/for-tests.ts';
import { createReceiver, type Receiver, type Sender, type Store } from '../../src/index.ts';
import { type KeyPair, signDelivery } from '../../src/sender/sign.ts';
import { samplePayloads, type StoreHarness } from '../../src/testing/index.ts';
import { ACCEPTED, keyNamed, UNAVAILABLE } from '../keys/delivery-bench.ts';
import { BRAND, JWKS_PATH, PATIENT, publicJwk, SILENT, startSeller } from '../keys/setup.ts';
import { said, URL_GIVEN } from '../receiver/setup.ts';
import { inThisForm } from '../reliability/form.ts';
import { mysqlHarness, ownDatabase } from './mysql-databases.ts';
import { ownSchema, postgresHarness } from './postgres-schemas.ts';
import { clientOf, ownRedis, redisHarness } from './redis-harness.ts';
import { sqliteHarness } from './sqlite-files.ts';

/* Whose a key is (verification.md §2.36) goes from one process to the next through every store. */

/** Each is called in the `describe` of its store, and what it returns in each test. */
const STORES: Readonly<Record<string, () => () => Promise<StoreHarness>>> = {
  SQLite: () => () => sqliteHarness((file) => file),
  PostgreSQL: () => {
    const at = ownSchema();
    return () => postgresHarness(at);
  },
  MySQL: () => {
    const at = ownDatabase();
    return () => mysqlHarness(at);
  },
  Redis: () => {
    const at = ownRedis();
    return () => redisHarness(() => clientOf.url(at.url));
  },
};

const payloads = samplePayloads();

/** A process that has room for one record of each sender. */
function start(store: Store, senders: readonly Sender[]): Receiver {
  const receiver = createReceiver({
    publicUrl: URL_GIVEN,
    senders,
    store,
    durability: { require: 'process' },
    maxRecordsPerSender: 1,
    allowLoopback: true,
    logger: SILENT,
    handlers: { other: () => undefined },
  });
  onTestFinished(() => receiver.stop());
  return receiver;
}

async function deliver(receiver: Receiver, { privateJwk }: KeyPair): Promise<string> {
  const signed = await signDelivery({ url: URL_GIVEN, body: payloads.tool('completed'), key: privateJwk });
  return said(await receiver.verifyAndDispatch(signed.body, signed.headers));
}

function setOf(...keys: readonly object[]): KeySet {
  const parsed = JWKS.parse(new TextEncoder().encode(JSON.stringify({ keys })), 'https://seller.example/');
  if (!parsed.ok) throw new Error(parsed.reason);
  return parsed.value;
}

describe.each(inThisForm(Object.keys(STORES), (name) => name === 'SQLite'))('key records on %s', (name) => {
  const harness = STORES[name]?.();
  const open = async (): Promise<StoreHarness> => {
    if (harness === undefined) throw new Error(`no store ${name}`);
    const stores = await harness();
    onTestFinished(() => stores.cleanup());
    return stores;
  };

  test('a copier has no event of a victim that another process saw, also where its share of records is full', async () => {
    const { a, b } = await open();
    const [key, own] = [await keyNamed('k'), await keyNamed('own')];
    const [victim, copier] = [await startSeller(key.publicJwk), await startSeller(own.publicJwk)];
    const senders = [copier, victim].map(({ sender }) => ({ agentUrl: sender.agentUrl }));
    const first = start(a, senders);
    expect(await deliver(first, key)).toBe(ACCEPTED);
    expect(await deliver(first, key)).not.toBe(ACCEPTED);
    const records = createKeyRecords({ store: a, logger: SILENT });
    for (const { agentUrl } of senders)
      await expect.poll(async () => (await records.of(agentUrl)).isKnown, PATIENT).toBe(true);
    copier.publish(own.publicJwk, key.publicJwk);
    for (const path of [BRAND, JWKS_PATH])
      victim.server.answer(path, (_req, res) => res.writeHead(500).end());
    const later = start(b, senders);
    expect(await deliver(later, key)).toBe(UNAVAILABLE);
    expect(await deliver(later, own)).toBe(ACCEPTED);
  });

  test('what two processes note of one sender at once is all kept', async () => {
    const { a, b } = await open();
    for (const store of [a, b]) await store.open();
    const agentUrl = 'https://seller.example/mcp';
    const keys = Array.from({ length: 8 }, (_, index) => publicJwk(`k${index}`));
    const noters = [a, b].map((store) => createKeyRecords({ store, logger: SILENT }));
    for (const [index, key] of keys.entries()) noters[index % 2]?.published(agentUrl, setOf(key));
    await Promise.all(noters.map((records) => records.of(agentUrl)));
    const records = createKeyRecords({ store: b, logger: SILENT });
    const missing = async (): Promise<unknown[]> => {
      const of = await records.of(agentUrl);
      return keys
        .map(({ kid }) => kid)
        .filter((kid, index) => !of.hasPublished(String(kid), keys[index] ?? {}));
    };
    await expect.poll(missing, PATIENT).toEqual([]);
  });
});
