import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { AlarmCode, Store } from '../../src/index.ts';
import { generateKey, type Jwk, type KeyPair, signHmac } from '../../src/sender/sign.ts';
import { createHashes } from '../../src/crypto/for-tests.ts';
import { capabilitiesOf } from '../../src/registrations/for-tests.ts';
import { type CallSeller, createRegistrations } from '../../src/registrations/index.ts';
import { memoryStore } from '../../src/stores/memory.ts';
import { createFakeSeller, type FakeSeller } from '../../src/testing/index.ts';
import { alarmsTold, payloads, said, testReceiver, URL_GIVEN } from './setup.ts';
import { anyClient, callBy } from '../support/any-client.ts';

/*
 * What sellers of each edition send, under either name of the protocol, to a receiver that knows their agent URL and
 * nothing else. Every row is authentic. What is not answered 200 and handled stands in the table with its reason.
 */

const NAMES = ['proto', 'adcp'] as const;
const EDITIONS = ['3.0', '3.1', '3.2', '3.3'] as const;

type Name = (typeof NAMES)[number];
type Edition = (typeof EDITIONS)[number];

const TAKEN = 'accepted 200, handled';
const BRAND = '/.well-known/brand.json';
const JWKS = '/.well-known/jwks.json';
const ADAGENTS = '/.well-known/adagents.json';
const MIB = 1_048_576;

/** How a seller publishes its key. */
interface Publishing {
  readonly origin: string;
  readonly agentUrl: string;
  readonly set: (path: string, document: unknown) => void;
  readonly key: KeyPair;
}

interface Way {
  /** e.g. `url in capital letters`. */
  readonly what: string;
  /** Editions whose sellers do so. */
  readonly since: Edition;
  readonly purpose?: 'request-signing';
  readonly publish: (seller: Publishing) => void;
  /** `identity` of its capabilities, where somebody here calls the seller. */
  readonly identity?: (seller: Publishing) => object;
  /** Publishers are configured: the seller's own host is one. */
  readonly isPinned?: true;
  /** Beside 200. */
  readonly alarm?: AlarmCode;
  /** Why it is not taken under a name. */
  readonly open?: Partial<Record<Name, { readonly answer: string; readonly reason: string }>>;
}

const listing = ({ origin, agentUrl }: Publishing, entry: object = {}): object => ({
  type: 'sales',
  url: agentUrl,
  jwks_uri: `${origin}/keys.json`,
  ...entry,
});

/** brand.json with one entry, and the JWKS that it names. */
function publishWith(entry: (seller: Publishing) => object, more: object = {}): Way['publish'] {
  return (seller) => {
    seller.set(BRAND, { name: 'Seller', agents: [listing(seller, entry(seller))], ...more });
    seller.set('/keys.json', { keys: [seller.key.publicJwk] });
  };
}

const plain = publishWith(() => ({}));

/** The agent's URL as it may be spelled. */
const spelled = (what: string, spell: (url: string) => string): Way => ({
  what: `url in ${what}`,
  since: '3.1',
  publish: publishWith(({ agentUrl }) => ({ url: spell(agentUrl) })),
});

const nested = (levels: number): unknown => (levels === 0 ? {} : { a: nested(levels - 1) });

/** brand.json elsewhere than at the well-known path, which has nothing. */
const declared = (seller: Publishing, more: object = {}): void => {
  seller.set('/elsewhere.json', { agents: [listing(seller)], ...more });
  seller.set('/keys.json', { keys: [seller.key.publicJwk] });
};

const pinning = (seller: Publishing, keys: readonly Jwk[]): void => {
  plain(seller);
  seller.set(ADAGENTS, { authorized_agents: [{ url: seller.agentUrl, signing_keys: keys }] });
};

const NO_CALLER = {
  answer: 'unavailable keys_unavailable 503',
  reason:
    'nobody here can ask the seller for identity.brand_json_url; an alarm says that no document is there',
} as const;

const WAYS: readonly Way[] = [
  { what: 'key for webhook-signing', since: '3.0', publish: plain },
  {
    what: 'key with alg Ed25519 (RFC 9864)',
    since: '3.0',
    publish: (seller) => {
      seller.set(BRAND, { agents: [listing(seller)] });
      seller.set('/keys.json', { keys: [{ ...seller.key.publicJwk, alg: 'Ed25519' }] });
    },
  },
  {
    what: 'key for request-signing',
    since: '3.1',
    purpose: 'request-signing',
    publish: plain,
    open: {
      proto: {
        answer: 'refused webhook_signature_key_purpose_invalid 401',
        reason: 'under proto the contract names webhook-signing alone; an alarm names the option edition',
      },
    },
  },
  {
    what: 'key at the default place',
    since: '3.0',
    publish: (seller) => {
      seller.set(BRAND, { agents: [{ type: 'sales', url: seller.agentUrl }] });
      seller.set(JWKS, { keys: [seller.key.publicJwk] });
    },
  },
  {
    what: 'key by brands[].agents[]',
    since: '3.0',
    publish: (seller) => {
      seller.set(BRAND, { house: { name: 'House' }, brands: [{ agents: [listing(seller)] }] });
      seller.set('/keys.json', { keys: [seller.key.publicJwk] });
    },
  },
  {
    what: 'key by authoritative_location',
    since: '3.0',
    publish: (seller) => {
      seller.set(BRAND, { authoritative_location: `${seller.origin}/brand-of-house.json` });
      seller.set('/brand-of-house.json', { agents: [listing(seller)] });
      seller.set('/keys.json', { keys: [seller.key.publicJwk] });
    },
  },
  {
    what: 'key by house.agents[]',
    since: '3.0',
    publish: (seller) => {
      seller.set(BRAND, { house: { agents: [listing(seller)] } });
      seller.set('/keys.json', { keys: [seller.key.publicJwk] });
    },
  },
  {
    what: 'key by identity.brand_json_url alone',
    since: '3.1',
    publish: (seller) => declared(seller),
    open: { proto: NO_CALLER, adcp: NO_CALLER },
  },
  {
    what: 'the same, of a seller that is called',
    since: '3.1',
    publish: (seller) => declared(seller),
    identity: ({ origin }) => ({ brand_json_url: `${origin}/elsewhere.json` }),
  },
  {
    what: 'the same, with key_origins',
    since: '3.1',
    publish: (seller) => declared(seller),
    identity: ({ origin }) => ({
      brand_json_url: `${origin}/elsewhere.json`,
      key_origins: { webhook_signing: origin },
    }),
  },
  {
    what: 'the same, at a house of another domain',
    since: '3.1',
    publish: (seller) =>
      declared(seller, { house: { name: 'House' }, authorized_operators: [{ domain: '127.0.0.1' }] }),
    identity: ({ origin }) => ({
      brand_json_url: `${origin.replace('127.0.0.1', 'localhost')}/elsewhere.json`,
    }),
  },
  {
    what: 'the usual brand.json, and another declared',
    since: '3.1',
    publish: (seller) => {
      plain(seller);
      seller.set('/elsewhere.json', { agents: [] });
    },
    identity: ({ origin }) => ({ brand_json_url: `${origin}/elsewhere.json` }),
  },
  {
    what: 'a pin of the same key',
    since: '3.0',
    isPinned: true,
    publish: (seller) => pinning(seller, [seller.key.publicJwk]),
    alarm: 'publisher_pins',
  },
  {
    what: 'a pin without a purpose',
    since: '3.0',
    isPinned: true,
    publish: (seller) => {
      const { proto_use: _proto, adcp_use: _adcp, ...bare } = seller.key.publicJwk;
      pinning(seller, [bare]);
    },
  },
  {
    what: 'a pin alone, not in the JWKS',
    since: '3.0',
    isPinned: true,
    publish: (seller) => {
      pinning(seller, [seller.key.publicJwk]);
      seller.set('/keys.json', { keys: [] });
    },
    alarm: 'pin_not_published',
  },
  {
    what: 'a publisher that pins nothing',
    since: '3.0',
    isPinned: true,
    publish: (seller) => {
      plain(seller);
      seller.set(ADAGENTS, { authorized_agents: [{ url: seller.agentUrl }] });
    },
  },
  spelled('capital letters', (url) => url.replace('http:', 'HTTP:')),
  spelled('percent-encoding', (url) => url.replace('/mcp', '/%6Dc%70')),
  spelled('dot segments', (url) => url.replace('/mcp', '/x/.././mcp')),
  spelled('a fragment', (url) => `${url}#agent`),
  {
    what: 'two spellings, one JWKS',
    since: '3.1',
    publish: (seller) => {
      const other = seller.agentUrl.replace('/mcp', '/./mcp');
      const third = seller.agentUrl.replace('http:', 'Http:');
      seller.set(BRAND, { agents: [listing(seller, { url: other }), listing(seller, { url: third })] });
      seller.set('/keys.json', { keys: [seller.key.publicJwk] });
    },
  },
  {
    what: 'brand.json of 256 KiB',
    since: '3.0',
    publish: publishWith(() => ({}), { pad: 'x'.repeat(MIB / 4 - 500) }),
  },
  {
    what: 'brand.json of 2 MiB',
    since: '3.1',
    publish: publishWith(() => ({}), { pad: 'x'.repeat(2 * MIB - 500) }),
  },
  {
    what: 'brand.json of 32 levels',
    since: '3.0',
    publish: publishWith(() => ({}), { deep: nested(30) }),
  },
  {
    what: 'JWKS of 63 KiB',
    since: '3.0',
    publish: (seller) => {
      seller.set(BRAND, { agents: [listing(seller)] });
      seller.set('/keys.json', { keys: [seller.key.publicJwk], pad: 'x'.repeat(63 * 1024) });
    },
  },
];

const ROWS = NAMES.flatMap((name) =>
  EDITIONS.flatMap((edition) =>
    WAYS.filter(({ since }) => since <= edition).map((way) => ({ name, edition, way, what: way.what })),
  ),
);

/** A call of the seller by another process of the buyer, which asks what it declares and keeps it in the store. */
async function called(store: Store, agentUrl: string, edition: Edition, identity: object): Promise<void> {
  const registrations = createRegistrations({
    call: anyClient,
    store,
    baseUrl: 'https://buyer.example/webhooks',
    secrets: ['a-secret-of-forty-characters-and-no-more'],
    allowLoopback: true,
    logger: { debug() {}, info() {}, warn() {}, error() {} },
  });
  const capabilities = { adcp: { supported_versions: [edition] }, adcp_version: edition, identity };
  const operations = ['get_products', 'get_adcp_capabilities'];
  const call: CallSeller = Object.assign(
    async (_agentUrl: string, operation: string) =>
      operation === 'get_products' ? { products: [{ product_id: 'p' }] } : capabilities,
    { operations: async () => operations },
  );
  const made = await registrations.create({ agentUrl, taskType: 'get_products', arguments: {} });
  await callBy(made, call);
  const { registrations: rows } = store;
  if (!rows) throw new Error('no rows');
  const kept = capabilitiesOf({ call: undefined, rows, hashes: createHashes(), now: Date.now, limitMs: 1 });
  await expect.poll(async () => (await kept.of(agentUrl)).edition).toBe(edition);
  await registrations.stop();
}

describe('sellers of every edition are understood with nothing to set', () => {
  const lines: string[] = [];
  let seller: FakeSeller;
  beforeAll(async () => {
    seller = await createFakeSeller({ url: URL_GIVEN });
  });
  afterAll(async () => {
    await seller.close();
    console.info(['name  edition  what it publishes', ...lines].join('\n'));
  });

  it.each(ROWS)('$name $edition: $what', async ({ name, edition, way }) => {
    const { agentUrl, documents } = seller;
    const key = await generateKey('ed25519', way.purpose ?? 'webhook-signing', { protocol: name });
    documents.clear();
    const publishing: Publishing = {
      agentUrl,
      origin: new URL(agentUrl).origin,
      key,
      set: (path, document) => documents.set(path, document),
    };
    way.publish(publishing);
    const store = memoryStore();
    if (way.identity) await called(store, agentUrl, edition, way.identity(publishing));
    const sender = { agentUrl, ...(way.isPinned && { publishers: [new URL(agentUrl).host] }) };
    const { deliver, seen, alarms } = await testReceiver({ senders: [sender], allowLoopback: true, store });
    const outcome = await deliver(payloads.tool('completed'), { key: key.privateJwk, protocol: name });
    const answer = `${said(outcome)}${seen.length === 1 ? ', handled' : ''}`;
    const open = way.open?.[name];
    lines.push(
      `${name.padEnd(6)}${edition}      ${way.what.padEnd(48)}${answer}${open ? ` (${open.reason})` : ''}`,
    );
    expect(answer).toBe(open?.answer ?? TAKEN);
    if (open) expect(alarms.length).toBeGreaterThan(0);
    if (way.alarm) await expect.poll(() => alarms.map(({ code }) => code)).toContain(way.alarm);
  });
});

/*
 * The same for reports to a URL that `reportingWebhook` has made, by either of the schemes with which sellers answer its
 * credentials.
 */

interface Reporting {
  readonly what: string;
  /** Editions whose sellers do so. */
  readonly since: Edition;
  readonly until?: Edition;
  /** The buyer knows the edition of the seller, and has said so. */
  readonly knows?: true;
  /** Somebody here calls the seller, which declares its edition. */
  readonly declares?: true;
  readonly by: 'HMAC' | 'signature';
  readonly purpose?: 'request-signing';
  readonly payload?: () => object;
  readonly open?: Partial<Record<Name, { readonly answer: string; readonly reason: string }>>;
}

const NO_REPORT = {
  answer: 'refused webhook_mode_mismatch 401',
  reason: 'by HMAC reports alone count; an alarm names the option auth',
} as const;

const REPORTING: readonly Reporting[] = [
  { what: 'report by HMAC', since: '3.0', by: 'HMAC' },
  { what: 'report, signed', since: '3.0', by: 'signature' },
  { what: 'report by HMAC, edition known', since: '3.0', until: '3.2', knows: true, by: 'HMAC' },
  { what: 'report, signed, edition known', since: '3.0', knows: true, by: 'signature' },
  { what: 'report by HMAC, edition declared', since: '3.0', until: '3.2', declares: true, by: 'HMAC' },
  { what: 'report, signed, edition declared', since: '3.0', declares: true, by: 'signature' },
  {
    what: 'report, signed by a key for requests',
    since: '3.1',
    by: 'signature',
    purpose: 'request-signing',
    open: { proto: WAYS.find(({ purpose }) => purpose)?.open?.proto ?? NO_REPORT },
  },
  { what: 'task, signed', since: '3.0', by: 'signature', payload: () => payloads.tool('completed') },
  {
    what: 'task by HMAC',
    since: '3.0',
    by: 'HMAC',
    payload: () => payloads.tool('completed'),
    open: { proto: NO_REPORT, adcp: NO_REPORT },
  },
];

const REPORTING_ROWS = NAMES.flatMap((name) =>
  EDITIONS.flatMap((edition) =>
    REPORTING.filter(({ since, until = '3.3' }) => since <= edition && edition <= until).map((way) => ({
      name,
      edition,
      way,
      what: way.what,
    })),
  ),
);

describe('reports of sellers of every edition are understood with nothing to set', () => {
  const lines: string[] = [];
  let seller: FakeSeller;
  beforeAll(async () => {
    seller = await createFakeSeller({ url: URL_GIVEN });
  });
  afterAll(async () => {
    await seller.close();
    console.info(['name  edition  what it sends to reporting_webhook', ...lines].join('\n'));
  });

  it.each(REPORTING_ROWS)('$name $edition: $what', async ({ name, edition, way }) => {
    const { agentUrl, documents } = seller;
    const key = await generateKey('ed25519', way.purpose ?? 'webhook-signing', { protocol: name });
    documents.clear();
    plain({
      agentUrl,
      origin: new URL(agentUrl).origin,
      key,
      set: (path, document) => documents.set(path, document),
    });
    const store = memoryStore();
    if (way.declares) await called(store, agentUrl, edition, {});
    const registrations = createRegistrations({
      call: anyClient,
      store,
      baseUrl: 'https://buyer.example/webhooks',
      secrets: ['a-secret-of-forty-characters-and-no-more'],
      allowLoopback: true,
    });
    const { publicUrl, senders } = registrations;
    const at = await testReceiver({ store, registrations, publicUrl, senders, allowLoopback: true });
    const known = { agentUrl, ...(way.knows && { edition }) };
    const asked = await registrations.reportingWebhook(known, { frequency: 'daily' });
    const { url, authentication } = asked as {
      readonly url: string;
      readonly authentication?: { readonly schemes: readonly string[]; readonly credentials: string };
    };
    const isKnown = way.knows ?? way.declares;
    // What every schema before 3.3 requires, and no seller of 3.3 has to be given.
    expect(authentication?.schemes).toEqual(isKnown && edition === '3.3' ? undefined : ['HMAC-SHA256']);
    // Of an operation that nobody here has begun: a name would be a warning.
    const body = { ...(way.payload?.() ?? payloads.report()), operation_id: undefined };
    const { headers, body: sent } =
      way.by === 'HMAC'
        ? signHmac({ url, body, secret: authentication?.credentials ?? '', protocol: name })
        : await at.sign(body, { url, key: key.privateJwk, protocol: name });
    const outcome = await at.receiver.verifyAndDispatch(sent, headers, { url });
    const answer = `${said(outcome)}${at.seen.length === 1 ? ', handled' : ''}`;
    const open = way.open?.[name];
    lines.push(
      `${name.padEnd(6)}${edition}      ${way.what.padEnd(38)}${answer}${open ? ` (${open.reason})` : ''}`,
    );
    expect(answer).toBe(open?.answer ?? TAKEN);
    await alarmsTold();
    if (open) expect(at.alarms.length).toBeGreaterThan(0);
    else expect(at.alarms).toEqual([]);
    await registrations.stop();
  });
});
