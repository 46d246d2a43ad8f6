import { afterEach, describe, expect, it } from 'vitest';
import {
  type MovePlan,
  type MoveRequest,
  type Registrations,
  SellerBusyError,
  SellerError,
  type UrlState,
} from '../../src/registrations/index.ts';
import {
  allSteps,
  DAY,
  isMoved,
  MINUTE,
  mortalProcess,
  movingWorld,
  type MovingWorld,
  NEW,
  OLD,
  passUntil,
  passWithout,
  type Process,
} from './moving-seller.ts';
import { LONG } from '../reliability/form.ts';
import {
  AGENT,
  account,
  CHANGE,
  type Entry,
  ofAgent,
  oursOf,
  products,
  request,
  type SubscriptionSeller,
  subscriptionSeller,
  theirsOf,
  THEIRS,
  told,
  TYPES,
  withTheirs,
} from './subscription-seller.ts';

let world: MovingWorld;
let sets: SubscriptionSeller;
afterEach(async () => world.end());

function begin(seller: SubscriptionSeller = withTheirs()): void {
  world = movingWorld();
  sets = seller;
  world.seller.others = sets.client;
}

/** A seller that has been told subscriptions below the old base, and a process that tells the new one. */
async function moving(
  requests: readonly Parameters<Registrations['subscribe']>[0][] = [request],
  { seller, agoMs = 0 }: { readonly seller?: SubscriptionSeller; readonly agoMs?: number } = {},
): Promise<Process> {
  begin(seller);
  const old = await world.process({ baseUrl: OLD });
  for (const one of requests) await old.registrations.subscribe(one);
  await world.clock.pass(agoMs);
  sets.heard.length = 0;
  const process = await world.process();
  await process.start();
  return process;
}

const apply = async ({ registrations }: Process, to: MoveRequest = {}): Promise<MovePlan> =>
  registrations.apply(await registrations.plan(to));
const basesOf = (entries: readonly Entry[]): readonly string[] =>
  entries.map(({ url }) => String(url).slice(0, String(url).lastIndexOf('/')));
const statesOf = async (process: Process): Promise<readonly string[]> =>
  (await process.registrations.subscriptions.list()).subscriptions.map(({ ref, state }) => `${ref} ${state}`);
const stepsOf = async (process: Process, to: MoveRequest = {}): Promise<readonly string[]> =>
  (await allSteps(process, to)).map(({ subscription, state }) => `${subscription?.ref} ${state}`);
/** Subscriptions by the base of the URL that they are recorded on. */
const recordedOn = async ({ registrations }: Process): Promise<Record<string, readonly string[]>> =>
  Object.fromEntries(
    (await registrations.state()).urls.flatMap(({ base, subscriptions }) =>
      subscriptions.length > 0 ? [[base, subscriptions]] : [],
    ),
  );
const urlAt = async ({ registrations }: Process, base: string): Promise<UrlState> =>
  (await registrations.state()).urls.find((url) => url.base === base) ?? expect.fail(`no URL at ${base}`);
const secretIn = ({ authentication }: Entry = {}): string =>
  (authentication as { readonly credentials?: string } | undefined)?.credentials ?? '';

describe('a subscription moves (told.md §3.6)', () => {
  it('to another base, by one change of its set, and keeps its id', async () => {
    const process = await moving();
    const [before] = structuredClone(oursOf(sets));
    const plan = await process.registrations.plan();
    expect(plan).toEqual({
      to: { baseUrl: NEW },
      steps: [
        {
          agentUrl: AGENT,
          subscription: { ref: 'creatives', account },
          from: [{ channel: 'subscription', baseUrl: OLD, scheme: 'signature' }],
          to: [{ channel: 'subscription', baseUrl: NEW, scheme: 'signature' }],
          text: `${AGENT} subscription creatives: subscription from ${OLD} (signature) to ${NEW} (signature); planned`,
          state: 'planned',
        },
      ],
    });
    expect(told(sets)).toEqual([]);
    const applied = await process.registrations.apply(JSON.parse(JSON.stringify(plan)) as MovePlan);
    expect(applied.steps.map(({ state }) => state)).toEqual(['waiting']);
    await passUntil(world, () => isMoved(process));
    expect(told(sets)).toEqual(CHANGE);
    expect(theirsOf(sets)).toEqual(THEIRS);
    const [is] = oursOf(sets);
    expect({ ...is, url: 0 }).toEqual({ ...before, url: 0 });
    expect(basesOf(oursOf(sets))).toEqual([NEW]);
    expect(await statesOf(process)).toEqual(['creatives active']);
    expect(world.clock.now()).toBeLessThan(MINUTE);
    await world.clock.pass(30 * MINUTE);
    expect(told(sets)).toEqual(CHANGE);
    expect([process.alarms, await stepsOf(process)]).toEqual([[], []]);
  });

  it('is on both URLs until its set is confirmed, and then the former one may be quiet', async () => {
    const process = await moving([request], { agoMs: 2 * DAY });
    sets.instead = ({ operation, args }) => {
      if (operation === 'sync_accounts' && args['dry_run'] !== true) throw new Error('no answer');
      return undefined;
    };
    await apply(process);
    await passUntil(world, () => sets.sent('sync_accounts').length > 0);
    expect(await stepsOf(process)).toEqual(['creatives under_way']);
    expect(await recordedOn(process)).toEqual({ [OLD]: ['creatives'], [NEW]: ['creatives'] });
    await expect(process.registrations.retire(await urlAt(process, OLD))).rejects.toThrow(
      '1 subscriptions (creatives) are on it',
    );
    sets.instead = undefined;
    await passUntil(world, () => isMoved(process));
    expect(await recordedOn(process)).toEqual({ [NEW]: ['creatives'] });
    const { quietAt = 0 } = await urlAt(process, OLD);
    // What the seller sent before it was told may be sent again for a day.
    expect(quietAt).toBeGreaterThan(Date.now() + DAY - 5 * MINUTE);
    await expect(process.registrations.retire(await urlAt(process, OLD))).rejects.toMatchObject({
      code: 'url_in_use',
    });
    await passWithout(world, [process], DAY);
    await process.registrations.retire(await urlAt(process, OLD));
  });

  it('to another scheme, with the credentials of that, and others beside it keep theirs', async () => {
    const process = await moving([
      { ...request, scheme: 'HMAC-SHA256' },
      { ...products, scheme: 'HMAC-SHA256' },
    ]);
    const [first, second] = structuredClone(oursOf(sets));
    const plan = await process.registrations.plan({ scheme: 'Bearer', baseUrl: OLD });
    await process.registrations.apply(plan, { first: 1 });
    await passUntil(world, async () => (await stepsOf(process, plan.to)).length === 1);
    const [kept, moved] = oursOf(sets);
    expect(kept).toEqual([first, second].find((one) => one?.['subscriber_id'] === kept?.['subscriber_id']));
    expect(moved).toMatchObject({ authentication: { schemes: ['Bearer'] } });
    expect(secretIn(moved)).toMatch(/^[\w-]{43}$/);
    expect([secretIn(first), secretIn(second)]).not.toContain(secretIn(moved));
  });

  it('with all others of its set, in one change', async () => {
    const process = await moving([request, products]);
    await apply(process);
    await passUntil(world, () => isMoved(process));
    expect(told(sets)).toEqual(CHANGE);
    expect(basesOf(oursOf(sets))).toEqual([NEW, NEW]);
  });

  it('of an agent, whose set is sent whole', async () => {
    const process = await moving([ofAgent, { ...ofAgent, ref: 'second' }]);
    await process.registrations.apply(await process.registrations.plan(), { first: 1 });
    await passUntil(world, async () => (await stepsOf(process)).length === 1);
    expect(basesOf(sets.agent.configs).toSorted()).toEqual([NEW, OLD].toSorted());
    expect(sets.sent('sync_agent_notification_configs')).toHaveLength(1);
    await apply(process);
    await passUntil(world, () => isMoved(process));
    expect(basesOf(sets.agent.configs)).toEqual([NEW, NEW]);
    expect(await statesOf(process)).toEqual(['agent active', 'second active']);
    expect(process.alarms).toEqual([]);
  });

  it('obeys the pause of its seller', async () => {
    const process = await moving();
    sets.instead = () => {
      throw new SellerBusyError(429, 10 * MINUTE);
    };
    await apply(process);
    await passUntil(world, () => sets.heard.length > 0);
    sets.instead = undefined;
    await world.clock.pass(9 * MINUTE);
    expect(told(sets)).toEqual(['list_accounts']);
    await passUntil(world, () => isMoved(process));
    expect(basesOf(oursOf(sets))).toEqual([NEW]);
  });

  it('once, by two processes that both do it', async () => {
    const process = await moving([request, products]);
    const other = await world.process();
    await other.start();
    const plan = await process.registrations.plan();
    await Promise.all([process, other].map(({ registrations }) => registrations.apply(plan)));
    await passUntil(world, () => isMoved(process));
    await world.clock.pass(10 * MINUTE);
    expect(sets.sent('sync_accounts')).toHaveLength(1);
    expect((await process.registrations.apply(plan)).steps.map(({ state }) => state)).toEqual([
      'done',
      'done',
    ]);
  });

  it('further, where it is wanted elsewhere meanwhile', async () => {
    const process = await moving();
    sets.instead = ({ operation }) => {
      if (operation === 'sync_accounts') throw new Error('no answer');
      return undefined;
    };
    await apply(process);
    await passUntil(world, () => sets.heard.some(({ operation }) => operation === 'sync_accounts'));
    const to = { baseUrl: OLD, scheme: 'Bearer' } as const;
    expect((await apply(process, to)).steps.map(({ state }) => state)).toEqual(['under_way']);
    sets.instead = undefined;
    await passUntil(world, () => isMoved(process, to));
    expect(basesOf(oursOf(sets))).toEqual([OLD]);
    expect(oursOf(sets)).toMatchObject([{ authentication: { schemes: ['Bearer'] } }]);
    expect(await recordedOn(process)).toEqual({ [OLD]: ['creatives'] });
  });

  it('with what its owner changes, who comes last', async () => {
    const process = await moving();
    sets.instead = ({ operation }) => {
      if (operation === 'sync_accounts') throw new Error('no answer');
      return undefined;
    };
    await apply(process, { scheme: 'Bearer' });
    await passUntil(world, () => sets.heard.some(({ operation }) => operation === 'sync_accounts'));
    sets.instead = undefined;
    const seen = await process.registrations.subscribe({ ...request, eventTypes: ['creative.purged'] });
    expect(seen).toMatchObject({ state: 'active', scheme: 'signature' });
    expect(oursOf(sets)).toMatchObject([{ event_types: ['creative.purged'] }]);
    expect(oursOf(sets)[0]).not.toHaveProperty('authentication');
    expect(basesOf(oursOf(sets))).toEqual([NEW]);
    expect(await stepsOf(process)).toEqual([]);
  });

  it('also while the set is changed by another process', async () => {
    const process = await moving();
    let release = (): void => undefined;
    sets.instead = ({ operation }) =>
      operation === 'sync_accounts' && sets.heard.length === 2
        ? new Promise((resolve) => {
            release = () => resolve(undefined);
          })
        : undefined;
    const other = await world.process({ baseUrl: OLD });
    const subscribing = other.registrations.subscribe(products);
    while (sets.heard.length < 2) await world.clock.settled();
    expect((await apply(process)).steps.map(({ state }) => state)).toEqual(['waiting', 'waiting']);
    release();
    expect((await subscribing).state).toBe('active');
    await passUntil(world, () => isMoved(process));
    expect(basesOf(oursOf(sets))).toEqual([NEW, NEW]);
    expect(theirsOf(sets)).toEqual(THEIRS);
  });
});

describe('a subscription that its seller does not take there (subscriptions.md §2.9)', () => {
  const refuse = (): void => {
    sets.instead = ({ operation, args }) => {
      if (operation !== 'sync_accounts') return undefined;
      const sent = JSON.stringify(args);
      if (sent.includes(NEW)) throw new SellerError('VALIDATION_ERROR', 'its proof of control failed');
      return undefined;
    };
  };

  it('is active where it was, and the step is refused, with the reason, until it is tried again', async () => {
    const process = await moving();
    const before = structuredClone(oursOf(sets));
    refuse();
    await apply(process);
    await passUntil(world, async () => (await stepsOf(process))[0] === 'creatives refused');
    expect(await allSteps(process)).toMatchObject([
      { state: 'refused', reason: expect.stringContaining('its proof of control failed') },
    ]);
    expect(await statesOf(process)).toEqual(['creatives active']);
    expect(oursOf(sets)).toEqual(before);
    expect(await recordedOn(process)).toEqual({ [OLD]: ['creatives'] });
    const calls = sets.heard.length;
    await world.clock.pass(30 * MINUTE);
    expect(sets.heard.length).toBe(calls);
    expect(process.alarms).toEqual([]);
    sets.instead = undefined;
    expect((await apply(process)).steps.map(({ state }) => state)).toEqual(['waiting']);
    await passUntil(world, () => isMoved(process));
    expect(basesOf(oursOf(sets))).toEqual([NEW]);
  });

  it('goes with its owner, who has the credentials of others', async () => {
    const theirs = { subscriber_id: 'theirs-3', url: 'https://other.example/c', event_types: ['x'] };
    const secret = 'a-secret-of-somebody-else';
    const process = await moving();
    sets.accounts[0]?.notification_configs?.push({
      ...theirs,
      authentication: { schemes: ['Bearer'], credentials: secret },
    });
    const before = structuredClone(theirsOf(sets));
    await apply(process);
    await passUntil(world, async () => (await stepsOf(process))[0] === 'creatives refused');
    expect(await allSteps(process)).toMatchObject([{ reason: expect.stringContaining('"theirs-3"') }]);
    expect(sets.sent('sync_accounts')).toEqual([]);
    await process.registrations.subscribe({ ...request, credentials: { 'theirs-3': secret } });
    expect(basesOf(oursOf(sets))).toEqual([NEW]);
    expect(theirsOf(sets)).toEqual(before);
    expect(await stepsOf(process)).toEqual([]);
  });

  it('is refused after five answers that change nothing', async () => {
    const process = await moving();
    const before = structuredClone(oursOf(sets));
    sets.instead = ({ operation, args }) =>
      operation === 'sync_accounts' && args['dry_run'] !== true
        ? { dry_run: false, accounts: [{ ...account, action: 'updated', status: 'active' }] }
        : undefined;
    await apply(process);
    await passUntil(world, async () => (await stepsOf(process))[0] === 'creatives refused');
    expect(sets.sent('sync_accounts')).toHaveLength(5);
    expect(oursOf(sets)).toEqual(before);
    expect(await statesOf(process)).toEqual(['creatives active']);
    expect(process.alarms).toEqual([]);
  });

  it('is not set again where the seller has paused it, and says so', async () => {
    const process = await moving();
    for (const entry of oursOf(sets)) entry['active'] = false;
    await apply(process);
    await passUntil(world, async () => (await statesOf(process))[0] === 'creatives lost');
    expect(sets.sent('sync_accounts')).toEqual([]);
    expect(process.alarms).toMatchObject([{ code: 'subscription_lost' }]);
    expect(await allSteps(process)).toMatchObject([
      {
        state: 'unknown',
        to: [],
        text: expect.stringContaining(
          `${AGENT} subscription creatives: subscription from ${OLD} (signature) to nowhere; unknown: `,
        ),
        reason: expect.stringContaining('Subscribe again'),
      },
    ]);
    expect((await apply(process)).steps.map(({ state }) => state)).toEqual(['unknown']);
    await world.clock.pass(30 * MINUTE);
    expect(sets.sent('sync_accounts')).toEqual([]);
    await process.registrations.subscribe(request);
    expect(basesOf(oursOf(sets))).toEqual([NEW]);
    expect(await stepsOf(process)).toEqual([]);
  });

  it('of an agent is left alone where somebody else has changed the set', async () => {
    const process = await moving([ofAgent]);
    sets.agent.configs.push({ subscriber_id: 'theirs', url: 'https://other.example/x' });
    const before = structuredClone(sets.agent.configs);
    await apply(process);
    await passUntil(world, async () => (await statesOf(process))[0] === 'agent lost');
    expect(sets.agent.configs).toEqual(before);
    expect(process.alarms).toMatchObject([{ code: 'subscription_lost' }]);
    expect(await stepsOf(process)).toEqual(['agent unknown']);
  });

  it('that was refused itself is not moved', async () => {
    const process = await moving();
    sets.instead = ({ operation }) => {
      if (operation === 'sync_accounts') throw new SellerError('VALIDATION_ERROR', 'not these types');
      return undefined;
    };
    const other = await world.process({ baseUrl: OLD });
    const asked = { ...request, eventTypes: ['creative.purged'] };
    await expect(other.registrations.subscribe(asked)).rejects.toThrow('not these types');
    expect(await allSteps(process)).toMatchObject([
      { state: 'unknown', reason: expect.stringContaining('not these types') },
    ]);
    expect(await recordedOn(process)).toEqual({ [OLD]: ['creatives'] });
  });
});

describe('a process dies at every step, and another one finishes it', () => {
  const RENEW: MoveRequest = { renew: true };
  it.each<readonly [string, MoveRequest, Parameters<Registrations['subscribe']>[0]]>([
    ['of an account, to another base', {}, request],
    ['of an agent, to another base', {}, ofAgent],
    ['of an account, to new credentials', RENEW, { ...request, scheme: 'HMAC-SHA256' }],
  ])('%s', async (_is, to, of) => {
    let passed = 0;
    for (let diesAt = 0; diesAt < MOST_POINTS; diesAt += STRIDE) {
      begin();
      const old = await world.process({ baseUrl: OLD });
      await old.registrations.subscribe(of);
      const baseUrl = to.renew ? OLD : [NEW, OLD];
      if (to.renew) await world.clock.pass(31 * DAY);
      const configs = (): readonly Entry[] => ('account' in of ? oursOf(sets) : sets.agent.configs);
      const [before] = structuredClone(configs());
      const { process, life } = await mortalProcess(world, diesAt, { baseUrl });
      void apply(process, to);
      void process.registrations.start();
      await passUntil(world, () => life.isOver(), 2 * MINUTE);
      const heir = await world.process({ baseUrl });
      await heir.start();
      // Where it was not stored, it is the owner's to ask for again.
      await apply(heir, to);
      await passUntil(world, () => isMoved(heir, to), DAY);
      const where = `${diesAt}, ${life.passed.at(-1)}`;
      const [is, ...more] = configs();
      expect([where, await statesOf(heir), await stepsOf(heir, to)]).toEqual([
        where,
        [`${of.ref} active`],
        [],
      ]);
      expect([where, more, theirsOf(sets)]).toEqual([where, [], THEIRS]);
      expect([where, is?.['url'] === before?.['url'], is?.['subscriber_id']]).toEqual([
        where,
        false,
        before?.['subscriber_id'],
      ]);
      expect([where, heir.alarms]).toEqual([where, []]);
      const { urls } = await heir.registrations.state();
      expect([where, urls.filter(({ subscriptions }) => subscriptions.length > 0).length]).toEqual([
        where,
        1,
      ]);
      passed = diesAt;
      await world.end();
      if (!life.isOver()) break;
    }
    expect(passed).toBeGreaterThan(10);
  });
});

describe('a URL that was retired by force', () => {
  const forced = async (of: Parameters<Registrations['subscribe']>[0]): Promise<Process> => {
    const process = await moving([{ ...of, scheme: 'Bearer' }]);
    await process.registrations.retire(await urlAt(process, OLD), { force: true });
    return process;
  };

  it("is no subscription's any more: it is lost, and told another one by its owner alone", async () => {
    const process = await forced(request);
    const [before] = structuredClone(oursOf(sets));
    await passWithout(world, [process], DAY);
    await process.start();
    await passUntil(world, async () => (await statesOf(process))[0] === 'creatives lost');
    expect(sets.sent('sync_accounts')).toEqual([]);
    expect(process.alarms).toMatchObject([{ code: 'subscription_lost' }]);
    await process.registrations.subscribe({ ...request, scheme: 'Bearer' });
    const [after] = oursOf(sets);
    expect([secretIn(after).length, secretIn(after) === secretIn(before)]).toEqual([43, false]);
    expect(basesOf(oursOf(sets))).toEqual([NEW]);
    expect(await recordedOn(process)).toEqual({ [NEW]: ['creatives'] });
  });

  it('is not sent with the set of an agent', async () => {
    const process = await forced(ofAgent);
    const before = structuredClone(sets.agent.configs);
    await passWithout(world, [process], DAY);
    await process.start();
    await passUntil(world, async () => (await statesOf(process))[0] === 'agent lost');
    expect(sets.agent.configs).toEqual(before);
    await process.registrations.subscribe({ ...ofAgent, scheme: 'Bearer' });
    expect(basesOf(sets.agent.configs)).toEqual([NEW]);
    expect(secretIn(sets.agent.configs[0])).not.toBe(secretIn(before[0]));
    expect(secretIn(sets.agent.configs[0])).toMatch(/^[\w-]{43}$/);
  });

  it('is not told for what was to be set there', async () => {
    const process = await moving([]);
    sets.instead = ({ operation }) => {
      if (operation === 'sync_accounts') throw new Error('no answer');
      return undefined;
    };
    const subscribing = process.registrations.subscribe(request);
    await subscribing.catch(() => undefined);
    const url = await urlAt(process, NEW);
    await process.registrations.retire(url, { force: true });
    sets.instead = undefined;
    await passUntil(world, async () => (await statesOf(process))[0] === 'creatives active');
    const { urls } = await process.registrations.state();
    expect(urls.filter(({ subscriptions }) => subscriptions.length > 0)).toMatchObject([{ base: NEW }]);
    expect(urls.find(({ subscriptions }) => subscriptions.length > 0)?.route).not.toBe(url.route);
  });
});

it('a URL whose last subscription was removed is not quiet for a day', async () => {
  begin();
  const process = await world.process({ baseUrl: OLD });
  await process.registrations.subscribe(request);
  await world.clock.pass(2 * DAY);
  await process.registrations.unsubscribe({ agentUrl: AGENT, account, ref: request.ref });
  await expect(process.registrations.retire(await urlAt(process, OLD))).rejects.toMatchObject({
    code: 'url_in_use',
    message: expect.stringContaining('it is quiet at'),
  });
});

/** Points behind these are of looks after the move. */
const MOST_POINTS = 60;
/** Of each call and step one side, in the short form. */
const STRIDE = LONG ? 1 : 3;

describe('a renewal (told.md §5)', () => {
  const RENEW = { renew: true } as const;
  const aged = async (): Promise<Process> => {
    return moving([{ ...request, scheme: 'HMAC-SHA256' }], { agoMs: 31 * DAY });
  };
  const authAt = async ({ registrations }: Process, entry: Entry | undefined): Promise<unknown> =>
    (await registrations.senders(new URL(String(entry?.['url'])))).map(({ auth }) => auth);

  it('moves the set to the new route, and both take both secrets', async () => {
    const process = await aged();
    const [before] = structuredClone(oursOf(sets));
    expect(await stepsOf(process, RENEW)).toEqual(['creatives planned']);
    await apply(process, RENEW);
    await world.clock.pass(19_000);
    expect(sets.sent('sync_accounts')).toEqual([]);
    await passUntil(world, () => isMoved(process, RENEW));
    const [after] = oursOf(sets);
    // It keeps its base.
    expect(basesOf([after ?? {}])).toEqual([OLD]);
    expect(after?.['url']).not.toBe(before?.['url']);
    const [old, fresh] = [secretIn(before), secretIn(after)];
    expect(fresh).not.toBe(old);
    expect(await authAt(process, before)).toEqual([{ hmac: { secret: old, previousSecret: fresh } }]);
    expect(await authAt(process, after)).toEqual([{ hmac: { secret: fresh, previousSecret: old } }]);
    // Before it may be told it was looked at, as once a day.
    expect(told(sets).slice(-CHANGE.length)).toEqual(CHANGE);
    expect(sets.sent('sync_accounts')).toHaveLength(1);
    const { urls } = await process.registrations.state();
    expect(urls.filter(({ subscriptions }) => subscriptions.length > 0)).toHaveLength(1);
  });

  it('waits for the new route, whoever looks at the set meanwhile', async () => {
    begin();
    const process = await world.process({ baseUrl: OLD });
    const of = { ...request, scheme: 'HMAC-SHA256' } as const;
    await process.registrations.subscribe(of);
    await world.clock.pass(31 * DAY);
    const [before] = structuredClone(oursOf(sets));
    await apply(process, RENEW);
    expect((await process.registrations.subscribe(of)).state).toBe('active');
    expect(oursOf(sets)).toEqual([before]);
    expect(await stepsOf(process, RENEW)).toEqual(['creatives waiting']);
    await process.start();
    await passUntil(world, () => isMoved(process, RENEW));
    expect(secretIn(oursOf(sets)[0])).not.toBe(secretIn(before));
  });

  it('leaves one where it is while others are told the new route, with its own credentials', async () => {
    const process = await aged();
    const [before] = structuredClone(oursOf(sets));
    sets.instead = ({ operation }) => {
      if (operation === 'list_accounts') throw new SellerError('VALIDATION_ERROR', 'not now');
      return undefined;
    };
    await apply(process, RENEW);
    await passUntil(world, async () => (await stepsOf(process, RENEW))[0] === 'creatives refused');
    sets.instead = undefined;
    await world.clock.pass(MINUTE);
    const second = { ...products, scheme: 'HMAC-SHA256' } as const;
    await process.registrations.subscribe(second);
    const [first, other] = oursOf(sets);
    expect(first).toEqual(before);
    expect(secretIn(other)).not.toBe(secretIn(before));
    expect(await statesOf(process)).toEqual(['creatives active', 'products active']);
    const { urls } = await process.registrations.state();
    expect(urls.flatMap(({ subscriptions }) => subscriptions).toSorted()).toEqual(['creatives', 'products']);
    await passWithout(world, [process], 2 * DAY);
    await process.start();
    await world.clock.pass(MINUTE);
    expect(await authAt(process, before)).toHaveLength(1);
    expect(process.alarms).toEqual([]);
    await apply(process, RENEW);
    await passUntil(world, () => isMoved(process, RENEW));
    expect(new Set(oursOf(sets).map(secretIn))).toEqual(new Set([secretIn(other)]));
  });

  it('is one at a time: it waits for a subscription that is on its way', async () => {
    const process = await aged();
    sets.instead = ({ operation }) => {
      if (operation === 'sync_accounts') throw new Error('no answer');
      return undefined;
    };
    await apply(process, RENEW);
    await passUntil(world, () => sets.heard.some(({ operation }) => operation === 'sync_accounts'));
    await passWithout(world, [process], 31 * DAY);
    await process.start();
    const first = await urlAt(process, OLD);
    await apply(process, RENEW);
    await world.clock.pass(10 * MINUTE);
    const { registrations: rows } = world.opened().store;
    const tokens = await rows?.page({ kind: 'route', sender: '', limit: 9 });
    expect(tokens?.rows).toHaveLength(2);
    sets.instead = undefined;
    await passUntil(world, () => isMoved(process, { scheme: 'HMAC-SHA256', baseUrl: OLD }));
    const routes = (await process.registrations.state()).urls.filter(({ base }) => base === OLD);
    expect(routes.map(({ route }) => route)).toContain(first.route);
    expect(routes).toHaveLength(2);
  });

  it('by itself, where it is automatic', async () => {
    const process = await aged();
    const before = secretIn(oursOf(sets)[0]);
    const auto = await world.process({ more: { renew: 'auto' } });
    await auto.start();
    await passUntil(world, () => secretIn(oursOf(sets)[0]) !== before);
    await passUntil(world, () => isMoved(process, RENEW));
    expect(sets.sent('sync_accounts')).toHaveLength(1);
    expect(await statesOf(process)).toEqual(['creatives active']);
  });
});

it('a page has the steps of a set together', async () => {
  const refs = ['a', 'b', 'c'];
  const process = await moving(
    refs.map((ref) => ({ ...request, ref })),
    { seller: subscriptionSeller() },
  );
  const { steps, next } = await process.registrations.plan({ limit: 1 });
  expect([steps.length, next]).toEqual([3, undefined]);
  expect(TYPES.length).toBeGreaterThan(0);
});

it('a page ends with the set that fills it', async () => {
  const second = { account_id: 'acc-2' };
  const refs = ['a', 'b', 'c'];
  const process = await moving(
    [account, second].flatMap((of) => refs.map((ref) => ({ ...request, account: of, ref }))),
    { seller: subscriptionSeller([{ ...account }, { ...second }]) },
  );
  const { steps, next } = await process.registrations.plan({ limit: 2 });
  expect([steps.length, next]).toEqual([3, expect.any(String)]);
  const ids = (await allSteps(process, { limit: 2 })).map(({ subscription }) => JSON.stringify(subscription));
  expect([ids.length, new Set(ids).size]).toEqual([6, 6]);
});
