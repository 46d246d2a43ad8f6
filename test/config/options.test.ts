import { DatabaseSync } from 'node:sqlite';
import { Redis } from 'ioredis';
import { Pool } from 'pg';
import { createPool } from 'mysql2/promise';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { ADVANCED, type Config, MAX_TIMER_MS, resolveOptions } from '../../src/config/for-tests.ts';
import {
  ConfigError,
  createReceiver,
  createVerifier,
  type ReceiverOptions,
  type Sender,
  type Store,
} from '../../src/index.ts';
import { memoryStore } from '../../src/stores/memory.ts';

const unused = (): never => {
  throw new Error('construction does no I/O');
};
const store: Store = {
  name: 'stand-in',
  open: unused,
  durability: unused,
  accept: unused,
  complete: unused,
  fail: unused,
  renew: unused,
  peek: unused,
  close: unused,
};
const valid: ReceiverOptions = {
  publicUrl: 'https://buyer.example/webhooks/proto',
  senders: [{ agentUrl: 'https://seller.example/mcp' }],
  store,
  handlers: { other: () => {} },
};
const SECRET = 's-'.repeat(16);
const escaped = (text: string): string => text.replace(/[.*{}]/g, '\\$&');

/** Options as a user without types may write them. */
const given = (change: Record<string, unknown>): ReceiverOptions => ({ ...valid, ...change });

describe('options: defaults (admission.md §2.12)', () => {
  it('fills in every default', () => {
    expect(resolveOptions(valid)).toMatchObject({
      maxBodyBytes: 1_048_576,
      maxBufferedBytes: 134_217_728,
      bodyDeadlineMs: 10_000,
      handlerDeadlineMs: 8_000,
      maxRunMs: 900_000,
      leaseMs: 8_000,
      renewMs: 2_000,
      waitMs: 8_000,
      retentionMs: 86_400_000,
      limits: {
        maxRecordsPerSender: 1_000_000,
        maxPendingBytesPerSender: 268_435_456,
        maxNoncesPerKey: 100_000,
        maxNoncesPerSender: 200_000,
        maxNonces: 10_000_000,
      },
      retry: { attempts: 12, baseMs: 1_000, maxMs: 300_000, crashes: 5 },
      retryAfterMs: 5_000,
      queueUnattendedMs: 60_000,
      durability: { required: 'disk' },
      hostCheck: 'strict',
      allowLoopback: false,
      edition: { name: '3.0' },
      protocols: [{ name: 'proto' }, { name: 'adcp' }],
    });
  });

  it('another notification token is warned of by default, and refused where the sender says so', () => {
    const onMismatchOf = (more: object): unknown => {
      const notificationToken = { token: SECRET, ...more };
      const senders = [{ agentUrl: 'https://a.example', notificationToken }];
      return resolveOptions(given({ senders })).senders.fixed?.[0]?.notificationToken?.onMismatch;
    };
    expect(onMismatchOf({})).toBe('warn');
    for (const onMismatch of ['warn', 'refuse']) expect(onMismatchOf({ onMismatch })).toBe(onMismatch);
  });

  it('in mode inbox leases and handlers may be longer', () => {
    const { inbox } = memoryStore();
    const config = resolveOptions(given({ mode: 'inbox', store: { ...store, inbox } }));
    expect(config).toMatchObject({
      mode: 'inbox',
      handlerDeadlineMs: 900_000,
      maxRunMs: 1_800_000,
      leaseMs: 30_000,
      renewMs: 7_500,
      waitMs: 8_000,
      queueUnattendedMs: 60_000,
      retry: { attempts: 12, baseMs: 1_000, maxMs: 300_000, crashes: 5 },
    });
    expect(resolveOptions(valid).mode).toBe('inline');
  });

  it('a worker runs 10 handlers, leases as many at a time, and looks every second', () => {
    expect(resolveOptions(valid).worker).toEqual({ concurrency: 10, batch: 10, pollMs: 1_000 });
    expect(resolveOptions(given({ worker: { concurrency: 3 } })).worker).toMatchObject({ batch: 3 });
    expect(resolveOptions(given({ worker: { batch: 2 } })).worker).toMatchObject({
      concurrency: 10,
      batch: 2,
    });
  });

  it('never mutates the options', () => {
    const frozen = Object.freeze({
      ...valid,
      senders: Object.freeze([Object.freeze({ agentUrl: 'https://seller.example/mcp' })]),
      retry: Object.freeze({ attempts: 3 }),
    });
    expect(resolveOptions(frozen).retry.attempts).toBe(3);
  });

  it.each([
    [{ maxNoncesPerSender: 50_000 }, [50_000, 50_000, 10_000_000]],
    [{ maxNonces: 2 }, [2, 2, 2]],
    [{ maxNonces: 150_000 }, [100_000, 150_000, 150_000]],
    [{ maxNoncesPerSender: 500_000 }, [100_000, 500_000, 10_000_000]],
  ])('%j: no cap of nonces is over the next one by default', (change, caps) => {
    const { maxNoncesPerKey, maxNoncesPerSender, maxNonces } = resolveOptions(given(change)).limits;
    expect([maxNoncesPerKey, maxNoncesPerSender, maxNonces]).toEqual(caps);
  });

  describe('derived', () => {
    it.each<[Record<string, unknown>, Partial<Config>]>([
      [{ leaseMs: 1_000 }, { renewMs: 250, queueUnattendedMs: 60_000 }],
      [{ leaseMs: 7 }, { renewMs: 1 }],
      [{ leaseMs: 40_000 }, { renewMs: 10_000, queueUnattendedMs: 80_000 }],
      [{ leaseMs: 600_000 }, { queueUnattendedMs: 1_200_000 }],
      [{ handlerDeadlineMs: 20_000 }, { waitMs: 20_000, maxRunMs: 900_000 }],
      [{ handlerDeadlineMs: 450_001 }, { waitMs: 450_001, maxRunMs: 900_002 }],
      [{ handlerDeadlineMs: MAX_TIMER_MS }, { maxRunMs: MAX_TIMER_MS }],
      [{ handlerDeadlineMs: 20_000, advanced: { waitMs: 5 } }, { waitMs: 5 }],
      [{ maxBodyBytes: 20_000_000 }, { maxBufferedBytes: 160_000_000 }],
    ])('%j: %j', (change, derived) => {
      expect(resolveOptions(given(change))).toMatchObject(derived);
    });

    it('in the inbox a duplicate does not wait as long as a handler may run', () => {
      const { inbox } = memoryStore();
      const change = { mode: 'inbox', store: { ...store, inbox }, handlerDeadlineMs: 20_000 };
      expect(resolveOptions(given(change)).waitMs).toBe(8_000);
    });
  });

  it('memory has to survive nothing where allowLoopback is set, unless something else is said', () => {
    const memory = { store: { ...store, name: 'memory' } };
    const required = (change: Record<string, unknown>): string =>
      resolveOptions(given(change)).durability.required;
    expect(required({ ...memory, allowLoopback: true })).toBe('process');
    expect(required({ ...memory, allowLoopback: false })).toBe('disk');
    expect(required({ ...memory, allowLoopback: true, durability: { require: 'disk' } })).toBe('disk');
    expect(required({ allowLoopback: true })).toBe('disk');
    expect(required({ durability: { require: 'failover', declared: 'failover' } })).toBe('failover');
  });

  it('takes each time that is given (admission.md §7.6)', () => {
    const times = {
      handlerDeadlineMs: 102,
      leaseMs: 104,
      retentionMs: 86_400_106,
      retry: { attempts: 7, baseMs: 108, maxMs: 109, crashes: 10 },
      worker: { concurrency: 11, batch: 12, pollMs: 113 },
    };
    const advanced = {
      bodyDeadlineMs: 101,
      maxRunMs: 103,
      renewMs: 5,
      waitMs: 0,
      startMs: 0,
      queueUnattendedMs: 114,
      retryAfterMs: 115,
    };
    expect(resolveOptions(given({ ...times, advanced }))).toMatchObject({ ...times, ...advanced });
  });
});

describe('options: a mistake is a ConfigError that names the option', () => {
  type Case = readonly [string, Record<string, unknown>, RegExp];
  const cases: readonly Case[] = [
    ['no publicUrl', { publicUrl: undefined }, /publicUrl/],
    ['a relative publicUrl', { publicUrl: '/webhooks' }, /publicUrl.*absolute/],
    ['an http publicUrl', { publicUrl: 'http://buyer.example/x' }, /publicUrl.*https.*allowLoopback/],
    ['a publicUrl with user information', { publicUrl: 'https://a:b@buyer.example/x' }, /publicUrl/],
    ['a publicUrl with a fragment', { publicUrl: 'https://buyer.example/x#y' }, /publicUrl/],
    ['a publicUrl that no signature covers', { publicUrl: 'https://buyer.example/café' }, /caf%C3%A9/],
    ['a publicUrl with a space', { publicUrl: 'https://buyer.example/x?a b' }, /publicUrl/],
    ['a prefix with a query', { publicUrl: 'https://buyer.example/x?y/*' }, /publicUrl/],
    ['an unknown mode', { mode: 'queue' }, /mode.*inline, inbox/],
    ['mode inbox on a store that has none', { mode: 'inbox' }, /store: the stand-in store has no inbox/],
    ['no concurrency', { worker: { concurrency: 0 } }, /worker\.concurrency/],
    ['an empty batch', { worker: { batch: 0 } }, /worker\.batch/],
    ['a poll without a pause', { worker: { pollMs: 0 } }, /worker\.pollMs/],
    ['an unknown worker member', { worker: { threads: 2 } }, /worker: threads is not known/],
    ['a worker that is not an object', { worker: null }, /worker/],
    ['no sender', { senders: [] }, /senders: missing/],
    [
      'senders that are no list',
      { senders: { agentUrl: 'https://a.example' } },
      /senders: is one sender\. Put it into an array/,
    ],
    ['a sender without agentUrl', { senders: [{}] }, /senders\[0\]\.agentUrl/],
    ['an http sender', { senders: [{ agentUrl: 'http://seller.example' }] }, /senders\[0\]\.agentUrl.*https/],
    [
      'an unknown sender member',
      { senders: [{ agentUrl: 'https://a.example', key: 1 }] },
      /key is not known/,
    ],
    [
      'a sender twice',
      { senders: [{ agentUrl: 'https://a.example' }, { agentUrl: 'https://a.example' }] },
      /twice/,
    ],
    [
      'several kinds of auth on one URL',
      {
        senders: [
          { agentUrl: 'https://a.example' },
          { agentUrl: 'https://b.example', auth: { hmac: { secret: SECRET } } },
        ],
      },
      /several kinds of auth/,
    ],
    [
      'a secret under 32 characters',
      { senders: [{ agentUrl: 'https://a.example', auth: { hmac: { secret: 'x'.repeat(31) } } }] },
      /at least 32/,
    ],
    [
      'a token under 32 characters',
      { senders: [{ agentUrl: 'https://a.example', auth: { bearer: { token: 'short' } } }] },
      /senders\[0\]\.auth\.bearer.*at least 32/,
    ],
    [
      'a previous secret under 32 characters',
      {
        senders: [{ agentUrl: 'https://a.example', auth: { hmac: { secret: SECRET, previousSecret: '' } } }],
      },
      /at least 32/,
    ],
    [
      'one secret for two senders',
      {
        senders: [
          { agentUrl: 'https://a.example', auth: { hmac: { secret: SECRET } } },
          {
            agentUrl: 'https://b.example',
            auth: { hmac: { secret: 't-'.repeat(16), previousSecret: SECRET } },
          },
        ],
      },
      /same secret/,
    ],
    [
      'both legacy schemes at once',
      {
        senders: [
          { agentUrl: 'https://a.example', auth: { hmac: { secret: SECRET }, bearer: { token: SECRET } } },
        ],
      },
      /senders\[0\]\.auth/,
    ],
    ['an auth of null', { senders: [{ agentUrl: 'https://a.example', auth: null }] }, /senders\[0\]\.auth/],
    [
      'a misspelt member of revocation',
      { senders: [{ agentUrl: 'https://a.example', revocation: { revokedKid: ['k'] } }] },
      /senders\[0\]\.revocation: revokedKid is not known/,
    ],
    [
      'revokedKids that are no list',
      { senders: [{ agentUrl: 'https://a.example', revocation: { revokedKids: 'k' } }] },
      /senders\[0\]\.revocation\.revokedKids/,
    ],
    [
      'a revocation that is not an object',
      { senders: [{ agentUrl: 'https://a.example', revocation: null }] },
      /senders\[0\]\.revocation: must be an object like/,
    ],
    [
      'a brandJsonUrl that is not a URL',
      { senders: [{ agentUrl: 'https://a.example', brandJsonUrl: '/brand.json' }] },
      /senders\[0\]\.brandJsonUrl: .* is not an absolute URL/,
    ],
    [
      'a revocation that is a key id',
      { senders: [{ agentUrl: 'https://a.example', revocation: 'k' }] },
      /senders\[0\]\.revocation: must be an object like/,
    ],
    [
      'over 32 static senders',
      { senders: Array.from({ length: 33 }, (_, i) => ({ agentUrl: `https://s${i}.example` })) },
      /33 on one URL, at most 32\. Give each seller a path of its own/,
    ],
    [
      'an unknown way to look names up',
      { advanced: { dns: 'hosts' } },
      /advanced\.dns: "hosts" is not one of direct, system/,
    ],
    [
      'dns beside fetch',
      { advanced: { dns: 'system' }, fetch: unused },
      /advanced\.dns: has no effect beside fetch/,
    ],
    ['advanced options that are no object', { advanced: 5 }, /advanced: is not an object\. Known: renewMs/],
    ['advanced options of null', { advanced: null }, /advanced: is not an object/],
    ['a misspelt advanced option', { advanced: { waitMS: 1 } }, /advanced: waitMS is not known/],
    ['an option of the top under advanced', { advanced: { leaseMs: 5 } }, /leaseMs is not known/],
    ['a text for an advanced number', { advanced: { waitMs: '5' } }, /advanced\.waitMs: "5" is a string/],
    ['an endless Retry-After', { advanced: { retryAfterMs: 86_400_001 } }, /advanced\.retryAfterMs/],
    ['an unknown edition', { edition: '2.9' }, /edition.*3\.0, 3\.1, 3\.2/],
    ['a protocol that is not a name', { protocol: 'Proto' }, /protocol/],
    [
      'a publicUrl that is a URL object',
      { publicUrl: new URL('https://b.example') },
      /publicUrl: is not a string/,
    ],
    ['no store', { store: undefined }, /store: missing/],
    ['a path for a store', { store: 'webhooks.db' }, /store: is not a store.*sqliteStore\('webhooks.db'\)/],
    ['the maker of a store', { store: memoryStore }, /store: is a function. Call it/],
    ['the promise of a store', { store: Promise.resolve(store) }, /store: is a promise. Await it/],
    ['a database for a store', { store: new DatabaseSync(':memory:') }, /sqliteStore\(database\)/],
    ['a pool for a store', { store: new Pool() }, /postgresStore\(\{ pool \}\)/],
    ['a pool of mysql2 for a store', { store: createPool('mysql://x/y') }, /mysqlStore\(\{ pool \}\)/],
    ['a Redis for a store', { store: new Redis({ lazyConnect: true }) }, /redisStore\(\{ client \}\)/],
    ['no handlers', { handlers: undefined }, /handlers: missing/],
    ['null for handlers', { handlers: null }, /handlers: missing/],
    ...(
      [
        ['/webhooks/:seller', ':seller', '/webhooks/*'],
        ['/:seller/hook', ':seller', '/*'],
        ['/webhooks/{seller}', '{seller}', '/webhooks/*'],
        ['/webhooks/s-{id}/*', '{id}', '/webhooks/*'],
        ['/webhooks/:seller/*', ':seller', '/webhooks/*'],
      ] as const
    ).map(([path, parameter, write]): Case => [
      `a publicUrl as routers write it: ${path}`,
      { publicUrl: `https://buyer.example${path}` },
      new RegExp(
        `^publicUrl: .*the parameter ${escaped(parameter)};.*write publicUrl: 'https://buyer\\.example${escaped(write)}', and the paths in senders`,
      ),
    ]),
    ['an empty publicUrl', { publicUrl: '' }, /publicUrl: missing/],
    ['no base', { publicUrl: [] }, /^publicUrl: is an empty list\./],
    ['a base that is missing', { publicUrl: ['https://buyer.example/a', undefined] }, /publicUrl: missing/],
    ['a wrong base', { publicUrl: ['https://buyer.example/a', '/b'] }, /publicUrl: "\/b" is not an absolute/],
    [
      'nine bases',
      { publicUrl: Array.from({ length: 9 }, (_, i) => `https://b${i}.example/hook`) },
      /^publicUrl: has 9 URLs, at most 8\./,
    ],
    [
      'one base twice, as it is signed',
      { publicUrl: ['https://Buyer.example:443/%7Ea/*', 'https://buyer.example./~a/*'] },
      /^publicUrl: has https:\/\/buyer\.example\/~a\/\* twice\./,
    ],
    [
      'paths of senders under one URL among bases',
      {
        publicUrl: ['https://buyer.example/webhooks/*', 'https://buyer.example/hook'],
        senders: { '/webhooks/a': [{ agentUrl: 'https://a.example' }] },
      },
      /^senders: has paths, but publicUrl is one URL, https:\/\/buyer\.example\/hook\./,
    ],
    ['a publicUrl without a host', { publicUrl: 'https://:port/hook' }, /is not an absolute URL/],
    ['one handler for all', { handlers: () => {} }, /handlers: is not an object.*other/],
    ['retry that is a number', { retry: 5 }, /retry: must be an object like \{ attempts: 12 \}/],
    ['retry that is an array', { retry: [] }, /retry: is not an object/],
    ['advanced that is an array', { advanced: [] }, /advanced: is not an object/],
    [
      'an edition that a sender cannot have',
      { senders: [{ agentUrl: 'https://a.example', edition: '4.0' }] },
      /senders\[0\]\.edition.*3\.0, 3\.1, 3\.2/,
    ],
    ['no handler for the rest', { handlers: { completed: () => {} } }, /handlers\.other/],
    ['a handler of no status', { handlers: { other: () => {}, done: () => {} } }, /done is not known/],
    [
      'notifications that are none',
      { handlers: { other: () => {}, notifications: null } },
      /handlers\.notifications: must be an object/,
    ],
    [
      'a list of notifications',
      { handlers: { other: () => {}, notifications: [() => {}] } },
      /handlers\.notifications: must be an object/,
    ],
    [
      'a notification’s handler that is not a function',
      { handlers: { other: () => {}, notifications: { 'x.y': 1 } } },
      /handlers\.notifications\.x\.y: must be a function/,
    ],
    ['a handler that is not a function', { handlers: { other: () => {}, failed: 1 } }, /handlers\.failed/],
    ['a misspelt option', { maxBodyByte: 1 }, /maxBodyByte is not known/],
    ['a misspelt retry option', { retry: { attempt: 1 } }, /attempt is not known/],
    ['a body limit of none', { maxBodyBytes: 0 }, /maxBodyBytes/],
    [
      'less room than one body',
      { advanced: { maxBufferedBytes: 1_048_575 } },
      /maxBufferedBytes.*maxBodyBytes/,
    ],
    [
      'little room for key documents',
      { advanced: { maxKeyDocumentBytes: 1_048_576 } },
      /maxKeyDocumentBytes/,
    ],
    ['a fraction', { leaseMs: 1.5 }, /leaseMs/],
    [
      'a lease longer than the longest',
      { leaseMs: 600_001 },
      /leaseMs: 600001 is not a whole number from 4 to 600000/,
    ],
    [
      'a back-off longer than the longest',
      { retry: { maxMs: 3_600_001 } },
      /maxMs: 3600001 is not a whole number from 1 to 3600000/,
    ],
    [
      'a renewal slower than the lease',
      { leaseMs: 1000, advanced: { renewMs: 1000 } },
      /renewMs: 1000 must be under/,
    ],
    [
      'a longest run under the deadline',
      { advanced: { maxRunMs: 100 } },
      /maxRunMs: 100 must not be under handlerDeadlineMs/,
    ],
    [
      'a cap of a key’s nonces over that of its sender',
      { maxNoncesPerKey: 200_001 },
      /^maxNoncesPerKey: 200001 is over maxNoncesPerSender \(200000\), .* Lower it, or raise maxNoncesPerSender\.$/,
    ],
    [
      'likewise, of a sender’s entry',
      { senders: [{ agentUrl: 'https://a.example', maxNoncesPerKey: 6 }], maxNoncesPerSender: 5 },
      /^senders\[0\]\.maxNoncesPerKey: 6 is over maxNoncesPerSender \(5\), /,
    ],
    [
      'a cap of a sender’s nonces over that of all',
      { maxNoncesPerSender: 6, maxNonces: 5 },
      /^maxNoncesPerSender: 6 is over maxNonces \(5\), .* Lower it, or raise maxNonces\.$/,
    ],
    ['retention under 24 h', { retentionMs: 3_600_000 }, /\{ ms: 3600000, toldToSenders: true \}/],
    ['retention a ms under 24 h', { retentionMs: 86_399_999 }, /toldToSenders: true/],
    [
      'retention without its ms',
      { retentionMs: { toldToSenders: true } },
      /retentionMs: must be a number of ms/,
    ],
    ['retention nobody was told', { retentionMs: { ms: 3_600_000 } }, /toldToSenders: true \}/],
    ['false for told', { retentionMs: { ms: 9e7, toldToSenders: false } }, /toldToSenders: true \}/],
    ['a misspelt retention', { retentionMs: { ms: 9e7, told: true } }, /retentionMs: told is not known/],
    ['told, under 10 min', { retentionMs: { ms: 599_999, toldToSenders: true } }, /retentionMs\.ms/],
    ['retention over 8 days', { retentionMs: 9 * 86_400_000 }, /retentionMs/],
    ['a mode that is not there', { mode: 'outbox' }, /mode/],
    ['an unknown durability', { durability: { require: 'ram' } }, /durability\.require: "ram"/],
    ['an unknown durability, declared', { durability: { declared: 'ram' } }, /durability\.declared: "ram"/],
    ['a word for durability', { durability: 'disk' }, /durability: must be an object/],
    ['a misspelt durability', { durability: { required: 'disk' } }, /durability: required is not known/],
    ['an unknown hostCheck', { hostCheck: 'on' }, /hostCheck/],
    ['a logger without all its levels', { logger: { info: () => {} } }, /logger.*debug/],
    ['a logger of null', { logger: null }, /logger/],
    ['a switch that is a string', { allowLoopback: 'false' }, /allowLoopback.*true or false/],
    ['a * in the middle of publicUrl', { publicUrl: 'https://buyer.example/*/w' }, /final \/\*/],
    ['a path pattern', { publicUrl: 'https://buyer.example/w*' }, /final \/\*/],
    ['resultSchemas that are none', { resultSchemas: null }, /resultSchemas/],
    ['a JSON Schema', { resultSchemas: { create_media_buy: { type: 'object' } } }, /Standard Schema/],
    ['a clock in seconds', { now: () => 1_790_000_000 }, /milliseconds/],
    [
      'a secret of one repeated character',
      { senders: [{ agentUrl: 'https://a.example', auth: { hmac: { secret: 'x'.repeat(32) } } }] },
      /one character, repeated/,
    ],
    [
      'a previous token of one repeated character',
      {
        senders: [
          {
            agentUrl: 'https://a.example',
            auth: { bearer: { token: SECRET, previousToken: '\u{1F511}'.repeat(32) } },
          },
        ],
      },
      /one character, repeated/,
    ],
    ['a content type that is not a list', { contentTypes: 'application/a2a+json' }, /contentTypes.*array/],
    [
      'a content type of another kind beside one that is right',
      { contentTypes: ['application/a2a+json', 'text/json'] },
      /application\/…\+json/,
    ],
    ['a content type of another kind', { contentTypes: ['text/json'] }, /application\/…\+json/],
    ['a wildcard content type', { contentTypes: ['application/*+json'] }, /application\/…\+json/],
    [
      'a content type with parameters',
      { contentTypes: ['application/a2a+json; charset=utf-8'] },
      /without parameters/,
    ],
    ...(
      [
        ['Authorization', 'authorization'],
        ['Signature-Input', 'of signatures'],
        ['Content-Type', 'of the body'],
        ['x-proto-signature', 'of HMAC'],
        ['Host', 'of HTTP'],
        ['no name', 'no name'],
        ['', 'empty'],
      ] as const
    ).map(([header, why]): Case => [
      `a token in a header that is taken: ${why}`,
      { senders: [{ agentUrl: 'https://a.example', auth: { bearer: { token: SECRET, header } } }] },
      /bearer\.header.*X-A2A-Notification-Token/,
    ]),
    [
      'bearer tokens in several headers on one URL',
      {
        senders: [
          { agentUrl: 'https://a.example', auth: { bearer: { token: SECRET } } },
          { agentUrl: 'https://b.example', auth: { bearer: { token: `${SECRET}b`, header: 'X-Token' } } },
        ],
      },
      /several kinds of auth/,
    ],
    [
      'a short notification token',
      { senders: [{ agentUrl: 'https://a.example', notificationToken: { token: 'fifteen-chars-0' } }] },
      /notificationToken.*at least 16/,
    ],
    [
      'a notification token of one repeated character',
      { senders: [{ agentUrl: 'https://a.example', notificationToken: { token: 't'.repeat(32) } }] },
      /notificationToken.*one character, repeated/,
    ],
    [
      'another thing to do on a mismatch',
      {
        senders: [
          { agentUrl: 'https://a.example', notificationToken: { token: SECRET, onMismatch: 'drop' } },
        ],
      },
      /notificationToken\.onMismatch.*warn, refuse/,
    ],
    [
      'a notification token beside a bearer token',
      {
        senders: [
          {
            agentUrl: 'https://a.example',
            auth: { bearer: { token: SECRET } },
            notificationToken: { token: SECRET },
          },
        ],
      },
      /bearer: \{ token, header \}/,
    ],
    [
      'a token with its scheme',
      { senders: [{ agentUrl: 'https://a.example', auth: { bearer: { token: `Bearer ${SECRET}` } } }] },
      /Bearer in front/,
    ],
    [
      'a secret with white space around it',
      { senders: [{ agentUrl: 'https://a.example', auth: { hmac: { secret: ` ${SECRET}` } } }] },
      /white space/,
    ],
    ['a hook that is not a function', { onAlarm: {} }, /onAlarm/],
  ];

  it.each<readonly [string, Record<string, unknown>, string]>([
    ['agentUrl', { agentUrl: 'seller.example' }, '.agentUrl: '],
    ['brandJsonUrl', { brandJsonUrl: 'brand.json' }, '.brandJsonUrl: '],
    ['revocation', { revocation: null }, '.revocation: '],
    ['revocation.url', { revocation: { url: 'list' } }, '.revocation.url: '],
    ['revocation.discover', { revocation: { discover: 'no' } }, '.revocation.discover: '],
    ['revocation.revokedKids', { revocation: { revokedKids: [1] } }, '.revocation.revokedKids: '],
    ['auth', { auth: {} }, '.auth: '],
    ['auth.hmac', { auth: { hmac: { secret: 'x' } } }, '.auth.hmac'],
    ['auth.bearer', { auth: { bearer: { token: 'x' } } }, '.auth.bearer'],
    ['auth.reports', { auth: { reports: { secret: 'x' } } }, '.auth.reports'],
    ['edition', { edition: '2.0' }, '.edition: '],
    ['format', { format: 'rest' }, '.format: '],
    ['publishers', { publishers: 'publisher.example' }, '.publishers: '],
    ['notificationToken', { notificationToken: 'x' }, '.notificationToken: '],
    ['notificationToken.token', { notificationToken: { token: 'x' } }, '.notificationToken'],
    ['maxNoncesPerKey', { maxNoncesPerKey: 1.5 }, '.maxNoncesPerKey: '],
  ])('a mistake in %s of a sender is told with the sender’s place', (_member, change, place) => {
    const senders = [{ agentUrl: 'https://a.example' }, { agentUrl: 'https://b.example', ...change }];
    expect(() => resolveOptions(given({ senders }))).toThrow(ConfigError);
    expect(() => resolveOptions(given({ senders }))).toThrow(`senders[1]${place}`);
  });

  it.each(cases)('%s', (_, change, message) => {
    expect(() => resolveOptions(given(change))).toThrow(ConfigError);
    expect(() => resolveOptions(given(change))).toThrow(message);
  });

  it.each(Object.keys(ADVANCED))('%s at the top: names what to write', (name) => {
    expect(() => resolveOptions(given({ [name]: 1 }))).toThrow(
      new ConfigError(`options: ${name} is not known. Write advanced: { ${name}: … }.`),
    );
  });

  it('accepts retention under 24 h that senders were told', () => {
    expect(resolveOptions(given({ retentionMs: { ms: 3_600_000, toldToSenders: true } })).retentionMs).toBe(
      3_600_000,
    );
  });

  it('refuses the memory store under NODE_ENV=production', () => {
    vi.stubEnv('NODE_ENV', 'production');
    try {
      expect(() => resolveOptions(given({ store: { ...store, name: 'memory' } }))).toThrow(
        /NODE_ENV=production/,
      );
      expect(() => resolveOptions(given({}))).not.toThrow();
    } finally {
      vi.unstubAllEnvs();
    }
  });
});

describe('onRefused that cannot be', () => {
  it.each<readonly [string, unknown, RegExp]>([
    ['a text', 'refused/', /^onRefused: is neither a function nor \{ handle, maxBodyBytes \}/],
    ['null', null, /^onRefused: is neither/],
    ['an object without handle', { maxBodyBytes: 8 }, /^onRefused: is neither/],
    ['another member', { handle: () => {}, maxBytes: 8 }, /^onRefused: maxBytes is not known/],
    ['a limit that is none', { handle: () => {}, maxBodyBytes: -1 }, /^onRefused\.maxBodyBytes: -1/],
    [
      'a limit on the function',
      Object.assign(() => {}, { maxBodyBytes: 8 }),
      /^onRefused: maxBodyBytes is a member of an object: \{ handle: \(delivery\) => …, maxBodyBytes \}/,
    ],
  ])('%s is a ConfigError at construction', (_what, onRefused, message) => {
    const { publicUrl, senders } = valid;
    for (const make of [
      () => createReceiver(given({ onRefused })),
      () => createVerifier({ publicUrl, senders, onRefused: onRefused as never }),
    ]) {
      expect(make).toThrow(ConfigError);
      expect(make).toThrow(message);
    }
  });
});

describe('sellers of dev (dev.md §1.4)', () => {
  const publicUrl = 'http://127.0.0.1:3000/webhooks/*';
  const options = (senders: unknown, more: object = {}): ReceiverOptions =>
    given({ publicUrl, allowLoopback: true, senders, ...more });
  const ofDev = (host: string, path = '/proto-webhooks-dev/signature'): object => ({
    agentUrl: `http://${host}${path}`,
  });
  const ours = [
    ofDev('127.0.0.1:4646'),
    ofDev('127.0.0.2'),
    ofDev('localhost:1'),
    ofDev('dev.localhost'),
    ofDev('[::1]:4646', '/proto-webhooks-dev/hmac'),
    ofDev('0x7f.1', '/x/../proto-webhooks-dev/bearer'),
    { agentUrl: 'https://127.0.0.1/proto-webhooks-dev/' },
    ofDev('localhost.'),
    ofDev('0.0.0.0'),
    ofDev('[::]'),
    ofDev('[::ffff:127.0.0.1]'),
    ofDev('127.0.0.1', '//proto-webhooks-dev/signature'),
  ];
  const refused = /agentUrl: .*proto-webhooks dev.*NODE_ENV=production/;
  beforeEach(() => {
    vi.stubEnv('NODE_ENV', 'production');
  });
  afterEach(() => {
    vi.unstubAllEnvs();
  });

  it.each(ours)('%j is refused in production, in a list, by path and from a function', async (sender) => {
    const path = '/webhooks/dev';
    for (const allowLoopback of [true, false]) {
      const url = allowLoopback ? publicUrl : 'https://buyer.example/webhooks/*';
      for (const senders of [[sender], { [path]: [sender] }]) {
        expect(() => resolveOptions(options(senders, { publicUrl: url, allowLoopback }))).toThrow(refused);
      }
      const { senders } = resolveOptions(options(() => [sender], { publicUrl: url, allowLoopback }));
      await expect(senders.forUrl(`http://127.0.0.1:3000${path}`)).rejects.toThrow(refused);
    }
    expect(() => createVerifier({ publicUrl, senders: [sender as Sender], allowLoopback: true })).toThrow(
      refused,
    );
  });

  it('is not refused elsewhere', () => {
    vi.stubEnv('NODE_ENV', 'test');
    for (const sender of ours) expect(() => resolveOptions(options([sender]))).not.toThrow();
  });

  it.each([
    ofDev('127.0.0.1:4646', '/mcp'),
    ofDev('127.0.0.1:4646', '/a/proto-webhooks-dev/'),
    ofDev('127.0.0.1:4646', '/proto-webhooks-development'),
    ofDev('seller.example'),
    ofDev('127.seller.example'),
    ofDev('localhost.seller.example'),
  ])('%j is none', (sender) => {
    expect(() => resolveOptions(options([sender]))).not.toThrow();
  });

  it('a runtime without process is taken as none of production', () => {
    vi.stubGlobal('process', undefined);
    try {
      expect(() => resolveOptions(options([ours[0]]))).not.toThrow();
    } finally {
      vi.unstubAllGlobals();
    }
  });
});

describe('senders by path', () => {
  const publicUrl = 'https://buyer.example/webhooks/*';
  const a = { agentUrl: 'https://a.example' };
  const b = { agentUrl: 'https://b.example' };
  const at = async (senders: unknown, path: string): Promise<unknown[]> => {
    const found = await resolveOptions(given({ publicUrl, senders })).senders.forUrl(
      `https://buyer.example${path}`,
    );
    return found.map(({ agentUrl }) => agentUrl);
  };

  it.each([
    ['/webhooks/a', ['https://a.example']],
    ['/webhooks/b', ['https://a.example', 'https://b.example']],
    ['/webhooks/b?any=query', ['https://a.example', 'https://b.example']],
    ['/webhooks/a/', []],
    ['/webhooks/A', []],
    ['/webhooks/a/deeper', []],
    ['/webhooks/', []],
    ['/webhooks/constructor', []],
    ['/webhooks/__proto__', []],
    ['/', []],
  ])('%s: %j', async (path, expected) => {
    expect(await at({ '/webhooks/a': [a], '/webhooks/b': [a, b] }, path)).toEqual(expected);
  });

  it('nothing that the object inherits is a path, and one without a prototype will do', async () => {
    const inherited = Object.create({ '/webhooks/a': [a] }) as object;
    expect(() => resolveOptions(given({ publicUrl, senders: inherited }))).toThrow(/^senders: /);
    const bare = Object.assign(Object.create(null) as object, { '/webhooks/a': [a] });
    expect(await at(bare, '/webhooks/a')).toEqual(['https://a.example']);
  });

  it('what is changed afterwards changes nothing', async () => {
    const map: Record<string, unknown> = { '/webhooks/a': [a] };
    const { senders } = resolveOptions(given({ publicUrl, senders: map }));
    map['/webhooks/b'] = [b];
    expect(await senders.forUrl('https://buyer.example/webhooks/b')).toEqual([]);
  });

  it('paths are taken as deliveries are judged: dots are gone', async () => {
    expect(await at({ '/other/../webhooks/./a': [a] }, '/webhooks/a')).toEqual(['https://a.example']);
  });

  it.each<readonly [string, unknown, RegExp]>([
    ['no path', {}, /^senders: has no path\. Give at least one/],
    ['no sender at a path', { '/webhooks/a': [] }, /^senders\["\/webhooks\/a"\]: missing/],
    ['one sender at a path', { '/webhooks/a': a }, /^senders\["\/webhooks\/a"\]: is not an array/],
    ['nothing at a path', { '/webhooks/a': undefined }, /^senders\["\/webhooks\/a"\]: missing/],
    ['a wrong sender', { '/webhooks/a': [a, {}] }, /^senders\["\/webhooks\/a"\]\[1\]\.agentUrl/],
    ['no slash', { 'webhooks/a': [a] }, /is not a path\. Write it as it is/],
    ['a URL', { 'https://buyer.example/webhooks/a': [a] }, /is not a path/],
    ['a query', { '/webhooks/a?b': [a] }, /query or a fragment/],
    ['a fragment', { '/webhooks/a#b': [a] }, /query or a fragment/],
    ['a parameter', { '/webhooks/:seller': [a] }, /has :seller, and paths are exact/],
    ['a parameter in braces', { '/webhooks/{seller}': [a] }, /has \{seller\}, and paths are exact/],
    ['a star', { '/webhooks/*': [a] }, /has \*, and paths are exact/],
    ['one path twice', { '/webhooks/a': [a], '/webhooks/b/../a': [b] }, /is the path "\/webhooks\/a" again/],
    [
      'a path elsewhere',
      { '/hooks/a': [a] },
      /is not under publicUrl, https:\/\/buyer\.example\/webhooks\/\*/,
    ],
    ['the prefix without its slash', { '/webhooks': [a] }, /is not under publicUrl/],
    ['letters that no signature covers', { '/webhooks/café': [a] }, /caf%C3%A9/],
    [
      'several kinds of auth',
      { '/webhooks/a': [a, { ...b, auth: { bearer: { token: SECRET } } }] },
      /^senders\["\/webhooks\/a"\]: several kinds of auth on one URL/,
    ],
    [
      'over 32 at one path',
      { '/webhooks/a': Array.from({ length: 33 }, (_, i) => ({ agentUrl: `https://s${i}.example` })) },
      /33 on one URL, at most 32/,
    ],
    [
      'a Map',
      new Map([['/webhooks/a', [a]]]),
      /^senders: is not an array, an object of paths, or a function/,
    ],
    ['a promise', Promise.resolve([a]), /^senders: is not an array, an object of paths, or a function/],
  ])('%s is a ConfigError', (_, senders, message) => {
    const make = (): unknown => resolveOptions(given({ publicUrl, senders }));
    expect(make).toThrow(ConfigError);
    expect(make).toThrow(message);
  });

  it('are those of each base that the path is under', async () => {
    const bases = [
      'https://new.example/hooks/*',
      'https://old.example/*',
      'https://buyer.example/webhooks/*',
    ];
    const { senders } = resolveOptions(
      given({ publicUrl: bases, senders: { '/hooks/a': [a], '/webhooks/a': [a] } }),
    );
    const hosts = ['new', 'old', 'buyer'].map((name) => `https://${name}.example`);
    const of = async (path: string) =>
      Promise.all(hosts.map(async (host) => (await senders.forUrl(host + path)).length));
    expect(await of('/hooks/a')).toEqual([1, 1, 0]);
    expect(await of('/webhooks/a?b')).toEqual([0, 1, 1]);
    expect(await of('/webhooks/b')).toEqual([0, 0, 0]);
    const nowhere = given({ publicUrl: [bases[0], bases[2]], senders: { '/a': [a] } });
    expect(() => resolveOptions(nowhere)).toThrow(
      /\["\/a"\]: is not under publicUrl, https:\/\/new\.example\/hooks\/\*, https:\/\/buyer\.example\/webhooks\/\*\./,
    );
  });

  it('needs a publicUrl that ends in /*', () => {
    expect(() => resolveOptions(given({ senders: { '/webhooks/proto': [a] } }))).toThrow(
      /^senders: has paths, but publicUrl is one URL, https:\/\/buyer\.example\/webhooks\/proto\. Let it end in \/\*/,
    );
  });
});

describe('senders beside registrations', () => {
  const theirs = 'https://buyer.example/webhooks/r/';
  const registered = { agentUrl: 'https://registered.example' };
  const own = { agentUrl: 'https://own.example' };
  const registrations = {
    publicUrl: `${theirs}*`,
    senders: ({ pathname }: URL) => (pathname === '/webhooks/r/known' ? [registered] : []),
    ofEvent: async () => undefined,
  };
  const resolve = (change: Record<string, unknown>): Config =>
    resolveOptions(given({ publicUrl: undefined, senders: undefined, registrations, ...change }));
  const at = async ({ senders }: Config, path: string): Promise<unknown[]> =>
    (await senders.forUrl(`https://buyer.example${path}`)).map(({ agentUrl }) => agentUrl);

  it('registrations alone are enough', async () => {
    const config = resolve({});
    expect(config.bases).toMatchObject([{ kind: 'prefix', prefix: theirs }]);
    expect(await at(config, '/webhooks/r/known')).toEqual([registered.agentUrl]);
    expect(await at(config, '/webhooks/r/other')).toEqual([]);
    expect(await at(resolve({ senders: registrations.senders }), '/webhooks/r/known')).toEqual([
      registered.agentUrl,
    ]);
  });

  it('at each of their bases', async () => {
    const bases = [`${theirs}*`, 'https://old.example/r/*'];
    const ofTwo = { ...registrations, publicUrl: bases };
    expect(resolve({ registrations: ofTwo }).bases).toMatchObject([{ prefix: theirs }, { kind: 'prefix' }]);
    const publicUrl = ['https://buyer.example/webhooks/*', 'https://old.example/*'];
    const config = resolve({ registrations: ofTwo, publicUrl, senders: { '/webhooks/own': [own] } });
    expect(await at(config, '/webhooks/own')).toEqual([own.agentUrl]);
    expect(await at(config, '/webhooks/r/known')).toEqual([registered.agentUrl]);
    for (const senders of [{ '/r/own': [own] }, { '/webhooks/r/own': [own] }]) {
      const make = (): unknown => resolve({ registrations: ofTwo, publicUrl, senders });
      expect(make).toThrow(/is below the baseUrl of registrations, https:\/\/(?:old|buyer)\./);
    }
  });

  it('paths of the owner are added', async () => {
    const config = resolve({
      publicUrl: 'https://buyer.example/webhooks/*',
      senders: { '/webhooks/own': [own] },
    });
    expect(await at(config, '/webhooks/own')).toEqual([own.agentUrl]);
    expect(await at(config, '/webhooks/r/known')).toEqual([registered.agentUrl]);
    expect(await at(config, '/webhooks/r/other')).toEqual([]);
    expect(await at(config, '/webhooks/other')).toEqual([]);
  });

  it('a function of the owner is added, and what it says of their paths is heard', async () => {
    const config = resolve({
      publicUrl: 'https://buyer.example/webhooks/*',
      senders: ({ pathname }: URL) =>
        pathname === '/webhooks/own' || pathname === '/webhooks/r/taken' ? [own] : [],
    });
    expect(await at(config, '/webhooks/own')).toEqual([own.agentUrl]);
    expect(await at(config, '/webhooks/r/known')).toEqual([registered.agentUrl]);
    expect(await at(config, '/webhooks/r/other')).toEqual([]);
    await expect(at(config, '/webhooks/r/taken')).rejects.toThrow(
      /returns a sender for a URL below https:\/\/buyer\.example\/webhooks\/r\/, the baseUrl of registrations/,
    );
  });

  it.each<readonly [string, Record<string, unknown>, RegExp]>([
    ['a list', { senders: [own] }, /^senders: is one list for every path under publicUrl/],
    [
      'a path of theirs',
      { senders: { '/webhooks/r/own': [own] } },
      /^senders\["\/webhooks\/r\/own"\]: is below the baseUrl of registrations/,
    ],
    [
      'a path elsewhere, under their publicUrl',
      { publicUrl: undefined, senders: { '/webhooks/own': [own] } },
      /is not under publicUrl, https:\/\/buyer\.example\/webhooks\/r\/\*/,
    ],
    ['neither', { publicUrl: undefined, registrations: undefined }, /^publicUrl: missing/],
    ['no senders', { registrations: undefined }, /^senders: missing/],
  ])('%s is a ConfigError', (_, change, message) => {
    const make = (): unknown => resolve({ publicUrl: 'https://buyer.example/webhooks/*', ...change });
    expect(make).toThrow(ConfigError);
    expect(make).toThrow(message);
  });

  it('a list at a URL of its own is no overlap: what is registered is received elsewhere', async () => {
    const config = resolve({ publicUrl: 'https://buyer.example/own', senders: [own] });
    expect(await at(config, '/own')).toEqual([own.agentUrl]);
  });
});

describe('senders: the function sees the URL and is checked at each call', () => {
  it('gives the senders of a URL', async () => {
    const { senders } = resolveOptions(
      given({
        senders: (url: URL) => (url.pathname === '/a' ? [{ agentUrl: 'https://a.example' }] : []),
      }),
    );
    expect(await senders.forUrl('https://buyer.example/a')).toMatchObject([
      { agentUrl: 'https://a.example', auth: { scheme: 'signature' }, edition: { name: '3.0' } },
    ]);
    expect(await senders.forUrl('https://buyer.example/b')).toEqual([]);
  });

  it.each([
    ['no array', () => 'https://a.example'],
    ['an invalid sender', () => [{ agentUrl: 'nowhere' }]],
    [
      'several kinds of auth',
      () => [
        { agentUrl: 'https://a.example' },
        { agentUrl: 'https://b.example', auth: { bearer: { token: SECRET } } },
      ],
    ],
  ])('rejects %s with a ConfigError', async (_, senders) => {
    await expect(
      Promise.resolve(resolveOptions(given({ senders })).senders.forUrl('https://buyer.example/')),
    ).rejects.toThrow(ConfigError);
  });

  it('lets a sender override edition and nonce cap', () => {
    const { senders } = resolveOptions(
      given({ senders: [{ agentUrl: 'https://a.example', edition: '3.2', maxNoncesPerKey: 7 }] }),
    );
    expect(senders.fixed).toMatchObject([{ edition: { changedPayload: 'conflict' }, maxNoncesPerKey: 7 }]);
  });
});
