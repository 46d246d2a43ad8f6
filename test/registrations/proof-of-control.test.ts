import { createHash, randomBytes, randomUUID } from 'node:crypto';
import { afterEach, describe, expect, it } from 'vitest';
import { webhookHandler } from '../../src/adapters/node.ts';
import { type Alarm, createReceiver, Fault, type SenderAuth, type Store } from '../../src/index.ts';
import type { Event } from '../../src/events/index.ts';
import { type CallSeller, createRegistrations, type RouteScheme } from '../../src/registrations/index.ts';
import {
  newSubscriberId,
  registrationsOf,
  setName,
  setRow,
  type Subscription,
  type SubscriptionSet,
} from '../../src/registrations/for-tests.ts';
import { createFakeSeller, type DeliverOptions } from '../../src/testing/index.ts';
import { listening } from '../adapters/raw-client.ts';
import { BACKENDS, channel } from '../inbox/setup.ts';
import { SILENT_LOGGER } from '../support/silent-logger.ts';
import { hashes, NEWEST } from './kit.ts';
import { type Entry, subscriptionSeller } from './subscription-seller.ts';

/*
 * Two processes on one store: one makes the subscription, the other has the receiver, and was asked of no URL before the seller
 * posts its proof of control there. Between seller and receiver there is real HTTP.
 */

const TYPES = ['creative.purged', 'creative.status_changed'];
const ACCOUNT = { brand: { domain: 'acme.example' }, operator: 'buyer.example' };
const CASES = Object.keys(BACKENDS).flatMap((name) =>
  (['inline', 'inbox'] as const).map((mode) => [mode, name] as const),
);

const fingerprint = (credential: string): string => createHash('sha256').update(credential).digest('hex');

const ends: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const end of ends.splice(0).toReversed()) await end();
});

/** The store of one process, whose steps over registrations are counted and can be made to fail. */
function watched(store: Store) {
  const { registrations } = store;
  if (!registrations) return expect.fail('the store has them');
  const at = { runs: 0, failures: 0 };
  const run: typeof registrations.run = async (sender, plan) => {
    at.runs += 1;
    if (at.failures === 0) return registrations.run(sender, plan);
    at.failures -= 1;
    throw new Fault('store_unavailable', 'connection refused');
  };
  return { store: { ...store, registrations: { ...registrations, run } }, at };
}

/** What it was told: a proof of control is judged by the URL by which it comes. */
const NOWHERE = { base: 'https://buyer.example', route: 'r' } as const;

interface Of extends Partial<Pick<SubscriptionSet, 'accountId' | 'subscriptions'>> {
  /** It is the set of the whole agent. */
  readonly isAgents?: true;
}

async function world(name = 'memory', mode: 'inline' | 'inbox' = 'inline') {
  const backend = (BACKENDS[name] ?? expect.fail(name))();
  const receiverOf: { handler?: ReturnType<typeof webhookHandler> } = {};
  const server = await listening((req, res) => receiverOf.handler?.(req, res));
  const options = { baseUrl: `${server.url}/webhooks`, secrets: [NEWEST], allowLoopback: true };
  const here = backend.open();
  await here.open();
  const { store, at } = watched(backend.open());
  const alarms: Alarm[] = [];
  const handled = channel<{ readonly event: Event; readonly chargedAttempts: number }>();
  const receiver = createReceiver({
    store,
    registrations: registrationsOf(
      { ...options, store },
      {
        hashes,
        randomBytes: (count) => new Uint8Array(randomBytes(count)),
        newId: () => randomUUID(),
        // Routes stay cached, so that steps can be counted.
        now: () => 0,
        sleep: async () => {},
      },
    ),
    allowLoopback: true,
    mode,
    logger: SILENT_LOGGER,
    retry: { baseMs: 1, maxMs: 1 },
    durability: { require: 'process' },
    onAlarm: (alarm) => void alarms.push(alarm),
    handlers: { other: (event, { chargedAttempts }) => handled.push({ event, chargedAttempts }) },
  });
  receiverOf.handler = webhookHandler(receiver);
  if (mode === 'inbox') await receiver.start();
  ends.push(async () => {
    await receiver.stop();
    await server[Symbol.asyncDispose]();
    await here.close();
    backend.remove();
  });
  const changing = (call?: CallSeller) => createRegistrations({ ...options, store: here, call });

  /** A seller, and what it is told by the process that makes the change. */
  const sellerOf = async () => {
    const seller = await createFakeSeller({ retry: { attempts: 1 } });
    ends.push(() => seller.close());
    const { agentUrl, brandJsonUrl } = seller;
    const toldUrl = async (scheme: RouteScheme) => {
      const { toolArguments } = await changing().create({
        agentUrl,
        brandJsonUrl,
        scheme,
        taskType: 'create_media_buy',
        arguments: {},
      });
      const { url, authentication } = toolArguments['push_notification_config'] as {
        readonly url: string;
        readonly authentication?: { readonly credentials: string };
      };
      return { url, credentials: authentication?.credentials ?? '' };
    };
    /** Keeps a set as `subscribe` does before it calls the seller. */
    const kept = async (changes: Partial<Subscription> = {}, of: Of = {}) => {
      const { isAgents = false, ...more } = of;
      const setId = setName(isAgents ? undefined : ACCOUNT, hashes);
      const subscription: Subscription = {
        ref: 'creatives of acme',
        subscriberId: newSubscriberId(setId, (count) => new Uint8Array(randomBytes(count))),
        state: 'pending',
        since: 1,
        eventTypes: TYPES,
        scheme: 'signature',
        ...NOWHERE,
        ...changes,
      };
      const set: SubscriptionSet = {
        seller: { agentUrl, brandJsonUrl },
        ...(isAgents ? { exclusive: true } : { account: JSON.stringify(ACCOUNT) }),
        subscriptions: [subscription],
        ...more,
      };
      await here.registrations?.run(agentUrl, (rows) => rows.save(setRow(setId, set, 1)));
      return { ...(await toldUrl(subscription.scheme)), subscriberId: subscription.subscriberId };
    };
    return { seller, kept, toldUrl };
  };

  return { ...(await sellerOf()), sellerOf, changing, alarms, handled, at };
}

type World = Awaited<ReturnType<typeof world>>;
type Told = Awaited<ReturnType<World['kept']>>;

/** What a proof of control says of the subscription as it was kept. */
const proofOf = ({ subscriberId }: Told, changes: object = {}) => ({
  subscriber_id: subscriberId,
  event_types: TYPES,
  ...changes,
});

const answer = async ({ seller }: World, told: Told, changes: object = {}, options: DeliverOptions = {}) => {
  const { verified, attempt } = await seller.challenge(proofOf(told, changes), { url: told.url, ...options });
  return `${attempt.status}${verified ? ' verified' : ''}`;
};

const YES = '200 verified';
const NO = '403';

/** The alarm of the last no, which names registrations. */
function reason({ alarms, seller }: World): string {
  const last = alarms.at(-1);
  expect(last).toMatchObject({ code: 'challenge_refused', option: 'registrations', sender: seller.agentUrl });
  return last?.message ?? '';
}

describe.each(CASES)('mode %s on %s: made at one process, answered at another', (mode, name) => {
  it('the first proof is right, and the events behind it say whose they are', async () => {
    const at = await world(name, mode);
    const told = await at.kept();
    expect(await answer(at, told)).toBe(YES);
    const event = at.seller.payloads.family('creative.purged', {
      subscriber_id: told.subscriberId,
      account_id: 'acc_1',
    });
    at.at.runs = 0;
    await at.seller.deliver(event, { url: told.url });
    expect((await at.handled.next()).event.subscription).toEqual({
      subscriberId: told.subscriberId,
      accountId: 'acc_1',
      ref: 'creatives of acme',
    });
    expect(at.at.runs).toBe(1);
    expect(at.alarms).toEqual([]);
  });

  it('a look-up of the ref that fails loses nothing: the event is run again, and no attempt is counted', async () => {
    const at = await world(name, mode);
    const told = await at.kept();
    const payload = at.seller.payloads.family('creative.purged', { subscriber_id: told.subscriberId });
    expect(await answer(at, told)).toBe(YES);
    at.at.failures = 1;
    const { last } = await at.seller.deliver(payload, { url: told.url });
    expect(last.status).toBe(mode === 'inline' ? 503 : 200);
    if (mode === 'inline') await at.seller.deliver(payload, { url: told.url });
    const { event, chargedAttempts } = await at.handled.next();
    expect(event.subscription).toEqual({ subscriberId: told.subscriberId, ref: 'creatives of acme' });
    expect(chargedAttempts).toBe(1);
  });
});

describe('event.subscription', () => {
  it('has no ref where the subscriber is of nobody, or of another seller, and costs no step where it is not ours', async () => {
    const at = await world();
    const told = await at.kept();
    const other = await at.sellerOf();
    const { url } = await other.toldUrl('signature');
    const seen = async (subscriber_id: unknown) => {
      const payload = other.seller.payloads.family('creative.purged', { subscriber_id });
      await other.seller.deliver(payload, { url });
      return (await at.handled.next()).event.subscription;
    };
    const unknown = `${told.subscriberId.slice(0, -1)}~`.replace(
      '~',
      told.subscriberId.endsWith('A') ? 'B' : 'A',
    );
    for (const subscriberId of [told.subscriberId, unknown])
      expect(await seen(subscriberId)).toEqual({ subscriberId });
    at.at.runs = 0;
    expect(await seen('sub_1')).toEqual({ subscriberId: 'sub_1' });
    expect(await seen(['sub_1'])).toBeUndefined();
    expect(at.at.runs).toBe(0);
  });
});

describe('a proof of control is answered by what is kept (subscriptions.md §3.1)', () => {
  it.each([
    ['another order', TYPES.toReversed(), YES],
    ['one of them twice', [...TYPES, 'creative.purged'], YES],
    ['more', [...TYPES, 'product.created'], NO],
    ['fewer', ['creative.purged'], NO],
    ['another', ['creative.purged', 'product.created'], NO],
    ['none', [], NO],
    ['no member', undefined, NO],
  ])('event types: %s', async (_what, event_types, expected) => {
    const at = await world();
    expect(await answer(at, await at.kept(), { event_types })).toBe(expected);
    if (expected === NO) {
      expect(reason(at)).toMatch(/event_types .*"creative\.purged".*"creative\.status_changed"/);
      if (event_types?.includes('product.created')) expect(reason(at)).toContain('"product.created"');
    }
  });

  it('those of the form that was active last are right too, until the wanted one is', async () => {
    const at = await world();
    const last = { ...NOWHERE, eventTypes: ['product.created'], scheme: 'signature' } as const;
    const told = await at.kept({ last });
    expect(await answer(at, told)).toBe(YES);
    expect(await answer(at, told, { event_types: last.eventTypes })).toBe(YES);
    expect(await answer(at, told, { event_types: [...TYPES, ...last.eventTypes] })).toBe(NO);
  });

  it.each([
    ['its own', { account_id: 'acc_1' }, YES],
    ['another', { account_id: 'acc_2' }, NO],
    ['none', { account_id: undefined }, NO],
    ['the agent', { account_id: undefined, scope: 'agent' }, NO],
    ['its own and the agent', { account_id: 'acc_1', scope: 'agent' }, NO],
  ])('the account: %s', async (_what, changes, expected) => {
    const at = await world();
    const told = await at.kept({}, { accountId: 'acc_1' });
    expect(await answer(at, told, changes)).toBe(expected);
    if (expected === NO) expect(reason(at)).toMatch(/account_id|scope/);
  });

  it('the agent: scope is agent, and no account', async () => {
    const at = await world();
    const eventTypes = ['capabilities.changed'];
    const told = await at.kept({ eventTypes }, { isAgents: true });
    const proof = { event_types: eventTypes, account_id: undefined };
    expect(await answer(at, told, { ...proof, scope: 'agent' })).toBe(YES);
    expect(await answer(at, told, proof)).toBe(NO);
    expect(reason(at)).toContain("scope 'agent'");
  });

  it.each([
    ['pending', YES],
    ['active', YES],
    ['lost', YES],
    ['removing', NO],
  ] as const)('the state %s', async (state, expected) => {
    const at = await world();
    expect(await answer(at, await at.kept({ state }))).toBe(expected);
  });

  it('one that is gone, or was never there, is nobody’s: the alarm says what to do', async () => {
    const at = await world();
    const told = await at.kept();
    const old = `${told.subscriberId.slice(0, 44)}${'x'.repeat(16)}`;
    expect(await answer(at, { ...told, subscriberId: old })).toBe(NO);
    expect(reason(at)).toContain('no subscription that is kept');
    await at.kept({}, { subscriptions: [] });
    for (const subscriberId of ['sub_1', `${'x'.repeat(43)}.${'x'.repeat(16)}`]) {
      expect(await answer(at, { ...told, subscriberId })).toBe(NO);
      expect(at.alarms.at(-1)).toMatchObject({
        option: 'onChallenge',
        message: expect.stringContaining('registrations.subscribe'),
      });
    }
  });

  it('another seller’s subscription is nobody’s at its own URL, and its signature is wrong at ours', async () => {
    const at = await world();
    const told = await at.kept();
    const other = await at.sellerOf();
    const { url } = await other.toldUrl('signature');
    const stolen = await other.seller.challenge(proofOf(told), { url });
    expect(stolen).toMatchObject({ verified: false, attempt: { status: 403 } });
    const forged = { ...proofOf(told), seller_agent_url: at.seller.agentUrl };
    expect(await other.seller.challenge(forged, { url: told.url })).toMatchObject({
      verified: false,
      attempt: { status: 401 },
    });
    expect(await answer(at, told, {}, { mistake: 'tampered-body' })).toBe('401');
    expect(await answer(at, told)).toBe(YES);
  });

  it('is not to be replayed, and a store that cannot be asked burns no nonce', async () => {
    const at = await world();
    const told = await at.kept();
    expect(await answer(at, told)).toBe(YES);
    const { attempt } = await at.seller.challenge(proofOf(told), { url: told.url });
    expect(attempt.status).toBe(200);
    expect(await at.seller.send(attempt.delivery)).toMatchObject({ status: 401 });
    at.at.failures = 1;
    const failed = await at.seller.challenge(proofOf(told), { url: told.url });
    expect(failed).toMatchObject({ verified: false, attempt: { status: 503 } });
    expect(await at.seller.send(failed.attempt.delivery)).toMatchObject({ status: 200 });
  });
});

describe.each([
  ['HMAC-SHA256', (secret: string): SenderAuth => ({ hmac: { secret } })],
  ['Bearer', (token: string): SenderAuth => ({ bearer: { token } })],
] as const)('the legacy scheme %s', (scheme, authOf) => {
  it('the proof is signed and names the credentials that we gave; events come by them', async () => {
    const at = await world();
    const told = await at.kept({ scheme });
    const named = (credential_fingerprint: string | undefined, mode: string = scheme): object => ({
      delivery_auth: { mode, credential_fingerprint },
    });
    expect(await answer(at, told, named(fingerprint(told.credentials)))).toBe(YES);
    for (const wrong of [fingerprint('credentials of somebody else'), told.credentials, '', undefined]) {
      expect(await answer(at, told, named(wrong))).toBe(NO);
      expect(reason(at)).toMatch(/credential_fingerprint is (absent|another)/);
    }
    const otherScheme = scheme === 'Bearer' ? 'HMAC-SHA256' : 'Bearer';
    for (const mode of [otherScheme, 'rfc9421']) {
      expect(await answer(at, told, named(fingerprint(told.credentials), mode))).toBe(NO);
      expect(reason(at)).toContain(`mode is "${mode}"`);
    }
    const auth = authOf(told.credentials);
    const { attempt } = await at.seller.challenge(proofOf(told), { url: told.url, auth });
    expect(attempt).toMatchObject({ status: 403 });
    const payload = at.seller.payloads.family('creative.purged', { subscriber_id: told.subscriberId });
    await at.seller.deliver(payload, { url: told.url, auth });
    expect((await at.handled.next()).event.subscription).toMatchObject({ ref: 'creatives of acme' });
  });

  it('is no at the URL that is given for signatures, and the other way round', async () => {
    const at = await world();
    const told = await at.kept({ scheme });
    const { url } = await at.toldUrl('signature');
    expect(await answer(at, { ...told, url })).toBe(NO);
    expect(reason(at)).toContain(`for ${scheme}`);
    const signed = await at.kept();
    const elsewhere = { ...signed, url: told.url };
    expect(await answer(at, elsewhere)).toBe(NO);
  });
});

describe.each(['signature', 'HMAC-SHA256', 'Bearer'] as const)('subscribe, scheme %s', (scheme) => {
  it('is proved at another process while its call is open, and again where it changes; removed it is not', async () => {
    const at = await world();
    const { agentUrl, brandJsonUrl } = at.seller;
    const set = subscriptionSeller([{ account_id: 'acc_1', ...ACCOUNT }]);
    const proofs: (readonly [types: unknown, said: string])[] = [];
    const prove = async (entry: Entry, types: unknown = entry['event_types']): Promise<string> => {
      const { credentials } = (entry['authentication'] ?? {}) as { readonly credentials?: string };
      const mode = credentials === undefined ? 'rfc9421' : scheme;
      const auth = credentials === undefined ? {} : { credential_fingerprint: fingerprint(credentials) };
      const told = {
        url: String(entry['url']),
        subscriberId: String(entry['subscriber_id']),
        credentials: '',
      };
      const said = await answer(at, told, { event_types: types, delivery_auth: { mode, ...auth } });
      proofs.push([types, said]);
      return said;
    };
    let entries: Entry[] = [];
    set.after = async ({ operation, args }) => {
      if (operation !== 'sync_accounts' || args['dry_run'] === true) return undefined;
      entries = set.accounts[0]?.notification_configs ?? [];
      for (const entry of entries) await prove(entry);
      return undefined;
    };
    const { subscribe, unsubscribe } = at.changing(set.client);
    const request = { agentUrl, brandJsonUrl, account: ACCOUNT, ref: 'creatives of acme', scheme };
    expect(await subscribe({ ...request, eventTypes: TYPES })).toMatchObject({ state: 'active' });
    const changed = ['product.created'];
    expect(await subscribe({ ...request, eventTypes: changed })).toMatchObject({ state: 'active' });
    expect(proofs).toEqual([
      [TYPES, YES],
      [changed, YES],
    ]);
    const [entry] = entries;
    expect(await prove(entry ?? {}, TYPES)).toBe(NO);
    await unsubscribe({ agentUrl, account: ACCOUNT, ref: request.ref });
    expect(await prove(entry ?? {}, changed)).toBe(NO);
    expect(at.alarms.map(({ code }) => code)).toEqual(['challenge_refused', 'challenge_refused']);
  });
});

it('what an alarm repeats of a seller’s text is short and printable', async () => {
  const at = await world();
  const told = await at.kept({}, { accountId: 'acc_1' });
  const hostile = `\u001b[31m\u202e${'x'.repeat(5_000)}`;
  const ofAgent = await at.kept({}, { isAgents: true });
  const given: readonly (readonly [Told, object])[] = [
    [ofAgent, { scope: hostile }],
    [told, { account_id: hostile }],
    [
      told,
      { event_types: Array.from({ length: 300 }, (_, nth) => `${nth}\u001b[31m${hostile.slice(0, 20)}`) },
    ],
    [told, { delivery_auth: { mode: hostile } }],
  ];
  for (const [of, changes] of given) {
    expect(await answer(at, of, changes)).toBe(NO);
    const message = at.alarms.at(-1)?.message ?? '';
    expect(message.length).toBeLessThan(1_000);
    // oxlint-disable-next-line no-control-regex -- they are what it is about
    expect(message).not.toMatch(/[\u0000-\u001f\u202e]/);
  }
});
