import { describe, expect, it } from 'vitest';
import {
  type CallSeller,
  createRegistrations,
  type JsonObject,
  RegistrationError,
  SellerBusyError,
  SellerError,
  type SubscriptionRequest,
} from '../../src/registrations/index.ts';
import { memoryStore } from '../../src/stores/memory.ts';
import { NEWEST } from './kit.ts';
import {
  AGENT,
  CHANGE,
  DAY_MS,
  THEIRS,
  TYPES,
  aDayLater,
  account,
  configsOf,
  listed,
  ofAgent,
  oursOf,
  products,
  refusedBy,
  request,
  runUntil,
  statesOf,
  subscriptionSeller,
  subscriptionWorld,
  theirsOf,
  told,
  withTheirs,
  type Entry,
  type SubscriptionSeller,
} from './subscription-seller.ts';

describe('a subscription of an account (subscriptions.md §2.1)', () => {
  it('is read, tried, sent and read again, and is active', async () => {
    const { seller, process } = subscriptionWorld(withTheirs());
    const registrations = process();
    const seen = await registrations.subscribe(request);
    expect(seen).toEqual({
      agentUrl: AGENT,
      account,
      accountId: 'acc-1',
      ref: 'creatives',
      subscriberId: expect.stringMatching(/^[\w-]{43}\.[\w-]{16}$/),
      eventTypes: TYPES,
      scheme: 'signature',
      state: 'active',
      since: expect.any(Number),
    });
    expect(told(seller)).toEqual(CHANGE);
    const [, dry, sent] = seller.heard.map(({ args }) => args);
    const { dry_run: _dry, idempotency_key: first, ...tried } = dry ?? {};
    const { idempotency_key: second, ...done } = sent ?? {};
    expect(tried).toEqual(done);
    expect(first).not.toBe(second);
    expect(done).toEqual({
      accounts: [
        {
          account,
          notification_configs: [
            ...THEIRS,
            {
              subscriber_id: seen.subscriberId,
              url: expect.stringMatching(/^https:\/\/buyer\.example\/webhooks\/[\w-]{48}$/),
              event_types: TYPES,
              active: true,
            },
          ],
        },
      ],
    });
    expect(await listed(registrations)).toEqual([seen]);
  });

  it('is not sent again by the same subscribe, in any process', async () => {
    const world = subscriptionWorld();
    const seen = await world.process().subscribe(request);
    world.seller.heard.length = 0;
    expect(await world.process().subscribe({ ...request, eventTypes: TYPES.toReversed() })).toEqual(seen);
    expect(told(world.seller)).toEqual(['list_accounts']);
  });

  it('is changed by other types, and keeps its id', async () => {
    const { seller, process } = subscriptionWorld(withTheirs());
    const registrations = process();
    const { subscriberId } = await registrations.subscribe(request);
    await registrations.subscribe(products);
    const seen = await registrations.subscribe({ ...request, eventTypes: ['indicators.changed'] });
    expect(seen).toMatchObject({ subscriberId, state: 'active', eventTypes: ['indicators.changed'] });
    expect(oursOf(seller).map(({ event_types: types }) => types)).toEqual([
      ['product.created'],
      ['indicators.changed'],
    ]);
    expect(theirsOf(seller)).toEqual(THEIRS);
  });

  it('is removed by unsubscribe, and others stay', async () => {
    const { seller, process } = subscriptionWorld(withTheirs());
    const registrations = process();
    await registrations.subscribe(request);
    await registrations.subscribe(products);
    await registrations.unsubscribe({ agentUrl: AGENT, account, ref: 'creatives' });
    expect(await statesOf(registrations)).toEqual(['products active']);
    await registrations.unsubscribe({ agentUrl: AGENT, account, ref: 'products' });
    expect(await listed(registrations)).toEqual([]);
    expect(configsOf(seller)).toEqual(THEIRS);
    seller.heard.length = 0;
    await registrations.unsubscribe({ agentUrl: AGENT, account, ref: 'products' });
    expect(told(seller)).toEqual([]);
  });

  it('hands the ref to the caller, which chooses a token by it', async () => {
    const world = subscriptionWorld();
    world.seller.names = ['sync_accounts', 'list_accounts', 'get_adcp_capabilities'];
    const refs: unknown[] = [];
    const client: CallSeller = Object.assign(
      (...call: Parameters<CallSeller>) => {
        refs.push(call[3].ref);
        return world.seller.client(...call);
      },
      {
        operations: async (_agentUrl: string, { ref }: { readonly ref?: string }) => {
          refs.push(ref);
          return world.seller.names;
        },
      },
    );
    await world.process(client).subscribe(request);
    expect(refs).toEqual(Array(6).fill('creatives'));
  });

  it('has the credentials of its scheme, also where another one is changed', async () => {
    const { seller, process } = subscriptionWorld();
    const registrations = process();
    await registrations.subscribe({ ...request, scheme: 'HMAC-SHA256' });
    const [one] = structuredClone(oursOf(seller));
    expect(one).toMatchObject({
      authentication: { schemes: ['HMAC-SHA256'], credentials: expect.stringMatching(/^[\w-]{43}$/) },
    });
    await registrations.subscribe(products);
    expect(oursOf(seller)[0]).toEqual(one);
    expect(await statesOf(registrations)).toEqual(['creatives active', 'products active']);
    // Another scheme is another subscription.
    await registrations.subscribe(request);
    expect(oursOf(seller)[1]).not.toHaveProperty('authentication');
  });
});

describe('entries of others (subscriptions.md §2.3)', () => {
  const secret = { subscriber_id: 'theirs-3', url: 'https://other.example/c', event_types: ['x'] };
  const credentials = 'their-secret';
  const shown = { schemes: ['Bearer'], realm: 'r' };

  it.each(['subscribe', 'unsubscribe'] as const)(
    'with credentials are not sent without them: %s',
    async (method) => {
      const world = subscriptionWorld(withTheirs());
      const registrations = world.process();
      if (method === 'unsubscribe') await registrations.subscribe(request);
      const entries = world.seller.accounts[0]?.notification_configs;
      entries?.push({ ...secret, authentication: { ...shown, credentials } });
      const before = structuredClone(configsOf(world.seller));
      world.seller.heard.length = 0;
      const of = method === 'subscribe' ? request : { agentUrl: AGENT, account, ref: 'creatives' };
      const call = (more: object): Promise<unknown> =>
        registrations[method]({ ...of, ...more } as SubscriptionRequest);
      const error = await refusedBy(call({ credentials: { other: 'x', toString: 'y' } }));
      expect(error).toMatchObject({ code: 'foreign_credentials' });
      expect(String(error)).toContain('credentials: { "theirs-3": ');
      expect(told(world.seller)).toEqual(['list_accounts']);
      expect(await statesOf(registrations)).toEqual([
        `creatives ${method === 'subscribe' ? 'refused' : 'removing'}`,
      ]);
      await call({ credentials: { 'theirs-3': credentials } });
      expect(theirsOf(world.seller)).toEqual(
        before.filter((one) =>
          theirsOf(world.seller).some((is) => is['subscriber_id'] === one['subscriber_id']),
        ),
      );
      expect(theirsOf(world.seller)).toHaveLength(3);
      // Not stored: the next change needs them again.
      expect(await refusedBy(registrations.subscribe(products))).toMatchObject({
        code: 'foreign_credentials',
      });
    },
  );

  it('that are gone after a change are an alarm', async () => {
    const { seller, alarms, process } = subscriptionWorld(withTheirs());
    seller.after = ({ operation, args }) => {
      if (operation === 'sync_accounts' && args['dry_run'] !== true && seller.accounts[0])
        seller.accounts[0].notification_configs = [...oursOf(seller)];
    };
    expect((await process().subscribe(request)).state).toBe('active');
    expect(alarms).toMatchObject([
      { code: 'subscription_lost', sender: AGENT, accountId: 'acc-1', subscriberId: 'theirs-1' },
      { code: 'subscription_lost', sender: AGENT, accountId: 'acc-1', subscriberId: 'theirs-2' },
    ]);
    expect(alarms[0]).not.toHaveProperty('ref');
  });

  it('leave room for 16 in all', async () => {
    const more = Array.from({ length: 13 }, (_, at) => ({ subscriber_id: `theirs-${at + 3}` }));
    const { seller, process } = subscriptionWorld(withTheirs(...more));
    const registrations = process();
    await registrations.subscribe(request);
    seller.heard.length = 0;
    expect(await refusedBy(registrations.subscribe(products))).toMatchObject({ code: 'set_full' });
    expect(told(seller)).toEqual(['list_accounts']);
    expect(await statesOf(registrations)).toEqual(['creatives active', 'products refused']);
  });
});

describe('the account (subscriptions.md §2.2)', () => {
  const brand = { domain: 'brand.example', name: 'Brand' };
  const accounts = [
    { account_id: 'acc-1', brand, operator: 'one.example' },
    { account_id: 'acc-2', brand, operator: 'two.example' },
    { account_id: 'acc-3', brand: { domain: 'other.example' }, operator: 'two.example' },
  ];

  it('is the one with its id, or with each member that is given', async () => {
    const { seller, process } = subscriptionWorld(subscriptionSeller(structuredClone(accounts)));
    const of = { brand: { domain: 'brand.example' }, operator: 'two.example' };
    seller.after = ({ operation }, answer) => {
      const { accounts: found } = answer as { accounts: { account_id: string }[] };
      if (operation === 'sync_accounts')
        return { dry_run: true, accounts: [{ ...found[0], account_id: 'acc-2', action: 'updated' }] };
      return undefined;
    };
    expect(
      (await process()
        .subscribe({ ...request, account: of })
        .catch(() => undefined)) ?? {},
    ).toMatchObject({ accountId: 'acc-2' });
    expect(seller.heard[0]?.args).toEqual({ account: of });
  });

  it.each([
    ['none', { account_id: 'acc-9' }, 'no account'],
    ['several', { brand: { domain: 'brand.example' } }, 'several accounts'],
    ['a member of its own', { brand, operator: 'two.example', sandbox: true }, 'no account'],
  ])('is an error where there is %s', async (_name, of, text) => {
    const { seller, process } = subscriptionWorld(subscriptionSeller(structuredClone(accounts)));
    const registrations = process();
    const error = await refusedBy(registrations.subscribe({ ...request, account: of }));
    expect(error).toMatchObject({ code: 'account_unknown', message: expect.stringContaining(text) });
    expect(told(seller)).toEqual(['list_accounts']);
    expect(await statesOf(registrations)).toEqual(['creatives refused']);
  });

  it('is looked for on all pages, of which there are at most 100', async () => {
    const { seller, process } = subscriptionWorld();
    const page = (at: number, has_more = true): unknown => ({
      accounts: [{ account_id: `acc-${at}` }],
      pagination: { has_more, ...(has_more && { cursor: `c${at}` }) },
    });
    let most = Infinity;
    seller.instead = ({ operation, args }) => {
      if (operation !== 'list_accounts') return undefined;
      const { cursor = 'c2' } = (args['pagination'] ?? {}) as { cursor?: string };
      const at = Number(cursor.slice(1)) + 1;
      return page(at, at < most);
    };
    const registrations = process();
    expect(
      await refusedBy(registrations.subscribe({ ...request, account: { account_id: 'acc-5' } })),
    ).toMatchObject({
      code: 'answer_invalid',
    });
    expect(seller.heard).toHaveLength(100);
    expect(seller.heard[1]?.args).toEqual({
      account: { account_id: 'acc-5' },
      pagination: { max_results: 100, cursor: 'c3' },
    });
    most = 102;
    await refusedBy(registrations.subscribe({ ...request, account: { account_id: 'acc-50' } }));
    expect(told(seller).at(-1)).toBe('sync_accounts dry');
  });
});

describe('what the seller refuses (subscriptions.md §2.4, §2.6)', () => {
  const reasons = [
    { code: 'VALIDATION_ERROR', message: 'no proof', field: 'accounts[0].notification_configs[0].url' },
    { code: 'INVALID_REQUEST', message: 'no such type' },
  ];
  const failedAccount = {
    dry_run: true,
    accounts: [{ account_id: 'acc-1', action: 'failed', errors: reasons }],
  };
  const answers: readonly (readonly [string, unknown, object])[] = [
    ['the action of the account', failedAccount, { code: 'VALIDATION_ERROR', details: { reasons } }],
    ['a failed tool', { isError: true, structuredContent: failedAccount }, { details: { reasons } }],
    ['errors alone', { errors: reasons }, { code: 'VALIDATION_ERROR', details: { reasons } }],
    [
      'an action without a reason',
      { accounts: [{ account_id: 'acc-1', action: 'failed' }] },
      { code: '', message: expect.stringContaining('the action failed') as string },
    ],
    ['another account', { accounts: [{ account_id: 'acc-7', action: 'updated' }] }, { code: '' }],
    ['no account', { accounts: [] }, { code: '' }],
  ];

  it.each(answers)('by %s is a SellerError, and nothing is sent', async (_name, answer, error) => {
    const world = subscriptionWorld(withTheirs());
    world.seller.instead = ({ operation }) => (operation === 'sync_accounts' ? answer : undefined);
    const registrations = world.process();
    const thrown = await refusedBy(registrations.subscribe(request));
    expect(thrown).toBeInstanceOf(SellerError);
    expect(thrown).toMatchObject(error);
    if ('details' in error) for (const { message } of reasons) expect(String(thrown)).toContain(message);
    expect(told(world.seller)).toEqual(['list_accounts', 'sync_accounts dry']);
    expect(await listed(registrations)).toMatchObject([
      { state: 'refused', reason: (thrown as Error).message },
    ]);
    expect(world.alarms).toEqual([]);
    // Nothing is sent unasked: by the next subscribe alone.
    world.seller.instead = undefined;
    for (let days = 0; days < 3; days += 1) await aDayLater(world, world.process());
    expect(world.seller.heard).toHaveLength(2);
    expect((await registrations.subscribe(request)).state).toBe('active');
  });

  it('keeps the former set, and its last form stays one', async () => {
    const { seller, process } = subscriptionWorld();
    const registrations = process();
    await registrations.subscribe(request);
    seller.instead = ({ operation }) => (operation === 'sync_accounts' ? { errors: reasons } : undefined);
    await refusedBy(registrations.subscribe({ ...request, eventTypes: ['account.status_changed'] }));
    expect(await listed(registrations)).toMatchObject([
      { state: 'refused', eventTypes: ['account.status_changed'] },
    ]);
    seller.instead = undefined;
    await registrations.subscribe(products);
    expect(oursOf(seller)[0]).toMatchObject({ event_types: TYPES });
  });

  it('refuses every pending one, and is an alarm for those that nobody waits for', async () => {
    const world = subscriptionWorld();
    const registrations = world.process();
    world.seller.instead = ({ operation }) => {
      if (operation === 'sync_accounts') throw new Error('reset');
    };
    expect(await refusedBy(registrations.subscribe(request))).toMatchObject({ message: 'reset' });
    expect(await statesOf(registrations)).toEqual(['creatives pending']);
    world.seller.instead = ({ operation }) =>
      operation === 'sync_accounts' ? { errors: reasons } : undefined;
    await refusedBy(registrations.subscribe(products));
    expect(await statesOf(registrations)).toEqual(['creatives refused', 'products refused']);
    expect(world.alarms).toMatchObject([{ code: 'subscription_refused', sender: AGENT, ref: 'creatives' }]);
  });

  it('is an alarm where a loop finishes what a process left', async () => {
    const world = subscriptionWorld();
    const registrations = world.process();
    world.seller.instead = () => {
      throw new Error('reset');
    };
    await refusedBy(registrations.subscribe(request));
    world.seller.instead = ({ operation }) =>
      operation === 'sync_accounts' ? { errors: reasons } : undefined;
    await runUntil(world, registrations, () => world.alarms.length > 0);
    expect(world.alarms).toMatchObject([{ code: 'subscription_refused', ref: 'creatives' }]);
    expect(await statesOf(registrations)).toEqual(['creatives refused']);
  });

  it('of a removal is tried once a day', async () => {
    const world = subscriptionWorld();
    const registrations = world.process();
    await registrations.subscribe(request);
    world.seller.instead = ({ operation }) =>
      operation === 'sync_accounts' ? { errors: reasons } : undefined;
    await refusedBy(registrations.unsubscribe({ agentUrl: AGENT, account, ref: 'creatives' }));
    world.seller.heard.length = 0;
    await aDayLater(world, registrations);
    expect(told(world.seller)).toEqual(['list_accounts', 'sync_accounts dry']);
    world.seller.instead = undefined;
    await runUntil(world, registrations, async () => (await listed(registrations)).length === 0);
    expect(configsOf(world.seller)).toEqual([]);
  });

  it('is not sent where the dry run was answered with a task', async () => {
    const { seller, process } = subscriptionWorld();
    seller.instead = ({ operation }) =>
      operation.startsWith('sync') ? { status: 'submitted', task_id: 't-1' } : undefined;
    const registrations = process();
    for (const of of [request, ofAgent]) {
      expect(await registrations.subscribe(of)).toMatchObject({ state: 'pending' });
    }
    expect(seller.sent('sync_accounts')).toEqual([]);
    expect(seller.sent('sync_agent_notification_configs')).toEqual([]);
  });

  it('is sent once by a seller that takes the dry run for the change', async () => {
    const { seller, process } = subscriptionWorld();
    seller.instead = ({ operation, args }) => {
      if (operation !== 'sync_accounts') return undefined;
      const [one] = args['accounts'] as { notification_configs: Entry[] }[];
      if (seller.accounts[0] && one) seller.accounts[0].notification_configs = one.notification_configs;
      return { accounts: [{ account_id: 'acc-1', action: 'updated' }] };
    };
    expect((await process().subscribe(request)).state).toBe('active');
    expect(told(seller)).toEqual(['list_accounts', 'sync_accounts dry', 'list_accounts']);
  });
});

describe('the reading afterwards decides (subscriptions.md §2.5, §2.7)', () => {
  const done = (seller: SubscriptionSeller, answer: () => unknown) => {
    seller.after = ({ operation, args }) =>
      operation === 'sync_accounts' && args['dry_run'] !== true ? answer() : undefined;
  };

  it.each([
    ['is not answered', () => Promise.reject(new Error('reset'))],
    ['is refused', () => ({ errors: [{ code: 'INVALID_REQUEST', message: 'no' }] })],
    ['is answered with nonsense', () => 42],
  ])('where the call that did it %s', async (_name, answer) => {
    const { seller, process } = subscriptionWorld();
    done(seller, answer);
    expect((await process().subscribe(request)).state).toBe('active');
    expect(told(seller)).toEqual(CHANGE);
  });

  it('sends what still differs under a new key, in any process', async () => {
    const world = subscriptionWorld(withTheirs());
    const registrations = world.process();
    let calls = 0;
    world.seller.instead = ({ operation, args }) => {
      if (operation !== 'sync_accounts' || args['dry_run'] === true) return undefined;
      if ((calls += 1) === 1) throw new Error('reset');
      return undefined;
    };
    expect(await refusedBy(registrations.subscribe(request))).toMatchObject({ message: 'reset' });
    // Another subscriber comes meanwhile: the old array is not sent again.
    world.seller.accounts[0]?.notification_configs?.push({ subscriber_id: 'theirs-9' });
    const other = world.process();
    await runUntil(world, other, async () => (await statesOf(other))[0] === 'creatives active');
    expect(theirsOf(world.seller)).toEqual([...THEIRS, { subscriber_id: 'theirs-9' }]);
    const keys = world.seller.heard.flatMap(({ args }) => args['idempotency_key'] ?? []);
    expect(keys).toHaveLength(4);
    expect(new Set(keys).size).toBe(4);
  });

  it('refuses one that is never there after five answers', async () => {
    const world = subscriptionWorld();
    const registrations = world.process();
    world.seller.instead = ({ operation, args }) =>
      operation === 'sync_accounts'
        ? { dry_run: args['dry_run'] === true, accounts: [{ account_id: 'acc-1', action: 'updated' }] }
        : undefined;
    expect(await registrations.subscribe(request)).toMatchObject({ state: 'pending' });
    await runUntil(world, registrations, () => world.alarms.length > 0);
    expect(world.seller.sent('sync_accounts')).toHaveLength(5);
    expect(world.alarms).toMatchObject([{ code: 'subscription_refused', ref: 'creatives' }]);
    expect((await listed(registrations))[0]?.reason).toContain('5 calls were answered without an error');
  });

  it.each([
    ['retry_after', { errors: [{ code: 'RATE_LIMITED', message: 'later', retry_after: 600 }] }, 600_000],
    ['a back-off', { errors: [{ code: 'SERVICE_UNAVAILABLE', message: 'later' }] }, 10_000],
    ['429', new SellerBusyError(429, 120_000), 120_000],
  ])('waits for %s', async (_name, answer, waitMs) => {
    const world = subscriptionWorld();
    const registrations = world.process();
    world.seller.instead = ({ operation }) => {
      if (operation !== 'sync_accounts') return undefined;
      if (answer instanceof Error) throw answer;
      return answer;
    };
    await refusedBy(registrations.subscribe(request));
    expect(await statesOf(registrations)).toEqual(['creatives pending']);
    world.seller.instead = undefined;
    world.seller.heard.length = 0;
    const since = world.now();
    await runUntil(world, registrations, () => world.seller.heard.length > 0);
    expect(world.now() - since).toBeGreaterThanOrEqual(waitMs);
    expect(world.now() - since).toBeLessThanOrEqual(waitMs + 120_000);
  });

  it('asks ever less often while nothing is answered', async () => {
    const world = subscriptionWorld();
    const registrations = world.process();
    const at: number[] = [];
    world.seller.instead = () => {
      at.push(world.now());
      throw new Error('reset');
    };
    await refusedBy(registrations.subscribe(request));
    await runUntil(world, registrations, () => at.length >= 14);
    const waits = at.slice(1).map((time, nth) => (time - (at[nth] ?? 0)) / 1000);
    for (const [nth, wait] of waits.entries()) {
      const wanted = Math.min(10 * 2 ** nth, 3600);
      expect(wait).toBeGreaterThanOrEqual(wanted);
      expect(wait).toBeLessThanOrEqual(wanted + 60);
    }
    expect(world.alarms).toEqual([]);
  });
});

describe('a subscription of an agent', () => {
  it('is tried, sent, and known by its answer', async () => {
    const { seller, process } = subscriptionWorld();
    const registrations = process();
    const seen = await registrations.subscribe({ ...ofAgent, scheme: 'Bearer' });
    expect(seen).toMatchObject({ state: 'active', scheme: 'Bearer' });
    for (const member of ['account', 'accountId', 'reason']) expect(seen).not.toHaveProperty(member);
    expect(told(seller)).toEqual(['sync_agent_notification_configs dry', 'sync_agent_notification_configs']);
    expect(seller.agent.configs).toMatchObject([
      { subscriber_id: seen.subscriberId, authentication: { schemes: ['Bearer'] }, active: true },
    ]);
    seller.heard.length = 0;
    expect(await registrations.subscribe({ ...ofAgent, scheme: 'Bearer' })).toEqual(seen);
    expect(told(seller)).toEqual(['sync_agent_notification_configs dry']);
    await registrations.unsubscribe({ agentUrl: AGENT, ref: 'agent', exclusive: true });
    expect(seller.agent.configs).toEqual([]);
    expect(await listed(registrations)).toEqual([]);
  });

  it.each(['subscribe', 'unsubscribe'] as const)('needs exclusive: true: %s', async (method) => {
    const { seller, process } = subscriptionWorld();
    const { exclusive: _exclusive, ...of } = ofAgent;
    const { eventTypes: _types, ...name } = of;
    const registrations = process();
    const call = method === 'subscribe' ? registrations.subscribe(of) : registrations.unsubscribe(name);
    expect(await refusedBy(call)).toMatchObject({ code: 'exclusive_required' });
    expect(told(seller)).toEqual([]);
  });

  it('is sent again byte for byte under its key, as long as the seller knows it', async () => {
    const world = subscriptionWorld();
    const { seller } = world;
    seller.instead = ({ args }) => {
      if (args['dry_run'] !== true) throw new Error('reset');
    };
    await refusedBy(world.process().subscribe(ofAgent));
    const other = world.process();
    await runUntil(world, other, () => seller.sent('sync_agent_notification_configs').length >= 3);
    const sent = seller.sent('sync_agent_notification_configs').map(({ args }) => JSON.stringify(args));
    expect(new Set(sent).size).toBe(1);
    world.offsetMs += DAY_MS;
    await runUntil(world, other, () => seller.sent('sync_agent_notification_configs').length >= 4);
    expect(seller.sent('sync_agent_notification_configs').at(-1)?.args).not.toEqual(
      seller.sent('sync_agent_notification_configs')[0]?.args,
    );
    seller.instead = undefined;
    await runUntil(world, other, async () => (await statesOf(other))[0] === 'agent active');
    expect(seller.agent.configs).toHaveLength(1);
  });

  it('is sent under a new key where the seller says that the old one is worth nothing', async () => {
    const world = subscriptionWorld();
    const { seller } = world;
    seller.instead = ({ args }) =>
      args['dry_run'] === true ? undefined : { errors: [{ code: 'IDEMPOTENCY_CONFLICT', message: 'other' }] };
    const registrations = world.process();
    await refusedBy(registrations.subscribe(ofAgent));
    seller.instead = undefined;
    await runUntil(world, registrations, async () => (await statesOf(registrations))[0] === 'agent active');
    const keys = seller.sent('sync_agent_notification_configs').map(({ args }) => args['idempotency_key']);
    expect(new Set(keys).size).toBe(2);
  });

  it('is active where the call that did it was not answered', async () => {
    const world = subscriptionWorld();
    world.seller.after = ({ args }) => {
      if (args['dry_run'] !== true) throw new Error('reset');
    };
    const registrations = world.process();
    expect(await refusedBy(registrations.subscribe(ofAgent))).toMatchObject({ message: 'reset' });
    world.seller.after = undefined;
    await runUntil(world, registrations, async () => (await statesOf(registrations))[0] === 'agent active');
    expect(world.seller.sent('sync_agent_notification_configs')).toHaveLength(1);
  });

  it('keeps what it had where a change is refused, and sends that with the next', async () => {
    const { seller, process } = subscriptionWorld();
    seller.capabilities = {
      adcp: { capability_changes: { notifications: { event_types: ['a', 'b', 'capabilities.changed'] } } },
    };
    seller.names = ['sync_agent_notification_configs', 'get_adcp_capabilities'];
    const registrations = process();
    await registrations.subscribe(ofAgent);
    const had = structuredClone(seller.agent.configs);
    seller.instead = ({ operation }) =>
      operation.startsWith('sync')
        ? { action: 'failed', errors: [{ code: 'VALIDATION_ERROR', message: 'no' }] }
        : undefined;
    expect(await refusedBy(registrations.subscribe({ ...ofAgent, eventTypes: ['a'] }))).toBeInstanceOf(
      SellerError,
    );
    seller.instead = undefined;
    await registrations.subscribe({ ...ofAgent, ref: 'other', eventTypes: ['b'] });
    expect(seller.agent.configs).toMatchObject([had[0], { event_types: ['b'] }]);
  });
});

describe('what a seller offers (subscriptions.md §2.8)', () => {
  const names = [
    'sync_accounts',
    'sync_agent_notification_configs',
    'list_accounts',
    'get_adcp_capabilities',
  ];
  const notifications = { supported: true, event_types: ['creative.purged', 'indicators.changed'] };
  const wholesale = { supported: true, event_types: ['product.created'] };
  const rows: readonly (readonly [string, JsonObject | undefined, readonly string[], string | undefined])[] =
    [
      ['what is listed', { account: { notifications } }, ['creative.purged'], undefined],
      [
        'what is not listed',
        { account: { notifications } },
        ['creative.status_changed'],
        'creative.purged, indicators.changed',
      ],
      [
        'wholesale types beside them',
        { account: { notifications }, wholesale_feed_webhooks: wholesale },
        ['product.created'],
        undefined,
      ],
      [
        'another wholesale type',
        { wholesale_feed_webhooks: wholesale },
        ['product.removed'],
        'product.created',
      ],
      ['a wholesale seller of 3.1', { wholesale_feed_webhooks: wholesale }, ['creative.purged'], undefined],
      [
        'unsupported ones',
        { account: { notifications: { supported: false } } },
        ['creative.purged'],
        'ask the seller',
      ],
      ['a seller that declares nothing', {}, ['creative.purged'], undefined],
      ['a type of media buys', {}, ['impairment'], 'ask the seller'],
      ['a type of agents', undefined, ['capabilities.changed'], 'ask the seller'],
      ['nonsense', { account: 'x', wholesale_feed_webhooks: [1] }, ['creative.purged'], undefined],
    ];
  it.each(rows)('is asked before anything is written: %s', async (_name, declared, eventTypes, told2) => {
    const { seller, process } = subscriptionWorld();
    seller.names = names;
    seller.capabilities = { adcp: {}, ...declared };
    const registrations = process();
    const call = registrations.subscribe({ ...request, eventTypes });
    if (told2 === undefined) {
      expect((await call).state).toBe('active');
      return;
    }
    expect(await refusedBy(call)).toMatchObject({
      code: 'event_types_not_offered',
      message: expect.stringContaining(told2),
    });
    expect(told(seller)).toEqual(['get_adcp_capabilities']);
    expect(await listed(registrations)).toEqual([]);
  });

  it.each([
    ['sync_accounts', request],
    ['sync_agent_notification_configs', ofAgent],
  ])('is nothing without the operation %s', async (operation, of) => {
    const { seller, process } = subscriptionWorld();
    seller.names = names.filter((name) => name !== operation);
    seller.capabilities = { adcp: {} };
    expect(await refusedBy(process().subscribe(of))).toMatchObject({
      code: 'event_types_not_offered',
      message: expect.stringContaining(operation),
    });
  });
});

describe('watching (subscriptions.md §4)', () => {
  const changes: readonly (readonly [string, (one: Entry) => Entry | undefined, string])[] = [
    ['paused', (one) => ({ ...one, active: false }), 'paused'],
    ['gone', () => undefined, 'not among'],
    ['changed', (one) => ({ ...one, event_types: ['creative.purged'] }), 'event_types'],
    ['moved', (one) => ({ ...one, url: 'https://other.example' }), 'url'],
    [
      'authenticated otherwise',
      (one) => ({ ...one, authentication: { schemes: ['Bearer'] } }),
      'authentication',
    ],
  ];
  it.each(changes)(
    'finds one that is %s within a day, once, and changes nothing',
    async (_name, change, reason) => {
      const world = subscriptionWorld(withTheirs());
      const { seller, alarms } = world;
      const registrations = world.process();
      const { subscriberId } = await registrations.subscribe(request);
      await registrations.subscribe(products);
      const since = world.now();
      const [changed] = seller.accounts;
      if (changed) {
        changed.notification_configs = configsOf(seller).flatMap((one): readonly Entry[] =>
          one['subscriber_id'] === subscriberId ? [change(one) ?? []].flat() : [one],
        );
      }
      const is = structuredClone(configsOf(seller));
      world.offsetMs += DAY_MS - 60_000;
      const [one, other] = [world.process(), world.process()];
      seller.heard.length = 0;
      await Promise.all([one, other].map((each) => runUntil(world, each, () => alarms.length > 0)));
      expect(world.now() - since).toBeLessThanOrEqual(DAY_MS + 180_000);
      expect(told(seller)).toEqual(['list_accounts']);
      expect(alarms).toMatchObject([
        { code: 'subscription_lost', sender: AGENT, ref: 'creatives', subscriberId, accountId: 'acc-1' },
      ]);
      expect(alarms[0]?.message).toContain(reason);
      for (let days = 0; days < 3; days += 1) await aDayLater(world, one);
      expect(seller.heard.length).toBeGreaterThanOrEqual(3);
      expect(alarms).toHaveLength(1);
      expect(await statesOf(one)).toEqual(['creatives lost', 'products active']);
      expect(configsOf(seller)).toEqual(is);
      // By its owner alone: again, as it was.
      expect(await one.subscribe(request)).toMatchObject({ state: 'active', subscriberId });
      expect(theirsOf(seller)).toEqual(THEIRS);
    },
  );

  it.each([
    ['creatives', 'products'],
    ['products', 'creatives'],
  ])('says so once of each, where several are lost one after the other: %s, then %s', async (...refs) => {
    const world = subscriptionWorld();
    const registrations = world.process();
    const ids = new Map<string, string>();
    for (const one of [request, products]) {
      ids.set(one.ref, (await registrations.subscribe(one)).subscriberId);
    }
    const [atSeller] = world.seller.accounts;
    const lost: string[] = [];
    for (const ref of refs) {
      if (atSeller) {
        atSeller.notification_configs = configsOf(world.seller).filter(
          ({ subscriber_id: id }) => id !== ids.get(ref),
        );
      }
      lost.push(ref);
      for (let days = 0; days < 2; days += 1) {
        await aDayLater(world, registrations);
        expect(world.alarms).toMatchObject(lost.map((each) => ({ code: 'subscription_lost', ref: each })));
      }
    }
    expect(await statesOf(registrations)).toEqual(['creatives lost', 'products lost']);
  });

  it('says nothing where the reading fails, and reads again', async () => {
    const world = subscriptionWorld();
    const registrations = world.process();
    await registrations.subscribe(request);
    world.seller.instead = () => ({ error: { code: 'AUTH_INVALID', message: 'expired' } });
    world.offsetMs += DAY_MS;
    world.seller.heard.length = 0;
    await runUntil(world, registrations, () => world.seller.heard.length >= 3);
    expect(await statesOf(registrations)).toEqual(['creatives active']);
    expect(world.alarms).toEqual([]);
    expect(world.lines.length).toBeGreaterThan(0);
  });

  it('finds that an agent has another set', async () => {
    const world = subscriptionWorld();
    const registrations = world.process();
    await registrations.subscribe(ofAgent);
    world.seller.heard.length = 0;
    await aDayLater(world, registrations);
    expect(told(world.seller)).toEqual(['sync_agent_notification_configs dry']);
    expect(await statesOf(registrations)).toEqual(['agent active']);
    world.seller.agent.configs = [];
    await aDayLater(world, registrations);
    expect(world.alarms).toMatchObject([{ code: 'subscription_lost', ref: 'agent' }]);
    expect(world.seller.agent.configs).toEqual([]);
    expect((await registrations.subscribe(ofAgent)).state).toBe('active');
    expect(world.seller.agent.configs).toHaveLength(1);
  });

  it('sends again what its owner subscribes to, and says once that it was lost', async () => {
    const { seller, alarms, process } = subscriptionWorld();
    const registrations = process();
    await registrations.subscribe(request);
    if (seller.accounts[0]) seller.accounts[0].notification_configs = [];
    expect((await registrations.subscribe(request)).state).toBe('active');
    expect(oursOf(seller)).toHaveLength(1);
    const message = expect.stringMatching(/was lost: .*It is set again now: read what you may have missed/);
    expect(alarms).toMatchObject([{ code: 'subscription_lost', ref: 'creatives', message }]);
  });

  it('says so of an agent too', async () => {
    const { seller, alarms, process } = subscriptionWorld(subscriptionSeller([]));
    const registrations = process();
    const of = { agentUrl: AGENT, ref: 'agent', eventTypes: ['capabilities.changed'], exclusive: true };
    await registrations.subscribe(of);
    seller.agent.configs = [];
    expect((await registrations.subscribe(of)).state).toBe('active');
    expect(alarms).toMatchObject([{ code: 'subscription_lost', ref: 'agent' }]);
  });
});

describe('requests', () => {
  const wrong: readonly (readonly [string, object])[] = [
    ['agentUrl', { agentUrl: 'seller.example' }],
    ['account', { account: 'acc-1' }],
    ['account', { account: { account_id: 1n } }],
    ['account', { account: { account_id: 'x'.repeat(5000) } }],
    ['eventTypes', { eventTypes: [] }],
    ['eventTypes', { eventTypes: 'creative.purged' }],
    ['eventTypes', { eventTypes: ['creative purged'] }],
    ['eventTypes', { eventTypes: Array.from({ length: 33 }, (_, at) => `x.${at}`) }],
    ['eventTypes', { eventTypes: [undefined] }],
    ['ref', { ref: undefined }],
    ['ref', { ref: '' }],
    ['ref', { ref: 'x'.repeat(1025) }],
    ['scheme', { scheme: 'Basic' }],
    ['exclusive', { exclusive: 'yes' }],
    ['credentials', { credentials: [] }],
    ['credentials', { credentials: { x: '' } }],
    ['signal', { signal: {} }],
    ['subscribe', { types: [] }],
  ];
  it.each(wrong)('with a wrong %s are refused, and nothing is asked: %o', async (name, part) => {
    const { seller, process } = subscriptionWorld();
    const registrations = process();
    const error = await refusedBy(registrations.subscribe({ ...request, ...part }));
    expect(error).toBeInstanceOf(RegistrationError);
    expect(String(error)).toContain(name);
    expect(told(seller)).toEqual([]);
    expect(await listed(registrations)).toEqual([]);
  });

  it('need a client', async () => {
    const registrations = createRegistrations({
      store: memoryStore(),
      baseUrl: 'https://buyer.example/webhooks',
      secrets: [NEWEST],
    });
    const name = { agentUrl: AGENT, account, ref: 'creatives' };
    for (const call of [registrations.subscribe(request), registrations.unsubscribe(name)]) {
      expect(await refusedBy(call)).toMatchObject({
        code: 'request_invalid',
        message: expect.stringContaining('these registrations have no client'),
      });
    }
  });

  it('that abort end at once, and are finished by start', async () => {
    const world = subscriptionWorld();
    const aborter = new AbortController();
    world.seller.instead = ({ operation }) => {
      if (operation !== 'sync_accounts') return undefined;
      aborter.abort(new Error('enough'));
      return new Promise(() => {});
    };
    const registrations = world.process();
    expect(await refusedBy(registrations.subscribe({ ...request, signal: aborter.signal }))).toMatchObject({
      message: 'enough',
    });
    expect(await statesOf(registrations)).toEqual(['creatives pending']);
    world.seller.instead = undefined;
    await runUntil(
      world,
      registrations,
      async () => (await statesOf(registrations))[0] === 'creatives active',
    );
    expect(await refusedBy(registrations.subscribe({ ...products, signal: aborter.signal }))).toMatchObject({
      message: 'enough',
    });
    expect(await statesOf(registrations)).toEqual(['creatives active']);
  });

  it('are listed in pages, by seller and state, and forgotten with the seller', async () => {
    const { seller, process } = subscriptionWorld(
      subscriptionSeller(Array.from({ length: 3 }, (_, at) => ({ account_id: `acc-${at}` }))),
    );
    const registrations = process();
    for (let at = 0; at < 3; at += 1) {
      await registrations.subscribe({ ...request, account: { account_id: `acc-${at}` } });
    }
    seller.instead = () => ({ errors: [{ code: 'INVALID_REQUEST', message: 'no' }] });
    await refusedBy(registrations.subscribe({ ...products, account: { account_id: 'acc-0' } }));
    const { list } = registrations.subscriptions;
    const first = await list({ agentUrl: AGENT, limit: 2, state: 'active' });
    const rest = await list({ agentUrl: AGENT, limit: 2, state: 'active', after: first.next });
    expect(first.subscriptions.length + rest.subscriptions.length).toBe(3);
    expect(rest.next).toBeUndefined();
    expect((await list({ state: 'refused' })).subscriptions).toMatchObject([{ ref: 'products' }]);
    expect((await list({ agentUrl: 'https://other.example/mcp' })).subscriptions).toEqual([]);
    expect(await refusedBy(list({ after: 'x' }))).toMatchObject({ code: 'request_invalid' });
    expect(await refusedBy(list({ state: 'open' as never }))).toMatchObject({ code: 'request_invalid' });
    await registrations.forget(AGENT);
    expect(await listed(registrations)).toEqual([]);
  });

  it('leave at most 32 of an account, refused ones too', async () => {
    const { seller, process } = subscriptionWorld();
    seller.instead = ({ operation }) =>
      operation === 'sync_accounts' ? { errors: [{ code: 'INVALID_REQUEST', message: 'no' }] } : undefined;
    const registrations = process();
    for (let at = 0; at < 32; at += 1)
      await refusedBy(registrations.subscribe({ ...request, ref: `r${at}` }));
    expect(await refusedBy(registrations.subscribe(request))).toMatchObject({ code: 'set_full' });
    expect(await listed(registrations)).toHaveLength(32);
  });
});
