import { createHmac } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { createReceiver, ConfigError, type Event, type Sender } from '../../src/index.ts';
import { createRegistrations, type JsonObject, type Registrations } from '../../src/registrations/index.ts';
import { generateKey, signDelivery } from '../../src/sender/sign.ts';
import { memoryStore } from '../../src/stores/memory.ts';
import { createMemoryState, type MemoryState } from '../../src/stores/for-tests.ts';
import { samplePayloads } from '../../src/testing/index.ts';
import { SILENT_LOGGER } from '../support/silent-logger.ts';
import { NEWEST } from './kit.ts';
import {
  account,
  aDayLater,
  AGENT,
  configsOf,
  listed,
  ofAgent,
  oursOf,
  products,
  request,
  statesOf,
  subscriptionWorld,
} from './subscription-seller.ts';

const OLD = 'https://old.example/webhooks';
const NEW = 'https://new.example/hooks';
const payloads = samplePayloads();

/** A process of one buyer. */
function processOf(state: MemoryState, baseUrl: string | readonly string[]) {
  const store = memoryStore({ state });
  const registrations = createRegistrations({ store, baseUrl, secrets: [NEWEST], logger: SILENT_LOGGER });
  return { store, registrations };
}

/** Its receiver; `pins` stand for what the seller publishes. */
function receiverOf(state: MemoryState, baseUrl: string | readonly string[], pins: Sender['pins'] = []) {
  const { store, registrations } = processOf(state, baseUrl);
  const seen: Event[] = [];
  const { senders } = registrations;
  const pinned = async (url: URL): Promise<Sender[]> =>
    (await senders(url)).map((sender) => (pins.length > 0 ? { ...sender, pins } : sender));
  const receiver = createReceiver({
    registrations: { ...registrations, senders: pinned },
    store,
    durability: { require: 'process' },
    logger: SILENT_LOGGER,
    handlers: { other: (event) => void seen.push(event) },
  });
  return { receiver, registrations, seen };
}

type Told = { url: string; authentication?: { schemes: string[]; credentials: string } };

const taskTold = async (made: Registrations, scheme?: 'HMAC-SHA256' | 'Bearer'): Promise<Told> => {
  const taken = await made.create({
    agentUrl: AGENT,
    taskType: 'create_media_buy',
    arguments: {},
    ...(scheme && { scheme }),
  });
  return taken.toolArguments['push_notification_config'] as unknown as Told;
};

const urlsOf = (told: readonly Told[]): readonly string[] =>
  told.map(({ url }) => url.slice(0, url.lastIndexOf('/')));
const tokensOf = (told: readonly Told[]): readonly string[] =>
  told.map(({ url }) => url.slice(url.lastIndexOf('/') + 1));

/** What a seller has been told, one of each kind. */
const allTold = async (made: Registrations): Promise<readonly Told[]> => [
  await taskTold(made),
  await taskTold(made, 'HMAC-SHA256'),
  await taskTold(made, 'Bearer'),
  (await made.reportingWebhook({ agentUrl: AGENT }, { frequency: 'daily' })) as unknown as Told,
];

/** Headers by which a seller that was told so sends the body. */
function legacyHeaders({ url, authentication }: Told, body: Uint8Array, at: number): Record<string, string> {
  const { schemes: [scheme] = [], credentials = '' } = authentication ?? {};
  const usual = { 'content-type': 'application/json', host: new URL(url).host };
  if (scheme === 'Bearer') return { ...usual, authorization: `Bearer ${credentials}` };
  const timestamp = String(Math.floor(at / 1000));
  const mac = createHmac('sha256', credentials).update(`${timestamp}.`).update(body).digest('hex');
  return { ...usual, 'x-proto-signature': `sha256=${mac}`, 'x-proto-timestamp': timestamp };
}

describe('what sellers were told below a former base (admission.md §2.9)', async () => {
  const key = await generateKey('ed25519', 'webhook-signing', { kid: 'seller-1' });

  /** Delivers an event to the URL that was told. */
  const deliver = async ({ receiver }: ReturnType<typeof receiverOf>, told: Told): Promise<string> => {
    const payload = told.authentication ? payloads.report('scheduled') : payloads.tool('completed');
    const bytes = new TextEncoder().encode(JSON.stringify(payload));
    const { pathname } = new URL(told.url);
    const signed = await signDelivery({ url: told.url, body: bytes, key: key.privateJwk });
    const headers = told.authentication
      ? legacyHeaders(told, bytes, Date.now())
      : { ...signed.headers, host: new URL(told.url).host };
    const { kind, code } = await receiver.verifyAndDispatch(bytes, headers, { url: pathname });
    return code ?? kind;
  };

  it('is told below the first from now on, with the same routes, and accepted below each', async () => {
    const state = createMemoryState();
    const before = await allTold(processOf(state, OLD).registrations);
    const after = receiverOf(state, [NEW, OLD], [key.publicJwk]);
    const now = await allTold(after.registrations);
    expect(urlsOf(before)).toEqual([OLD, OLD, OLD, OLD]);
    expect(urlsOf(now)).toEqual([NEW, NEW, NEW, NEW]);
    expect(tokensOf(now)).toEqual(tokensOf(before));
    expect(now.map(({ authentication }) => authentication)).toEqual(
      before.map(({ authentication }) => authentication),
    );
    for (const told of [...before, ...now]) expect(await deliver(after, told)).toBe('accepted');
    expect(after.seen.map(({ url }) => url)).toEqual([...before, ...now].map(({ url }) => url));
    // Where the former one is not served its path leads nowhere, as it did without a list.
    const [first] = before;
    const moved = receiverOf(state, NEW, [key.publicJwk]);
    expect(first && (await deliver(moved, first))).toBe('misconfigured');
  });

  it('which base that was is kept: of a route, an operation, and the reports of a media buy', async () => {
    const state = createMemoryState();
    const { registrations } = processOf(state, OLD);
    const buy = async (made: Registrations, mediaBuyId: string): Promise<void> => {
      const webhook = await made.reportingWebhook({ agentUrl: AGENT }, { frequency: 'daily' });
      const bought = await made.create({
        agentUrl: AGENT,
        taskType: 'create_media_buy',
        arguments: { reporting_webhook: webhook },
      });
      await bought.settle({ status: 'completed', media_buy_id: mediaBuyId });
    };
    await buy(registrations, 'buy-1');
    const after = processOf(state, [NEW, OLD]);
    await buy(after.registrations, 'buy-2');
    const rows = after.store.registrations;
    const values = async <T>(kind: 'route' | 'operation' | 'stream', list?: 'url'): Promise<readonly T[]> =>
      ((await rows?.page({ kind, limit: 100, sender: AGENT, ...(list && { list }) }))?.rows ?? []).map(
        ({ value }) => JSON.parse(value) as T,
      );
    const given = await values<{ base: string; route: string }>('route', 'url');
    expect(given.map(({ base }) => base).toSorted()).toEqual([NEW, NEW, OLD, OLD]);
    // Two routes, each below both.
    expect(new Set(given.map(({ route }) => route)).size).toBe(2);
    type Called = { mediaBuyId?: string; told: Record<'reports' | 'push', { base: string }> };
    const called = await values<Called>('operation');
    expect(
      Object.fromEntries(
        called.map(({ mediaBuyId, told }) => [mediaBuyId, [told.reports.base, told.push.base]]),
      ),
    ).toEqual({ 'buy-1': [OLD, OLD], 'buy-2': [NEW, NEW] });
    type Bought = { mediaBuyId: string; told: { channel: string; base: string; formerAt?: number }[] };
    const bought = async (channel: 'reports' | 'push'): Promise<Record<string, readonly string[]>> =>
      Object.fromEntries(
        (await values<Bought>('stream')).map(({ mediaBuyId, told }) => [
          mediaBuyId,
          told
            .filter((one) => one.channel === channel)
            .map(({ base, formerAt }) => (formerAt === undefined ? base : `formerly ${base}`)),
        ]),
      );
    expect(await bought('reports')).toEqual({ 'buy-1': [OLD], 'buy-2': [NEW] });
    // An update that names the new URL moves it; one that names none leaves it.
    const update = async (args: JsonObject): Promise<void> => {
      const updated = await after.registrations.create({
        agentUrl: AGENT,
        taskType: 'update_media_buy',
        arguments: { media_buy_id: 'buy-1', ...args },
      });
      await updated.settle({ status: 'completed', media_buy_id: 'buy-1' });
    };
    await update({ paused: true });
    expect(await bought('reports')).toEqual({ 'buy-1': [OLD], 'buy-2': [NEW] });
    expect(await bought('push')).toEqual({ 'buy-1': [`formerly ${OLD}`, NEW], 'buy-2': [NEW] });
    await update({
      reporting_webhook: await after.registrations.reportingWebhook(
        { agentUrl: AGENT },
        { frequency: 'daily' },
      ),
    });
    expect(await bought('reports')).toEqual({ 'buy-1': [`formerly ${OLD}`, NEW], 'buy-2': [NEW] });
  });

  it('a delivery is noted with the URL by which it came', async () => {
    const state = createMemoryState();
    const [before] = await allTold(processOf(state, OLD).registrations);
    const [now] = await allTold(processOf(state, [NEW, OLD]).registrations);
    const heardBy = async (told: Told | undefined): Promise<readonly string[]> => {
      const { receiver, ...others } = receiverOf(state, [NEW, OLD], [key.publicJwk]);
      expect(told && (await deliver({ receiver, ...others }, told))).toBe('accepted');
      await receiver.stop();
      const { urls } = await processOf(state, [NEW, OLD]).registrations.state();
      return urls.flatMap(({ base, scheme, heardAt }) => (heardAt === undefined ? [] : `${base} ${scheme}`));
    };
    expect(await heardBy(before)).toEqual([`${OLD} signature`]);
    expect((await heardBy(now)).toSorted()).toEqual([`${NEW} signature`, `${OLD} signature`]);
  });

  it('a URL that a seller has already is adopted below any of them', async () => {
    const state = createMemoryState();
    const made = receiverOf(state, [NEW, OLD], [key.publicJwk]);
    const url = `${OLD}/campaigns/seller`;
    await made.registrations.adopt({ agentUrl: AGENT, url });
    expect(await deliver(made, { url })).toBe('accepted');
    const elsewhere = made.registrations.adopt({ agentUrl: AGENT, url: 'https://old.example/elsewhere' });
    await expect(elsewhere).rejects.toThrow(`is not below ${NEW} or ${OLD}, so nothing`);
  });
});

describe('subscriptions below a former base', () => {
  const processes = (world: ReturnType<typeof subscriptionWorld>) => (baseUrl: string | readonly string[]) =>
    world.process(undefined, undefined, baseUrl);
  const basesOf = (entries: readonly Record<string, unknown>[]): readonly string[] =>
    entries.map(({ url }) => String(url).slice(0, String(url).lastIndexOf('/')));
  /** Subscriptions by the base of the URL that they are recorded on. */
  const recordedOn = async (of: Registrations): Promise<Record<string, readonly string[]>> =>
    Object.fromEntries(
      (await of.state()).urls.flatMap(({ base, subscriptions }) =>
        subscriptions.length > 0 ? [[base, subscriptions]] : [],
      ),
    );

  it('stay where they are, whatever is set beside them, for as long as it is served', async () => {
    const world = subscriptionWorld();
    const at = processes(world);
    await at(OLD).subscribe({ ...request, scheme: 'HMAC-SHA256' });
    const [{ authentication } = {}] = oursOf(world.seller);
    const both = at([NEW, OLD]);
    const sent = world.seller.sent('sync_accounts').length;
    await aDayLater(world, both);
    // Asked for again, it is there.
    await both.subscribe({ ...request, scheme: 'HMAC-SHA256' });
    expect(world.seller.sent('sync_accounts')).toHaveLength(sent);
    await both.subscribe(products);
    expect(basesOf(oursOf(world.seller))).toEqual([OLD, NEW]);
    expect(await recordedOn(both)).toEqual({ [OLD]: ['creatives'], [NEW]: ['products'] });
    // Its route goes below the base where nobody is on it, and stays whole below the other.
    const { urls } = await both.state();
    const route = urls.find(({ subscriptions }) => subscriptions.includes('creatives'))?.route ?? '';
    await expect(both.retire({ agentUrl: AGENT, base: OLD, route })).rejects.toMatchObject({
      code: 'url_in_use',
      message: expect.stringContaining('1 subscriptions (creatives) are on it') as string,
    });
    await aDayLater(world, both);
    await both.retire({ agentUrl: AGENT, base: NEW, route });
    // Its credentials are ours to send again.
    await both.subscribe({ ...products, ref: 'more' });
    expect(oursOf(world.seller)[0]).toMatchObject({ authentication });
    await both.unsubscribe({ agentUrl: AGENT, account, ref: 'more' });
    await aDayLater(world, both);
    expect(await statesOf(both)).toEqual(['creatives active', 'products active']);
    expect(world.alarms).toEqual([]);
    const without = at(NEW);
    await aDayLater(world, without);
    expect(await statesOf(without)).toEqual(['creatives lost', 'products active']);
    expect(world.alarms).toMatchObject([{ code: 'subscription_lost' }]);
  });

  it('of an agent too, whose set is sent whole', async () => {
    const world = subscriptionWorld();
    const at = processes(world);
    await at(OLD).subscribe(ofAgent);
    const both = at([NEW, OLD]);
    await aDayLater(world, both);
    await both.subscribe({ ...ofAgent, ref: 'second' });
    expect(basesOf(world.seller.agent.configs)).toEqual([OLD, NEW]);
    await aDayLater(world, both);
    expect(await statesOf(both)).toEqual(['agent active', 'second active']);
    expect(world.alarms).toEqual([]);
    // Changed, it is told the first.
    await both.subscribe({ ...ofAgent, scheme: 'Bearer' });
    expect(basesOf(world.seller.agent.configs)).toEqual([NEW, NEW]);
  });

  it('one that is changed is sent below the first, and is pending until the seller has it there', async () => {
    const world = subscriptionWorld();
    const at = processes(world);
    await at(OLD).subscribe(request);
    const both = at([NEW, OLD]);
    // A seller that takes the event types, and keeps the URL.
    world.seller.instead = ({ operation, args }) => {
      if (operation !== 'sync_accounts' || args['dry_run'] === true) return undefined;
      for (const entry of configsOf(world.seller)) entry['event_types'] = ['creative.purged'];
      return { dry_run: false, accounts: [{ ...account, action: 'updated', status: 'active' }] };
    };
    await both.subscribe({ ...request, eventTypes: ['creative.purged'] }).catch(() => undefined);
    expect(await listed(both)).toMatchObject([
      { state: 'pending', reason: 'the seller has another url of it' },
    ]);
    world.seller.instead = undefined;
    await aDayLater(world, both);
    expect(basesOf(oursOf(world.seller))).toEqual([NEW]);
    expect(await statesOf(both)).toEqual(['creatives active']);
  });
});

describe('baseUrl', () => {
  const make = (baseUrl: unknown) => () => processOf(createMemoryState(), baseUrl as string);

  it('may be a list, which publicUrl is then too', () => {
    const { registrations } = processOf(createMemoryState(), [`${NEW}/`, OLD]);
    expect(registrations.publicUrl).toEqual([`${NEW}/*`, `${OLD}/*`]);
    expect(processOf(createMemoryState(), [NEW]).registrations.publicUrl).toBe(`${NEW}/*`);
  });

  it.each([
    ['no URL', [], /^baseUrl: is an empty list\./],
    ['one twice', [NEW, `${NEW}/`], /^baseUrl: has https:\/\/new\.example\/hooks twice\./],
    [
      'nine',
      Array.from({ length: 9 }, (_, i) => `https://b${i}.example`),
      /^baseUrl: has 9 URLs, at most 8\./,
    ],
    ['a wrong one', [NEW, 'old.example'], /^baseUrl: "old\.example" is not a URL/],
    ['a hole', [NEW, undefined], /^baseUrl: undefined is not a URL/],
  ])('%s is a ConfigError', (_, baseUrl, message) => {
    expect(make(baseUrl)).toThrow(ConfigError);
    expect(make(baseUrl)).toThrow(message);
  });

  /** A receiver of the registrations below both. */
  const receiver = (publicUrl: string | readonly string[], senders?: () => Sender[]) => () => {
    const { store, registrations } = processOf(createMemoryState(), [NEW, OLD]);
    return createReceiver({
      registrations,
      store,
      publicUrl,
      ...(senders && { senders }),
      durability: { require: 'process' },
      handlers: { other: () => {} },
    });
  };

  it('a receiver has to cover all of them', () => {
    expect(receiver(['https://old.example/*', 'https://new.example/*'])).not.toThrow();
    expect(receiver([`${NEW}/*`])).toThrow(
      /^publicUrl: does not cover https:\/\/old\.example\/webhooks\/\*,/,
    );
  });

  it.each([
    [['https://own.example/*'], undefined],
    [['https://own.example/*', 'https://new.example/*', 'https://old.example/*'], undefined],
    [['https://own.example/*', `${NEW}/own/*`], NEW],
    [[`${OLD}/own/*`], NEW],
    [[`${NEW}/*`], OLD],
    [['https://new.example/*'], OLD],
    [['https://own.example/*', 'https://old.example/*'], NEW],
  ])('one with senders of its own has to cover all of them or none: %j', (publicUrl, uncovered) => {
    const made = receiver(publicUrl, () => [{ agentUrl: AGENT }]);
    if (uncovered === undefined) return expect(made).not.toThrow();
    expect(made).toThrow(ConfigError);
    expect(made).toThrow(`publicUrl: does not cover ${uncovered}/*,`);
  });
});
