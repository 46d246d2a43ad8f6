import { createHash, createHmac, randomUUID } from 'node:crypto';
import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http';
import { text } from 'node:stream/consumers';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { mcpCaller } from '../../src/registrations/mcp.ts';
import { listening, type Listening } from '../adapters/raw-client.ts';
import { AGENT_SET, type SubscriptionSeller, subscriptionSeller } from './seller/seller.ts';
import { accountOf, LEGACY_OTHER, OTHERS } from './seller/others.ts';

/* The seller of the proof is judged itself, by an endpoint that knows nothing of the library. */

const SECRET = 'a-secret-of-more-than-thirty-two-characters';

interface Got {
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
  readonly body: Readonly<Record<string, unknown>>;
}

let seller: SubscriptionSeller;
let endpoint: Listening;
let got: Got[];
let says: (body: Got['body'], nth: number) => { readonly status: number; readonly body: unknown };

const echo: typeof says = ({ challenge }) => ({ status: 200, body: { challenge } });

beforeEach(async () => {
  seller = await subscriptionSeller();
  seller.add(accountOf('acc-1'));
  for (const entry of [...OTHERS, LEGACY_OTHER]) seller.put('acc-1', entry);
  seller.log.splice(0);
  got = [];
  says = echo;
  endpoint = await listening((req, res) => void answered(req, res));
});
afterEach(async () => {
  await seller.close();
  await endpoint[Symbol.asyncDispose]();
});

async function answered(req: IncomingMessage, res: ServerResponse): Promise<void> {
  const raw = await text(req);
  const body = JSON.parse(raw) as Got['body'];
  got.push({ headers: req.headers, text: raw, body });
  const { status, body: answer } = says(body, got.length);
  res.writeHead(status, { 'Content-Type': 'application/json' }).end(JSON.stringify(answer));
}

const entryOf = (members: object = {}): object => ({
  subscriber_id: 'me',
  url: `${endpoint.url}/hooks`,
  event_types: ['product.updated', 'creative.status_changed'],
  ...members,
});

interface Told {
  readonly [member: string]: unknown;
  readonly accounts: readonly {
    readonly action: string;
    readonly errors?: readonly { readonly code: string; readonly field: string }[];
    readonly notification_configs?: readonly unknown[];
  }[];
}

/** By the transport's client. */
const ask = async (
  operation: string,
  args: object,
  token: string | undefined = seller.token,
): Promise<Told> =>
  (await mcpCaller({
    allowLoopback: true,
    timeoutMs: 5_000,
    ...(token !== '' && { auth: { type: 'bearer', token } }),
  })(seller.agentUrl, operation, args as Record<string, never>, {
    signal: AbortSignal.timeout(10_000),
  })) as Told;

const sync = (configs: unknown, more: object = {}): Promise<Told> =>
  ask('sync_accounts', {
    idempotency_key: randomUUID(),
    accounts: [{ account: { account_id: 'acc-1' }, notification_configs: configs }],
    ...more,
  });

const mine = (): readonly unknown[] =>
  seller.entries('acc-1').filter((entry) => entry.subscriber_id === 'me');
const before = [...OTHERS, LEGACY_OTHER];

describe('the seller of subscriptions', () => {
  it('lists accounts in pages, and those that an account object names, without credentials', async () => {
    for (let at = 2; at <= 5; at += 1) seller.add(accountOf(`acc-${at}`));
    const first = await ask('list_accounts', {});
    expect(first.accounts).toHaveLength(2);
    expect(first['pagination']).toEqual({ has_more: true, cursor: 'at-2' });
    const last = await ask('list_accounts', { pagination: { cursor: 'at-4' } });
    expect(last.accounts).toHaveLength(1);
    expect(last['pagination']).toEqual({ has_more: false });
    const named = await ask('list_accounts', { account: { brand: { domain: 'acc-1.example' } } });
    expect(named.accounts).toMatchObject([{ account_id: 'acc-1' }]);
    expect(named.accounts[0]?.notification_configs).toHaveLength(4);
    expect(JSON.stringify(named)).not.toContain('credentials');
    expect(JSON.stringify(named)).toContain('"schemes":["HMAC-SHA256"]');
  });

  it('takes the array as the set: left out changes nothing, empty removes all', async () => {
    expect((await sync(undefined)).accounts).toMatchObject([{ action: 'unchanged' }]);
    expect(seller.entries('acc-1')).toEqual(before);
    expect((await sync([...before, entryOf()])).accounts).toMatchObject([{ action: 'updated' }]);
    expect(seller.entries('acc-1')).toEqual([...before, { ...entryOf(), active: true }]);
    expect((await sync([...before, entryOf()])).accounts).toMatchObject([{ action: 'unchanged' }]);
    expect((await sync([])).accounts).toMatchObject([{ action: 'updated', notification_configs: [] }]);
    expect(seller.entries('acc-1')).toEqual([]);
  });

  it.each([
    ['a member that is not known', { colour: 'red' }, 'VALIDATION_ERROR', '[4].colour'],
    ['a name that is none', { subscriber_id: 'me and you' }, 'VALIDATION_ERROR', '[4].subscriber_id'],
    ['a name of another', { subscriber_id: 'other.paused' }, 'VALIDATION_ERROR', '[4].subscriber_id'],
    ['a type of agents', { event_types: ['capabilities.changed'] }, 'VALIDATION_ERROR', '[4].event_types'],
    ['a type of media buys', { event_types: ['impairment'] }, 'VALIDATION_ERROR', '[4].event_types'],
    ['no type', { event_types: [] }, 'VALIDATION_ERROR', '[4].event_types'],
    ['a URL that is none', { url: 'http://buyer.example/' }, 'INVALID_REQUEST', '[4].url'],
    ['no credentials', { authentication: { schemes: ['Bearer'] } }, 'VALIDATION_ERROR', '[4].authentication'],
  ])('one bad entry fails the account, and its set stays: %s', async (_what, members, code, field) => {
    const { accounts } = await sync([...before, entryOf(members)]);
    const errors = [{ code, field: `accounts[0].notification_configs${field}` }];
    expect(accounts).toMatchObject([{ action: 'failed', errors }]);
    expect(seller.entries('acc-1')).toEqual(before);
    expect(got).toEqual([]);
  });

  it('takes no more than sixteen entries', async () => {
    const many = Array.from({ length: 13 }, (_, at) => entryOf({ subscriber_id: `me-${at}`, active: false }));
    expect((await sync([...before, ...many])).accounts).toMatchObject([{ action: 'failed' }]);
    expect((await sync([...before, ...many.slice(1)])).accounts).toMatchObject([{ action: 'updated' }]);
  });

  it('previews in a dry run, without a proof of control', async () => {
    const { accounts, dry_run: isDry } = await sync([...before, entryOf()], { dry_run: true });
    expect([isDry, accounts]).toMatchObject([true, [{ action: 'updated' }]]);
    expect(got).toEqual([]);
    expect(seller.entries('acc-1')).toEqual(before);
  });

  it('knows a request by its key and its payload', async () => {
    const key = { idempotency_key: randomUUID() };
    expect(await sync([...before, entryOf()], key)).not.toHaveProperty('replayed');
    seller.drop('acc-1', 'me');
    expect(await sync([...before, entryOf()], key)).toMatchObject({ replayed: true });
    expect(mine()).toEqual([]);
    await expect(sync(before, key)).rejects.toMatchObject({ code: 'IDEMPOTENCY_CONFLICT' });
    seller.forgetKeys();
    await sync([...before, entryOf()], key);
    expect(mine()).toHaveLength(1);
  });

  it('asks for a proof of control during the call, signed whatever the mode, and for a fresh one after a change', async () => {
    await sync([...before, entryOf()]);
    expect(got).toHaveLength(1);
    expect(got[0]?.headers).toMatchObject({ 'signature-input': expect.stringContaining('sig1=') });
    expect(got[0]?.body).toMatchObject({
      type: 'webhook.challenge',
      account_id: 'acc-1',
      subscriber_id: 'me',
      seller_agent_url: seller.agentUrl,
      delivery_auth: { mode: 'rfc9421' },
      event_types: ['product.updated', 'creative.status_changed'],
    });
    const authentication = { schemes: ['HMAC-SHA256'], credentials: SECRET };
    const changes = [
      { event_types: ['creative.status_changed', 'product.updated'] },
      { event_types: ['product.updated'] },
      { event_types: ['product.updated'], url: `${endpoint.url}/other` },
      { event_types: ['product.updated'], url: `${endpoint.url}/other`, authentication },
      { event_types: ['product.updated'], url: `${endpoint.url}/other`, authentication, active: false },
      { event_types: ['product.updated'], url: `${endpoint.url}/other`, authentication },
    ];
    const asked: number[] = [];
    for (const members of changes) {
      expect((await sync([...before, entryOf(members)])).accounts).toMatchObject([{ action: 'updated' }]);
      asked.push(got.length);
    }
    expect(asked).toEqual([1, 2, 3, 4, 4, 5]);
    expect(got[4]?.headers).toHaveProperty('signature');
    expect(got[4]?.body['delivery_auth']).toEqual({
      mode: 'HMAC-SHA256',
      credential_fingerprint: createHash('sha256').update(SECRET).digest('hex'),
    });
  });

  it.each([
    ['no echo', () => ({ status: 200, body: { challenge: 'another' } })],
    ['more than the echo', ({ challenge }) => ({ status: 200, body: { challenge, more: 1 } })],
    ['no', () => ({ status: 403, body: {} })],
  ] as readonly (readonly [string, typeof says])[])(
    'a proof that fails twice fails the account: %s',
    async (_what, answer) => {
      says = answer;
      const { accounts } = await sync([...before, entryOf()]);
      const errors = [{ code: 'VALIDATION_ERROR', field: 'accounts[0].notification_configs[4].url' }];
      expect(accounts).toMatchObject([{ action: 'failed', errors }]);
      expect(got).toHaveLength(2);
      expect(seller.entries('acc-1')).toEqual(before);
      says = (body, nth) => (nth === 3 ? { status: 503, body: {} } : echo(body, nth));
      expect((await sync([...before, entryOf()])).accounts).toMatchObject([{ action: 'updated' }]);
      expect(got).toHaveLength(4);
    },
  );

  it('an entry of others that is changed needs a proof that nobody gives', async () => {
    const changed = before.map((entry) =>
      entry === LEGACY_OTHER
        ? { ...entry, authentication: { schemes: ['Bearer'], credentials: SECRET } }
        : entry,
    );
    expect((await sync(changed)).accounts).toMatchObject([{ action: 'failed' }]);
    expect(seller.entries('acc-1')).toEqual(before);
  });

  it('has a set of its own for each principal of the agent', async () => {
    const agent = entryOf({ event_types: ['capabilities.changed'] });
    const set = (configs: unknown, more: object = {}): Promise<Told> =>
      ask('sync_agent_notification_configs', {
        idempotency_key: randomUUID(),
        notification_configs: configs,
        ...more,
      });
    expect(await set([agent])).toMatchObject({ action: 'updated' });
    expect(got[0]?.body).toMatchObject({ scope: 'agent', subscriber_id: 'me' });
    expect(got[0]?.body).not.toHaveProperty('account_id');
    expect(await set([agent], { dry_run: true })).toMatchObject({ action: 'unchanged', dry_run: true });
    expect(seller.entries(AGENT_SET)).toHaveLength(1);
    expect(await set([entryOf()])).toMatchObject({ action: 'failed' });
    expect(await set([])).toMatchObject({ action: 'cleared' });
    const nobody = ask(
      'sync_agent_notification_configs',
      { idempotency_key: randomUUID(), notification_configs: [] },
      '',
    );
    await expect(nobody).rejects.toMatchObject({ code: 'AUTH_MISSING' });
  });

  it('sends events in the mode of each entry, to active ones alone', async () => {
    const authentication = { schemes: ['HMAC-SHA256'], credentials: SECRET };
    const bearer = { schemes: ['Bearer'], credentials: SECRET };
    const types = { event_types: ['wholesale_feed.bulk_change'] };
    await sync([
      ...before,
      entryOf(types),
      entryOf({ ...types, subscriber_id: 'me-hmac', authentication }),
      entryOf({ ...types, subscriber_id: 'me-bearer', authentication: bearer }),
      entryOf({ ...types, subscriber_id: 'me-paused', active: false }),
    ]);
    got = [];
    const sent = await seller.emit('acc-1', endpoint.url);
    expect(sent.map(({ subscriberId, status }) => [subscriberId, status])).toEqual([
      ['me', 200],
      ['me-hmac', 200],
      ['me-bearer', 200],
    ]);
    const of = (id: string): Got => got.find(({ body }) => body['subscriber_id'] === id) as Got;
    expect(of('me').headers).toHaveProperty('signature');
    const { headers, text: raw } = of('me-hmac');
    const at = String(headers['x-proto-timestamp']);
    expect(headers['x-proto-signature']).toBe(
      `sha256=${createHmac('sha256', SECRET).update(`${at}.${raw}`).digest('hex')}`,
    );
    expect(of('me-bearer').headers.authorization).toBe(`Bearer ${SECRET}`);
  });

  it('does what a test says of the next call', async () => {
    const dry = { operation: 'sync_accounts', isDry: true };
    const real = { operation: 'sync_accounts', isDry: false };
    seller.next(real, { isLost: true });
    await expect(sync([])).rejects.toThrow(/./);
    expect(seller.entries('acc-1')).toEqual(before);
    seller.next(real, { isUnanswered: true });
    await expect(sync([])).rejects.toThrow(/./);
    expect(seller.entries('acc-1')).toEqual([]);
    seller.next(dry, { isReal: true });
    expect(await sync([entryOf()], { dry_run: true })).not.toHaveProperty('dry_run');
    expect(mine()).toHaveLength(1);
    seller.next(real, { isTwice: true });
    expect(await sync([])).toMatchObject({ replayed: true });
    const error = { code: 'RATE_LIMITED', message: 'later', retry_after: 7 };
    seller.next(real, { error });
    await expect(sync([entryOf()])).rejects.toMatchObject({ code: 'RATE_LIMITED', retryAfterMs: 7_000 });
    seller.next(real, { before: () => seller.put('acc-1', LEGACY_OTHER) });
    await sync([entryOf({ active: false })]);
    expect(seller.log.filter(({ what }) => what === 'set').at(-2)).toMatchObject({ entries: [LEGACY_OTHER] });
  });
});
