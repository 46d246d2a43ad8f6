import { setImmediate as turn } from 'node:timers/promises';
import { describe, expect, it, vi } from 'vitest';
import type { CallSeller, Registrations, SubscriptionSeen } from '../../src/registrations/index.ts';
import type { StoreRegistrations } from '../../src/stores/index.ts';
import { gate } from '../support/gate.ts';
import {
  AGENT,
  CALL_MS,
  DAY_MS,
  THEIRS,
  account,
  configsOf,
  listed,
  ofAgent,
  oursOf,
  products,
  request,
  runUntil,
  statesOf,
  subscriptionWorld,
  theirsOf,
  told,
  withTheirs,
  type Heard,
} from './subscription-seller.ts';

describe('two processes', () => {
  it('change a set one after the other, and neither loses what the other set', async () => {
    const world = subscriptionWorld(withTheirs());
    const [one, other] = [world.process(), world.process()];
    let open = 0;
    let most = 0;
    world.seller.instead = async () => {
      most = Math.max(most, (open += 1));
      for (let turns = 0; turns < 5; turns += 1) await turn();
      open -= 1;
      return undefined;
    };
    const refs = ['a', 'b', 'c', 'd', 'e', 'f'];
    const seen = await Promise.all(
      refs.map((ref, at) => (at % 2 === 0 ? one : other).subscribe({ ...request, ref })),
    );
    expect(seen.map(({ state }) => state)).toEqual(refs.map(() => 'active'));
    expect(most).toBe(1);
    expect(configsOf(world.seller)).toHaveLength(THEIRS.length + refs.length);
    expect(theirsOf(world.seller)).toEqual(THEIRS);
    expect(world.alarms).toEqual([]);
  });

  it.each(['takes', 'forgets'])(
    'leave a set that the other %s before they look at it, and warn of nothing',
    async (does) => {
      const world = subscriptionWorld();
      const other = world.process();
      await other.subscribe(request);
      world.seller.heard.length = 0;
      world.offsetMs += DAY_MS;
      const answered = gate();
      const looked = gate();
      const over = gate();
      let changing: Promise<unknown> | undefined;
      let isFound = false;
      const process = world.process(world.seller.client, (rows) => ({
        ...rows,
        due: async (asked) => {
          // It looks once, and no time passes before it has.
          if (asked.kind !== 'subscription' || isFound) {
            if (asked.kind === 'subscription') looked.open();
            await over.opened;
            return rows.due(asked);
          }
          isFound = true;
          const due = await rows.due(asked);
          expect(due.rows).toHaveLength(1);
          if (does === 'forgets') await other.forget(AGENT);
          else {
            world.seller.instead = () => answered.opened;
            changing = other.subscribe(products);
            while (world.seller.heard.length === 0) await turn();
          }
          return due;
        },
      }));
      await process.start();
      await looked.opened;
      expect(told(world.seller)).toEqual(does === 'forgets' ? [] : ['list_accounts']);
      expect(world.lines).toEqual([]);
      answered.open();
      await changing;
      over.open();
      await process.stop();
    },
  );

  it('wait for one that holds the set, and go on where it has died', async () => {
    const world = subscriptionWorld();
    let isDead = true;
    world.seller.instead = ({ operation }) =>
      isDead && operation === 'sync_accounts' ? new Promise(() => {}) : undefined;
    void world.process().subscribe(request);
    while (world.seller.heard.length < 2) await turn();
    isDead = false;
    const since = world.now();
    const other = world.process();
    expect(await other.subscribe(products)).toMatchObject({ state: 'active' });
    expect(world.now() - since).toBeGreaterThan(CALL_MS - 1000);
    expect(await statesOf(other)).toEqual(['creatives active', 'products active']);
  });

  it('are not held up by a clock that was ahead', async () => {
    const world = subscriptionWorld();
    world.offsetMs = 30 * DAY_MS;
    world.seller.instead = () => new Promise(() => {});
    void world.process().subscribe(request);
    while (world.seller.heard.length < 1) await turn();
    world.seller.instead = undefined;
    world.offsetMs = 0;
    const other = world.process();
    await runUntil(world, other, async () => (await statesOf(other))[0] === 'creatives active', DAY_MS);
    expect(await statesOf(other)).toEqual(['creatives active']);
  });

  it('change nothing any more where another one has taken the set', async () => {
    const world = subscriptionWorld();
    let release = (): void => undefined;
    world.seller.instead = ({ operation }) =>
      operation === 'list_accounts' && world.seller.heard.length === 1
        ? new Promise((resolve) => {
            release = () => resolve(undefined);
          })
        : undefined;
    const slow = world.process().subscribe(request);
    while (world.seller.heard.length < 1) await turn();
    world.offsetMs += CALL_MS + 1;
    expect(await world.process().subscribe(products)).toMatchObject({ state: 'active' });
    const before = world.seller.heard.length;
    release();
    expect(await slow).toMatchObject({ ref: 'creatives', state: 'active' });
    // It takes the set anew, and finds that the other one has set both.
    expect(told(world.seller).slice(before)).toEqual(['list_accounts']);
  });
});

/** Never comes back: the process is gone. */
const gone = (): Promise<never> => new Promise(() => {});

describe('a process that dies', () => {
  /** What is done, at which step it dies, and what is there in the end. */
  type Act = (registrations: Registrations) => Promise<unknown>;
  const acts: readonly (readonly [
    string,
    SubscriptionSeen['ref'],
    Act,
    Act | undefined,
    readonly string[],
  ])[] = [
    ['subscribes', 'account', (one) => one.subscribe(request), undefined, ['creatives active']],
    [
      'changes one',
      'account',
      (one) => one.subscribe({ ...request, eventTypes: ['creative.purged'], scheme: 'Bearer' }),
      async (one) => {
        await one.subscribe(products);
        await one.subscribe(request);
      },
      ['products active', 'creatives active'],
    ],
    [
      'unsubscribes',
      'account',
      (one) => one.unsubscribe({ agentUrl: AGENT, account, ref: 'creatives' }),
      (one) => one.subscribe(request),
      [],
    ],
    ['subscribes to an agent', 'agent', (one) => one.subscribe(ofAgent), undefined, ['agent active']],
    [
      'unsubscribes from an agent',
      'agent',
      (one) => one.unsubscribe({ agentUrl: AGENT, ref: 'agent', exclusive: true }),
      (one) => one.subscribe(ofAgent),
      [],
    ],
  ];

  const whole = async (
    act: Act,
    before: Act | undefined,
    at: { readonly call?: number; readonly step?: number; readonly when: 'before' | 'after' },
  ) => {
    const world = subscriptionWorld(withTheirs());
    await before?.(world.process());
    const wanted = world.seller;
    let calls = 0;
    let steps = 0;
    let isDead = false;
    const client: CallSeller = async (...given: Parameters<typeof wanted.client>): Promise<unknown> => {
      calls += 1;
      const isLast = calls === at.call;
      isDead ||= isLast;
      if (isDead && (!isLast || at.when === 'before')) return gone();
      const answer = await wanted.client(...given);
      return isLast ? gone() : answer;
    };
    const dying = world.process(client, (rows): StoreRegistrations => ({
      ...rows,
      run: async (sender, plan) => {
        steps += 1;
        const isLast = steps === at.step;
        isDead ||= isLast;
        if (isDead && (!isLast || at.when === 'before')) return gone();
        const done = await rows.run(sender, plan);
        return isLast ? gone() : done;
      },
    }));
    let isDone = false;
    void act(dying).then(() => (isDone = true));
    await vi.waitUntil(() => isDone || isDead, { interval: 1, timeout: 60_000 });
    for (let turns = 0; turns < 20; turns += 1) await turn();
    return { world, isDone, calls, steps };
  };

  it.each(acts)('while it %s leaves what another one finishes', async (_name, kind, act, before, states) => {
    let deaths = 0;
    for (const what of ['call', 'step'] as const) {
      for (const when of ['before', 'after'] as const) {
        for (let nth = 1; nth < 100; nth += 1) {
          const { world, isDone } = await whole(act, before, { [what]: nth, when });
          if (isDone) break;
          deaths += 1;
          const other = world.process();
          await runUntil(world, other, async () => (await statesOf(other)).every(isSettled), 60 * CALL_MS);
          const is = await statesOf(other);
          // Before anything of it was written, it was never wanted.
          if (is.length > 0 || states.length > 0) {
            const wasWritten = JSON.stringify(is) === JSON.stringify(states);
            const wasNot = before ? isAsBefore(is) : is.length === 0;
            expect([what, when, nth, wasWritten || wasNot, is]).toEqual([what, when, nth, true, is]);
          }
          // The owner does it again, as at its next start.
          await act(other);
          expect(await statesOf(other)).toEqual(expect.arrayContaining([...states]));
          expect(await listed(other)).toHaveLength(states.length);
          expect(theirsOf(world.seller)).toEqual(THEIRS);
          const set = kind === 'agent' ? world.seller.agent.configs : oursOf(world.seller);
          expect(set).toHaveLength(states.length);
          expect(world.alarms).toEqual([]);
        }
      }
    }
    expect(deaths).toBeGreaterThan(10);
  });

  const isSettled = (one: string): boolean => !/ (?:pending|removing)$/.test(one);
  const isAsBefore = (is: readonly string[]): boolean => is.every((one) => one.endsWith(' active'));
});

describe('answers of a seller that means ill', () => {
  const entries = (...configs: readonly unknown[]): unknown => ({
    accounts: [{ account_id: 'acc-1', notification_configs: configs }],
  });
  const deep = JSON.parse(`${'['.repeat(5000)}${']'.repeat(5000)}`) as unknown;
  const answers: readonly (readonly [string, unknown])[] = [
    ['nothing', undefined],
    ['null', null],
    ['a text', 'x'.repeat(1_000_000)],
    ['a number', 42],
    ['a list', [{}]],
    ['an empty object', {}],
    ['accounts that are none', { accounts: 'acc-1' }],
    [
      'accounts of any kind',
      { accounts: [null, 1, 'x', [], { account_id: 1 }, { account_id: 'acc-1', notification_configs: 7 }] },
    ],
    ['entries of any kind', entries(null, 1, 'x', [])],
    ['entries without a name', entries({}, { subscriber_id: '' }, { subscriber_id: 1 })],
    [
      '10,000 entries',
      entries(...Array.from({ length: 10_000 }, (_, at) => ({ subscriber_id: `theirs-${at}` }))),
    ],
    [
      'one entry 10,000 times',
      entries(...Array.from({ length: 10_000 }, () => ({ subscriber_id: 'theirs-1' }))),
    ],
    ['huge texts', entries({ subscriber_id: 'theirs-1', url: 'x'.repeat(1_000_000) })],
    ['deep nesting', entries({ subscriber_id: 'theirs-1', x: deep })],
    ['what is not JSON', entries({ subscriber_id: 'theirs-1', x: () => 1 })],
    [
      'names of prototypes',
      entries(
        { subscriber_id: '__proto__', authentication: { schemes: ['Bearer'] } },
        { subscriber_id: 'constructor' },
      ),
    ],
    ['authentication of any kind', entries({ subscriber_id: 'theirs-1', authentication: 1 })],
    ['pages without an end', { accounts: [], pagination: { has_more: true, cursor: 'c' } }],
    ['pages without a cursor', { accounts: [], pagination: { has_more: true } }],
    ['a task', { status: 'submitted', task_id: 't-1' }],
    ['a failed task', { status: 'failed', task_id: 't-1', message: 'x' }],
    ['errors of any kind', { errors: [null, 1, [], { code: 1, message: {} }] }],
    [
      'an action of any kind',
      { action: {}, accounts: [{ account_id: 'acc-1', action: [], notification_configs: 7 }] },
    ],
  ];
  const places: readonly (readonly [string, (call: Heard, nth: number) => boolean])[] = [
    ['the first reading', ({ operation }, nth) => operation === 'list_accounts' && nth === 1],
    ['the dry run', ({ args }) => args['dry_run'] === true],
    ['the change', ({ operation, args }) => operation.startsWith('sync') && args['dry_run'] !== true],
    ['the reading afterwards', ({ operation }, nth) => operation === 'list_accounts' && nth > 1],
  ];
  const cases = places.flatMap(([place, isHere]) =>
    answers.map(([name, answer]) => ({ place, name, isHere, answer })),
  );

  it.each(cases)('$name, to $place: nothing of others is lost', async ({ isHere, answer }) => {
    const world = subscriptionWorld(withTheirs());
    const registrations = world.process();
    await registrations.subscribe(products);
    world.seller.heard.length = 0;
    let readings = 0;
    world.seller.instead = (call) => {
      if (call.operation === 'list_accounts') readings += 1;
      // What undefined would leave to the honest seller.
      return isHere(call, readings) ? (answer ?? null) : undefined;
    };
    const outcome: unknown = await registrations.subscribe(request).catch((error: unknown) => error);
    if (outcome instanceof Error) expect(outcome.message.length).toBeLessThan(6000);
    world.seller.instead = undefined;
    const known = (await listed(registrations)).map(({ reason = '' }) => reason);
    for (const reason of known) expect(reason.length).toBeLessThan(6000);
    expect(theirsOf(world.seller)).toEqual(THEIRS);
    expect((await registrations.subscribe(request)).state).toBe('active');
    expect((await registrations.subscribe(products)).state).toBe('active');
    expect(theirsOf(world.seller)).toEqual(THEIRS);
    expect(oursOf(world.seller)).toHaveLength(2);
  });
});
