import { inspect } from 'node:util';
import { describe, expect, it } from 'vitest';
import { type JsonObject, type Registrations, RegistrationError } from '../../src/registrations/index.ts';
import {
  AGENT,
  type Entry,
  account,
  aDayLater,
  configsOf,
  listed,
  ofAgent,
  oursOf,
  products,
  refusedBy,
  request,
  subscriptionSeller,
  subscriptionWorld,
} from './subscription-seller.ts';

/* Sellers, other subscribers and owners that do what nobody expects (subscriptions.md §2). */

const OTHERS = { subscriber_id: 'others', url: 'https://others.example/', event_types: ['product.created'] };

const stateOf = async (registrations: Registrations, ref: string) =>
  (await listed(registrations)).find((one) => one.ref === ref);

describe('a seller that does not say that it was a dry run', () => {
  const withoutDryRun = (answer: unknown): JsonObject => {
    const { dry_run: _dry, ...rest } = answer as JsonObject;
    return rest;
  };

  it('gets the set of an account all the same, with what others have', async () => {
    const { seller, process } = subscriptionWorld(
      subscriptionSeller([{ account_id: 'acc-1', notification_configs: [OTHERS] }]),
    );
    seller.after = ({ operation }, answer) =>
      operation === 'sync_accounts' ? withoutDryRun(answer) : undefined;
    const { state, subscriberId } = await process().subscribe(request);
    expect(state).toBe('active');
    expect(configsOf(seller)).toMatchObject([OTHERS, { subscriber_id: subscriberId }]);
  });

  it('gets that of an agent, and is not said to have it before', async () => {
    const { seller, process } = subscriptionWorld(subscriptionSeller([]));
    seller.after = (_call, answer) => withoutDryRun(answer);
    const registrations = process();
    const { state, subscriberId } = await registrations.subscribe(ofAgent);
    expect(state).toBe('active');
    expect(seller.agent.configs).toMatchObject([{ subscriber_id: subscriberId }]);
  });
});

describe.each(['Bearer', 'HMAC-SHA256'] as const)(
  'an entry of ours with %s that somebody changed',
  (scheme) => {
    it('does not get our credentials for another URL', async () => {
      const world = subscriptionWorld();
      const registrations = world.process();
      await registrations.subscribe({ ...request, scheme });
      const entry = configsOf(world.seller)[0] ?? expect.fail('ours');
      const { credentials } = entry['authentication'] as { readonly credentials: string };
      const url = 'https://evil.example/webhooks';
      const evil = { schemes: [scheme], credentials: 'of-somebody-else' };
      world.seller.accounts[0] = {
        ...account,
        notification_configs: [{ ...entry, url, authentication: evil }],
      };
      world.seller.heard.length = 0;
      await expect(registrations.subscribe(products)).rejects.toMatchObject({ code: 'foreign_credentials' });
      expect(JSON.stringify(world.seller.heard)).not.toContain(credentials);
      expect((await stateOf(registrations, request.ref))?.state).toBe('lost');
      expect(world.alarms).toMatchObject([{ code: 'subscription_lost', ref: request.ref }]);
      await registrations.subscribe({ ...request, scheme });
      await registrations.subscribe(products);
      expect(oursOf(world.seller)).toHaveLength(2);
      expect(JSON.stringify(configsOf(world.seller))).not.toContain('evil');
    });
  },
);

describe('an entry of ours is not active', () => {
  it.each([
    ['paused in another way', (entry: Entry): readonly Entry[] => [{ ...entry, active: 'false' }]],
    ['twice there', (entry: Entry): readonly Entry[] => [entry, { ...entry, url: OTHERS.url }]],
  ])('%s: it is lost, and set again when its owner asks', async (_what, changed) => {
    const world = subscriptionWorld();
    const registrations = world.process();
    const { subscriberId } = await registrations.subscribe(request);
    const entry = configsOf(world.seller)[0] ?? expect.fail('ours');
    world.seller.accounts[0] = { ...account, notification_configs: [...changed(entry)] };
    await aDayLater(world, registrations);
    expect((await stateOf(registrations, request.ref))?.state).toBe('lost');
    expect((await registrations.subscribe(request)).state).toBe('active');
    expect(configsOf(world.seller)).toMatchObject([{ subscriber_id: subscriberId, active: true }]);
  });
});

describe('a seller that answers for an agent with a task, whatever it is asked', () => {
  it('has refused the subscription after some tries, and that is said', async () => {
    const world = subscriptionWorld(subscriptionSeller([]));
    const registrations = world.process();
    world.seller.instead = () => ({ status: 'submitted', task_id: 'task-1' });
    expect((await registrations.subscribe(ofAgent)).state).toBe('pending');
    await aDayLater(world, registrations);
    expect((await stateOf(registrations, ofAgent.ref))?.state).toBe('refused');
    expect(world.alarms).toMatchObject([{ code: 'subscription_refused', ref: ofAgent.ref }]);
  });
});

describe('a set of an agent that is lost', () => {
  it('is not told to a seller any more, which may take an empty dry run for the change', async () => {
    const world = subscriptionWorld(subscriptionSeller([]));
    const registrations = world.process();
    await registrations.subscribe(ofAgent);
    world.seller.agent.configs = [OTHERS];
    await aDayLater(world, registrations);
    expect((await stateOf(registrations, ofAgent.ref))?.state).toBe('lost');
    world.seller.heard.length = 0;
    await aDayLater(world, registrations);
    expect(world.seller.heard).toEqual([]);
    expect((await registrations.subscribe(ofAgent)).state).toBe('active');
  });
});

describe('entries of others', () => {
  it.each(['9007199254740993', '-9007199254740993', '1e400', '[{"deep":1e21}]'])(
    'with the number %s are not sent back as another one',
    async (number) => {
      const theirs = { ...OTHERS, ext: JSON.parse(`{"n":${number}}`) as unknown };
      const { seller, process } = subscriptionWorld(
        subscriptionSeller([{ account_id: 'acc-1', notification_configs: [theirs] }]),
      );
      const registrations = process();
      await expect(registrations.subscribe(request)).rejects.toMatchObject({
        code: 'request_invalid',
        message: expect.stringContaining('"others"'),
      });
      expect(seller.sent('sync_accounts')).toEqual([]);
      expect((await stateOf(registrations, request.ref))?.state).toBe('refused');
    },
  );
});

describe('a seller that repeats credentials', () => {
  const refusal = (args: unknown): JsonObject => ({
    code: 'VALIDATION_ERROR',
    message: JSON.stringify(args),
    field: 'accounts[0].notification_configs[0].url',
    details: { given: args as JsonObject },
  });
  const thrown = (args: unknown): never => {
    throw Object.assign(new Error('refused'), { code: -32602, data: refusal(args) });
  };
  const late = (args: unknown): never => {
    throw new Error(`502 ${JSON.stringify(args)}`);
  };

  it.each([
    [
      'in an answer',
      (args: unknown) => ({ accounts: [{ action: 'failed', errors: [refusal(args)] }] }),
      'refused',
    ],
    ['in an error', thrown, 'refused'],
    ['in an error of its client', late, 'pending'],
  ] as const)('%s: they are not in our errors, lists, alarms and lines', async (_what, answer, state) => {
    const theirs = { schemes: ['Bearer'], credentials: 'credentials-of-others-1' };
    const world = subscriptionWorld(
      subscriptionSeller([
        { account_id: 'acc-1', notification_configs: [{ ...OTHERS, authentication: theirs }] },
      ]),
    );
    const registrations = world.process();
    const sent: string[] = [theirs.credentials];
    world.seller.instead = ({ operation, args }) => {
      if (operation !== 'sync_accounts') return undefined;
      for (const [, found] of JSON.stringify(args).matchAll(/"credentials":"([^"]+)"/g))
        sent.push(found ?? '');
      return answer(args);
    };
    const of = { ...request, scheme: 'Bearer', credentials: { others: theirs.credentials } } as const;
    const error = await refusedBy(registrations.subscribe(of));
    const seen = [inspect(error, { depth: 20 }), await listed(registrations), world.alarms, world.lines];
    expect(new Set(sent).size).toBe(2);
    expect(seen[1]).toMatchObject([{ state }]);
    for (const secret of sent) expect(JSON.stringify(seen)).not.toContain(secret);
    if (state === 'refused')
      expect(error).toMatchObject({ code: 'VALIDATION_ERROR', recovery: 'correctable' });
  });
});

describe('an owner', () => {
  it('who named an account that is none gets rid of it', async () => {
    const { seller, process } = subscriptionWorld();
    const registrations = process();
    const of = { agentUrl: AGENT, account: { account_id: 'misspelt' }, ref: request.ref };
    const call = registrations.subscribe({ ...request, ...of });
    await expect(call).rejects.toMatchObject({ code: 'account_unknown' });
    await registrations.unsubscribe(of);
    expect(await listed(registrations)).toEqual([]);
    await registrations.subscribe(request);
    seller.accounts.length = 0;
    const gone = registrations.unsubscribe({ agentUrl: AGENT, account, ref: request.ref });
    await expect(gone).rejects.toMatchObject({ code: 'account_unknown' });
    expect((await stateOf(registrations, request.ref))?.state).toBe('removing');
  });

  it('who aborts with an error of another seller has refused nothing', async () => {
    const world = subscriptionWorld();
    const registrations = world.process();
    const abort = new AbortController();
    const reason = new RegistrationError('account_unknown', 'of another call');
    world.seller.instead = ({ operation }) => {
      if (operation === 'sync_accounts') abort.abort(reason);
      return undefined;
    };
    await expect(registrations.subscribe({ ...request, signal: abort.signal })).rejects.toBe(reason);
    expect((await stateOf(registrations, request.ref))?.state).toBe('pending');
    world.seller.instead = undefined;
    await aDayLater(world, registrations);
    expect((await stateOf(registrations, request.ref))?.state).toBe('active');
  });

  it('who names an account in two ways keeps both subscriptions, with their credentials', async () => {
    const named = { operator: 'buyer.example' };
    const { seller, process } = subscriptionWorld(subscriptionSeller([{ ...account, ...named }]));
    const registrations = process();
    await registrations.subscribe({ ...request, scheme: 'Bearer' });
    const [first] = configsOf(seller);
    await registrations.subscribe({ ...products, account: named, scheme: 'Bearer' });
    expect(configsOf(seller)).toHaveLength(2);
    expect(configsOf(seller)[0]).toEqual(first);
    // Whatever its own scheme is.
    const kept = structuredClone(configsOf(seller));
    await registrations.subscribe({ ...products, account: { ...account, ...named } });
    expect(configsOf(seller).slice(0, 2)).toEqual(kept);
    expect(configsOf(seller)).toHaveLength(3);
  });

  it('who names no member of the account has named none', async () => {
    const { seller, process } = subscriptionWorld();
    for (const method of ['subscribe', 'unsubscribe'] as const) {
      const of = method === 'subscribe' ? request : { agentUrl: AGENT, ref: request.ref };
      await expect(process()[method]({ ...of, account: {} } as typeof request)).rejects.toMatchObject({
        code: 'request_invalid',
        message: expect.stringContaining('account'),
      });
    }
    expect(seller.heard).toEqual([]);
    await expect(process().subscribe({ ...request, account })).resolves.toMatchObject({ state: 'active' });
  });
});
