import { afterEach, describe, expect, it } from 'vitest';
import {
  type ApplyOptions,
  type MovePlan,
  type RouteScheme,
  SellerBusyError,
  SellerError,
} from '../../src/registrations/index.ts';
import { LONG } from '../reliability/form.ts';
import {
  AGENT,
  allSteps,
  type Bought,
  type Config,
  DAY,
  HOUR,
  isMoved,
  type Manner,
  MINUTE,
  mortalProcess,
  movingWorld,
  type MovingWorld,
  NEW,
  OLD,
  passUntil,
  passWithout,
  type Process,
  type SellerBuy,
} from './moving-seller.ts';

let world: MovingWorld;
afterEach(async () => world.end());

describe('a media buy moves', () => {
  it('to another base, by an update with webhook members alone', async () => {
    world = movingWorld();
    const old = await world.process({ baseUrl: OLD });
    await world.buy(old, 'buy-1', { account: { account_id: 'a1' }, ref: 'order-1' });
    const process = await world.process();
    const plan = await process.registrations.plan();
    expect(plan).toEqual({
      to: { baseUrl: NEW },
      steps: [
        {
          agentUrl: AGENT,
          mediaBuyId: 'buy-1',
          from: [
            { channel: 'reports', baseUrl: OLD, scheme: 'HMAC-SHA256' },
            { channel: 'push', baseUrl: OLD, scheme: 'signature' },
          ],
          to: [
            { channel: 'reports', baseUrl: NEW, scheme: 'HMAC-SHA256' },
            { channel: 'push', baseUrl: NEW, scheme: 'signature' },
          ],
          text: expect.stringContaining('media buy buy-1'),
          state: 'planned',
        },
      ],
    });
    const before = structuredClone(world.seller.buy('buy-1'));
    await process.start();
    const applied = await process.registrations.apply(plan);
    expect(applied.steps.map(({ state }) => state)).toEqual(['waiting']);
    await passUntil(world, () => isMoved(process));
    const [update, ...more] = world.seller.updates();
    expect(more).toEqual([]);
    expect(update).toEqual({
      media_buy_id: 'buy-1',
      account: { account_id: 'a1' },
      reporting_webhook: { ...before.reports, url: `${NEW}${lastPart(before.reports?.url)}` },
      push_notification_config: {
        url: `${NEW}${lastPart(before.push?.url)}`,
        operation_id: expect.any(String),
      },
      idempotency_key: expect.any(String),
    });
    expect(world.seller.calls.at(-1)?.ref).toBe('order-1');
    expect(await allSteps(process)).toEqual([]);
    expect(world.clock.now()).toBeLessThan(MINUTE);
  });
});

const inOrder = (a: string, b: string): number => a.localeCompare(b);

const lastPart = (url: unknown): string => String(url).slice(String(url).lastIndexOf('/'));
const baseIn = (config: Config | undefined): string =>
  String(config?.url).slice(0, -lastPart(config?.url).length);

/** A media buy whose seller was told the old base, and a process that tells it the new one. */
async function bought(manner: Manner, of: Bought = {}): Promise<Process> {
  world = movingWorld();
  const old = await world.process({ baseUrl: OLD });
  await world.buy(old, 'buy-1', of);
  world.seller.buy('buy-1').manner = manner;
  const process = await world.process();
  await process.start();
  return process;
}

const statesOf = async (process: Process): Promise<readonly unknown[]> =>
  (await allSteps(process)).map(({ state }) => state);

const moves = async ({ registrations }: Process): Promise<MovePlan> =>
  registrations.apply(await registrations.plan());

/** How often each key was sent, and how often the media buy was changed. */
const sent = (): { readonly attempts: readonly number[]; readonly applied: number } => {
  const { attempts, applied } = world.seller.buy('buy-1');
  return { attempts: [...attempts.values()], applied: applied.length };
};

describe('a media buy whose URLs were retired by force', () => {
  const seller = { agentUrl: AGENT, edition: '3.1' } as const;

  it.each(['its seller has others', 'its seller has no others'])(
    'moves to new ones, where %s',
    async (which) => {
      const process = await bought('done');
      const { registrations } = process;
      const urlsOf = ({ reports, push }: SellerBuy): readonly string[] =>
        [reports, push].map((config) => String(config?.url));
      const before = urlsOf(world.seller.buy('buy-1'));
      if (which === 'its seller has others') {
        await registrations.reportingWebhook(seller, { frequency: 'daily', scheme: 'Bearer' });
      }
      for (const { agentUrl, base, route, mediaBuys } of (await registrations.state()).urls) {
        if (mediaBuys.length > 0) await registrations.retire({ agentUrl, base, route }, { force: true });
      }
      await moves(process);
      await passUntil(world, () => isMoved(process));
      const after = urlsOf(world.seller.buy('buy-1'));
      expect(after).toEqual([
        expect.stringMatching(new RegExp(`^${NEW}/[\\w-]{48}$`)),
        expect.stringMatching(new RegExp(`^${NEW}/[\\w-]{48}$`)),
      ]);
      for (const url of before) expect(after.map(lastPart)).not.toContain(lastPart(url));
      for (const url of after) {
        expect(await registrations.senders(new URL(url))).toMatchObject([seller]);
      }
    },
  );
});

describe('whatever its seller does (told.md §3.2), a media buy moves, once', () => {
  it.each<readonly [Manner, readonly number[], number]>([
    ['done', [1], 1],
    ['late', [1], 1],
    ['twice', [2], 1],
    ['conflict', [1, 1], 1],
    ['forgetful', [1, 2, 1], 2],
    ['submitted', [1], 1],
    ['input-required', [1], 1],
    ['busy', [2], 1],
  ])('%s', async (manner, attempts, applied) => {
    const process = await bought(manner);
    await moves(process);
    await passUntil(world, () => isMoved(process));
    expect(await allSteps(process)).toEqual([]);
    expect(sent()).toEqual({ attempts, applied });
    const { reports, push } = world.seller.buy('buy-1');
    expect([reports, push].map(baseIn)).toEqual([NEW, NEW]);
    await world.clock.pass(30 * MINUTE);
    expect(sent()).toEqual({ attempts, applied });
  });

  it.each<readonly [Manner, string]>([
    ['refuses', 'this webhook is not taken'],
    ['fails', 'nobody pays'],
    ['conflicts', 'CONFLICT'],
  ])('or is refused, with the reason: %s', async (manner, reason) => {
    const process = await bought(manner);
    await moves(process);
    const states = async (): Promise<readonly unknown[]> =>
      (await allSteps(process)).map(({ state }) => state);
    await passUntil(world, async () => (await states())[0] === 'refused');
    expect(await allSteps(process)).toMatchObject([
      { mediaBuyId: 'buy-1', state: 'refused', reason: expect.stringContaining(reason) },
    ]);
    const refused = sent();
    await world.clock.pass(30 * MINUTE);
    expect(sent()).toEqual(refused);
    world.seller.buy('buy-1').manner = 'done';
    const again = await moves(process);
    expect(again.steps.map(({ state }) => state)).toEqual(['waiting']);
    await passUntil(world, () => isMoved(process));
    expect(baseIn(world.seller.buy('buy-1').reports)).toBe(NEW);
  });
});

describe('CONFLICT (told.md §3.2)', () => {
  it('reads the revision, and begins again with it, without an alarm', async () => {
    const process = await bought('conflict');
    await moves(process);
    await passUntil(world, () => isMoved(process));
    expect(world.seller.updates().map(({ revision }) => revision)).toEqual([undefined, 5]);
    expect(world.seller.calls.map(({ operation }) => operation)).toEqual([
      'create_media_buy',
      'update_media_buy',
      'get_media_buys',
      'update_media_buy',
    ]);
    expect(process.alarms).toEqual([]);
  });

  it('repeats an update without a revision that may still be done: none is sent under another key', async () => {
    const process = await bought('locked');
    await moves(process);
    await passUntil(world, () => isMoved(process));
    expect(await isMoved(process)).toBe(true);
    expect(sent()).toEqual({ attempts: [expect.any(Number)], applied: 1 });
  });

  it('waits longer with each, so that a lock of a while is over before the last', async () => {
    const process = await bought('briefly locked');
    await moves(process);
    await passUntil(world, () => isMoved(process));
    expect(await isMoved(process)).toBe(true);
    expect(sent().applied).toBe(1);
  });

  it('at most ten times', async () => {
    const process = await bought('conflicts');
    await moves(process);
    await passUntil(world, async () => (await statesOf(process))[0] === 'refused');
    expect(sent().attempts).toEqual(Array(11).fill(1));
    expect(process.alarms).toMatchObject([{ code: 'operation_refused', sender: AGENT, mediaBuyId: 'buy-1' }]);
  });

  it('asks for the revision when the seller may be asked, and says so where it cannot be read', async () => {
    const process = await bought('conflict');
    const asked: number[] = [];
    world.seller.says = () => {
      asked.push(world.clock.now());
      throw new SellerBusyError(429, 10 * MINUTE);
    };
    await moves(process);
    await passUntil(world, async () => (await statesOf(process))[0] === 'refused');
    expect(asked).toHaveLength(10);
    const waits = asked.slice(1).map((at, i) => at - (asked[i] ?? 0));
    expect(Math.min(...waits)).toBeGreaterThanOrEqual(10 * MINUTE);
    expect(process.alarms).toMatchObject([
      { code: 'operation_refused', message: expect.stringContaining('its revision cannot be read') },
    ]);
  });

  it('leaves other operations as they are: their call is repeated', async () => {
    const process = await bought('done');
    const made = await process.registrations.create({
      agentUrl: AGENT,
      taskType: 'update_media_buy',
      arguments: { media_buy_id: 'buy-1', revision: 77 },
    });
    await expect(made.call()).rejects.toMatchObject({ code: 'CONFLICT' });
    expect(await process.registrations.get(made)).toMatchObject({ state: 'calling' });
  });
});

it.each<Manner>(['done', 'submitted'])(
  'the end of a step has no ref, by which its handler could book the order again; the seller is called with it: %s',
  async (manner) => {
    const process = await bought(manner, { ref: 'order-1' });
    await moves(process);
    await passUntil(world, () => isMoved(process));
    const ends = (): readonly unknown[] =>
      process.events.flatMap(({ registration: of }) => (of?.taskType === 'update_media_buy' ? of : []));
    await passUntil(world, () => ends().length > 0, MINUTE);
    expect(ends()).toEqual([
      {
        operationId: expect.any(String),
        taskType: 'update_media_buy',
        createdAt: expect.any(Number),
        isStep: true,
      },
    ]);
    expect(new Set(world.seller.calls.map(({ ref }) => ref))).toEqual(new Set(['order-1']));
  },
);

describe('an update whose task does not end (told.md §3.2)', () => {
  const WEEK = 7 * DAY;

  it('is refused when polling gives it up', async () => {
    const process = await bought('empty');
    await moves(process);
    await passUntil(world, async () => (await statesOf(process))[0] === 'refused', 2 * HOUR);
    expect(await allSteps(process)).toMatchObject([
      { state: 'refused', reason: expect.stringContaining('has not ended') },
    ]);
  });

  it('is refused after a week; its end counts all the same', async () => {
    const process = await bought('endless');
    await moves(process);
    await passUntil(world, () => world.seller.updates().length > 0);
    await passWithout(world, [process], WEEK - HOUR);
    await process.registrations.start();
    await world.clock.pass(20 * MINUTE);
    expect(await statesOf(process)).toEqual(['under_way']);
    await world.clock.pass(HOUR);
    expect(await statesOf(process)).toEqual(['refused']);
    world.seller.buy('buy-1').manner = 'submitted';
    await process.poller.start();
    await passUntil(world, () => isMoved(process));
    expect(await isMoved(process)).toBe(true);
    expect(sent()).toEqual({ attempts: [1], applied: 1 });
  });

  it('is over with its media buy', async () => {
    const process = await bought('endless');
    await moves(process);
    await passUntil(world, () => world.seller.updates().length > 0);
    await world.opened().store.registrations?.run(AGENT, (rows) => {
      const row = rows.get('stream', 'buy-1') ?? expect.fail('no row');
      rows.save({ ...row, value: JSON.stringify({ ...JSON.parse(row.value), status: 'canceled' }) });
    });
    await world.clock.pass(20 * MINUTE);
    expect(await allSteps(process)).toEqual([]);
  });
});

describe('an update that is never answered', () => {
  it('is begun under a new key when its own is over, and no sooner', async () => {
    const process = await bought('never');
    await moves(process);
    await world.clock.pass(DAY - 10 * MINUTE);
    expect(world.seller.buy('buy-1').attempts.size).toBe(1);
    expect(await allSteps(process)).toMatchObject([{ state: 'under_way' }]);
    world.seller.buy('buy-1').manner = 'done';
    world.seller.buy('buy-1').attempts.clear();
    await world.clock.pass(10 * MINUTE);
    await passUntil(world, () => isMoved(process));
    expect(await isMoved(process)).toBe(true);
  });

  it('waits for its key where a repeat of it is refused: the first may still be done', async () => {
    const process = await bought('twice');
    const { buys } = world.seller;
    await moves(process);
    await passUntil(world, () => world.seller.updates().length > 0);
    const [first] = world.seller.updates();
    Object.assign(buys.get('buy-1') ?? {}, { manner: 'refuses' });
    await world.clock.pass(10 * MINUTE);
    expect(world.seller.updates().map((one) => one['idempotency_key'])).toEqual(
      Array(2).fill(first?.['idempotency_key']),
    );
    expect(await allSteps(process)).toMatchObject([
      { state: 'under_way', reason: expect.stringContaining('it is sent again once its key is over') },
    ]);
    Object.assign(buys.get('buy-1') ?? {}, { manner: 'done' });
    await world.clock.pass(DAY);
    expect(await isMoved(process)).toBe(true);
    expect(new Set(world.seller.updates().map((one) => one['idempotency_key'])).size).toBe(2);
  });
});

describe('a plan (told.md §3.1)', () => {
  it('writes nothing and asks nobody', async () => {
    const process = await bought('done');
    const calls = world.seller.calls.length;
    const plan = await process.registrations.plan();
    expect(await process.registrations.plan()).toEqual(plan);
    await world.clock.pass(MINUTE);
    expect(world.seller.calls.length).toBe(calls);
    expect(JSON.parse(JSON.stringify(plan))).toEqual(plan);
  });

  it.each<readonly [string, Bought]>([
    ['metrics that it cannot repeat', { webhook: { token: 'a-token-of-sixteen' } }],
    ['a frequency that is none of ours', { webhook: { reporting_frequency: 'weekly' } }],
  ])('has a step as unknown, and nothing is sent: %s', async (_is, of) => {
    const process = await bought('done', of);
    const { steps } = await moves(process);
    expect(steps).toMatchObject([
      { state: 'unknown', to: [], reason: expect.stringContaining('reporting_webhook') },
    ]);
    await world.clock.pass(10 * MINUTE);
    expect(world.seller.updates()).toEqual([]);
    expect(await statesOf(process)).toEqual(['unknown']);
  });

  it('leaves alone what goes to a URL of another', async () => {
    const process = await bought('done', { webhook: { url: 'https://other.example/reports' } });
    await moves(process);
    await passUntil(world, () => isMoved(process));
    const { reports, push } = world.seller.buy('buy-1');
    expect([reports?.url, baseIn(push)]).toEqual(['https://other.example/reports', NEW]);
    expect(world.seller.updates().map((args) => 'reporting_webhook' in args)).toEqual([false]);
  });

  it('goes where it was made to go, by whichever process it is applied', async () => {
    const process = await bought('done');
    const plan = JSON.parse(JSON.stringify(await process.registrations.plan())) as MovePlan;
    const other = await world.process({ baseUrl: [OLD, NEW] });
    expect((await other.registrations.apply(plan)).steps).toMatchObject([{ state: 'waiting' }]);
    await passUntil(world, () => isMoved(process));
    expect(baseIn(world.seller.buy('buy-1').reports)).toBe(NEW);
  });

  it('has no step for a media buy that is terminal, or is told it already', async () => {
    const process = await bought('done');
    await world.buy(process, 'buy-2');
    expect((await allSteps(process)).map(({ mediaBuyId }) => mediaBuyId)).toEqual(['buy-1']);
    world.seller.buy('buy-1').status = 'canceled';
    const made = await process.registrations.create({
      agentUrl: AGENT,
      taskType: 'update_media_buy',
      arguments: { media_buy_id: 'buy-1', canceled: true, reporting_webhook: null },
    });
    await made.call();
    expect((await allSteps(process)).map(({ mediaBuyId }) => mediaBuyId)).toEqual([]);
  });

  it('takes a scheme, for each channel', async () => {
    const process = await bought('done');
    await process.registrations.apply(await process.registrations.plan({ scheme: 'Bearer' }));
    await passUntil(world, () => isMoved(process, { scheme: 'Bearer' }));
    const { reports, push } = world.seller.buy('buy-1');
    expect(reports?.['authentication']).toMatchObject({ schemes: ['Bearer'] });
    expect(push?.['authentication']).toEqual(reports?.['authentication']);
    expect(await isMoved(process)).toBe(true);
  });

  it('has no step for reports that have the scheme already', async () => {
    const process = await bought('done');
    const scheme = 'HMAC-SHA256';
    const before = world.seller.buy('buy-1').reports?.url;
    await process.registrations.apply(await process.registrations.plan({ baseUrl: OLD, scheme }));
    await passUntil(world, () => isMoved(process, { baseUrl: OLD, scheme }));
    expect(world.seller.updates().map((args) => 'reporting_webhook' in args)).toEqual([false]);
    expect(world.seller.buy('buy-1').reports?.url).toBe(before);
    expect(await isMoved(process, { baseUrl: OLD })).toBe(true);
  });

  it.each<readonly [RouteScheme | undefined, object | undefined]>([
    ['Bearer', { schemes: ['Bearer'] }],
    ['HMAC-SHA256', { schemes: ['HMAC-SHA256'] }],
    [undefined, undefined],
  ])(
    'registers the end of its update by the scheme of the reports, where there is no other: %s',
    async (scheme, is) => {
      world = movingWorld();
      const old = await world.process({
        baseUrl: OLD,
        call: (url, operation, args, how) => {
          if (args['push_notification_config']) {
            throw new SellerError('INVALID_REQUEST', 'no push_notification_config here');
          }
          return world.seller.call(url, operation, args, how);
        },
      });
      await world.buy(old, 'buy-1', { ...(scheme && { scheme }) });
      const process = await world.process();
      await process.start();
      await moves(process);
      await passUntil(world, () => isMoved(process));
      const { push } = world.seller.buy('buy-1');
      expect(baseIn(push)).toBe(NEW);
      if (is) expect(push?.['authentication']).toMatchObject(is);
      else expect(push).not.toHaveProperty('authentication');
    },
  );

  it('is paged: at most `limit` steps a page, and all of them once', async () => {
    world = movingWorld();
    const old = await world.process({ baseUrl: OLD });
    const other = 'https://other.example/mcp';
    for (let i = 0; i < 7; i += 1) await world.buy(old, `buy-${i}`);
    for (let i = 7; i < 12; i += 1) await world.buy(old, `buy-${i}`, { agentUrl: other });
    const process = await world.process();
    const first = await process.registrations.plan({ limit: 5 });
    expect(first.steps).toHaveLength(5);
    const ids = async (request: object): Promise<readonly string[]> =>
      (await allSteps(process, request)).map(({ mediaBuyId = '' }) => mediaBuyId).toSorted(inOrder);
    expect(await ids({ limit: 5 })).toEqual([...world.seller.buys.keys()].toSorted(inOrder));
    expect(await ids({ limit: 1, sellers: [other] })).toEqual([
      'buy-10',
      'buy-11',
      'buy-7',
      'buy-8',
      'buy-9',
    ]);
    expect(await ids({ sellers: [] })).toEqual([]);
  });

  it('reads the media buys of a page together, however few they are', async () => {
    world = movingWorld();
    const old = await world.process({ baseUrl: OLD });
    for (let i = 0; i < 6; i += 1) await world.buy(old, `buy-${i}`);
    const { store } = world.opened();
    const { registrations: rows = expect.fail('the store has registrations') } = store;
    const read: number[] = [];
    const page: typeof rows.page = async (query) => {
      const found = await rows.page(query);
      if (query.kind === 'stream') read.push(found.rows.length);
      return found;
    };
    const process = await world.process({ store: { ...store, registrations: { ...rows, page } } });
    expect((await process.registrations.plan({ limit: 5 })).steps).toHaveLength(5);
    expect(read).toEqual([5]);
  });

  it('has no media buy whose account is closed', async () => {
    const process = await bought('done');
    await world.buy(process, 'buy-2');
    expect(await allSteps(process)).toMatchObject([{ mediaBuyId: 'buy-1' }]);
    await world.opened().store.registrations?.run(AGENT, (rows) => {
      const row = rows.get('stream', 'buy-1') ?? expect.fail('no row');
      rows.save({ ...row, list: 'closed', dueAt: null });
    });
    expect(await allSteps(process)).toEqual([]);
  });

  it('prints what a seller named without its control characters', async () => {
    world = movingWorld();
    const old = await world.process({ baseUrl: OLD });
    await world.buy(old, `buy\u001b[2J\u202e"><script>${'x'.repeat(500)}`);
    const [step] = await allSteps(await world.process());
    expect(step?.text).toMatch(/^[\x20-\x7e…]*$/);
    expect(step?.text.length).toBeLessThan(600);
  });

  it.each<readonly [string, object, string]>([
    ['a base that no delivery would reach', { baseUrl: 'https://third.example/webhooks' }, 'baseUrl: '],
    ['a base that is no text', { baseUrl: 7 }, 'baseUrl: '],
    ['another scheme', { scheme: 'Basic' }, 'scheme: '],
    ['sellers that are no list', { sellers: AGENT }, 'sellers: '],
    ['a seller that is no URL', { sellers: ['seller'] }, 'agentUrl: '],
    ['too long a page', { limit: 1001 }, 'limit: '],
    ['an after of another page', { after: 'x' }, 'after: '],
    ['an after within the store that is none', { after: '0.b x' }, 'after: '],
    ['an unknown member', { base: OLD }, 'base'],
  ])('refuses %s', async (_is, request, message) => {
    world = movingWorld();
    const { registrations } = await world.process();
    await expect(registrations.plan(request)).rejects.toMatchObject({
      code: 'request_invalid',
      message: expect.stringContaining(message),
    });
  });
});

describe('apply (told.md §3.3)', () => {
  /** Media buys of one seller that were told the old base. */
  async function manyBought(manner: Manner, count: number): Promise<Process> {
    world = movingWorld();
    const old = await world.process({ baseUrl: OLD });
    for (let i = 0; i < count; i += 1) await world.buy(old, `buy-${i}`);
    for (const buy of world.seller.buys.values()) buy.manner = manner;
    const process = await world.process();
    await process.start();
    return process;
  }

  it('has at most four updates of a seller under way, and does all', async () => {
    const process = await manyBought('late', 10);
    await moves(process);
    await passUntil(world, () => isMoved(process));
    expect(world.seller.most).toBe(4);
    expect(world.seller.updates()).toHaveLength(10);
    expect(world.clock.now()).toBeLessThan(5 * MINUTE);
  });

  it('keeps to it where steps begin late', async () => {
    const before = await manyBought('late', 10);
    const stopped = before.stop();
    await world.clock.pass(5 * MINUTE);
    await stopped;
    const { store } = world.opened();
    const { registrations: rows } = store;
    if (!rows) throw new Error('the store has registrations');
    let isSlow = false;
    const process = await world.process({
      store: {
        ...store,
        registrations: {
          ...rows,
          run: async (sender, plan) => {
            const saved: string[] = [];
            const result = await rows.run(sender, (step, now) =>
              plan({ ...step, save: (row) => (saved.push(row.list ?? ''), step.save(row)) }, now),
            );
            // The first four are claimed for two minutes, and stand still for most of them.
            if (saved.includes('claimed') && !isSlow) {
              isSlow = true;
              await world.clock.sleep(100_000);
            }
            return result;
          },
        },
      },
    });
    const other = await world.process();
    await process.registrations.start();
    await moves(process);
    await passUntil(world, () => isSlow);
    await other.start();
    await passUntil(world, () => isMoved(other));
    expect(isSlow).toBe(true);
    expect(world.seller.most).toBe(4);
    expect(world.seller.updates()).toHaveLength(10);
    await process.registrations.stop();
  });

  it('gives the place of one that is not answered to the next', async () => {
    const process = await manyBought('never', 6);
    await moves(process);
    await passUntil(world, () => world.seller.updates().length > 0);
    expect(new Set(world.seller.updates().map((one) => one['media_buy_id'])).size).toBe(4);
    await world.clock.pass(3 * MINUTE);
    expect(new Set(world.seller.updates().map((one) => one['media_buy_id'])).size).toBe(6);
  });

  it('obeys a pause that the seller asks for', async () => {
    const process = await manyBought('busy', 6);
    await moves(process);
    await passUntil(world, () => world.seller.updates().length > 0);
    await world.clock.pass(4 * MINUTE);
    expect(world.seller.updates()).toHaveLength(4);
    await passUntil(world, () => isMoved(process));
    expect(await isMoved(process)).toBe(true);
  });

  it('does the first steps alone, and the rest where it is called again', async () => {
    const process = await manyBought('done', 5);
    const plan = await process.registrations.plan();
    const { steps } = await process.registrations.apply(plan, { first: 2 });
    expect(steps.map(({ state }) => state)).toEqual(['waiting', 'waiting', 'planned', 'planned', 'planned']);
    await world.clock.pass(10 * MINUTE);
    expect(world.seller.updates()).toHaveLength(2);
    await process.registrations.apply(plan);
    await passUntil(world, () => isMoved(process));
    expect(world.seller.updates()).toHaveLength(5);
  });

  it('answers each step of a plan once, in the order of the plan', async () => {
    const process = await manyBought('never', 21);
    const plan = await process.registrations.plan();
    const { steps } = await process.registrations.apply(plan);
    const ids = plan.steps.map(({ mediaBuyId }) => mediaBuyId);
    expect(new Set(ids).size).toBe(21);
    expect(steps.map(({ mediaBuyId }) => mediaBuyId)).toEqual(ids);
  });

  it('begins nothing twice, however often it is called', async () => {
    const process = await bought('late');
    const plan = await process.registrations.plan();
    const again = async (): Promise<unknown> =>
      (await process.registrations.apply(plan)).steps.map(({ state }) => state);
    expect(await again()).toEqual(['waiting']);
    await passUntil(world, () => world.seller.updates().length > 0);
    expect(await again()).toEqual(['under_way']);
    await passUntil(world, () => isMoved(process));
    expect(await again()).toEqual(['done']);
    await world.clock.pass(10 * MINUTE);
    expect(sent()).toEqual({ attempts: [1], applied: 1 });
  });

  it('takes what is under way to where it is wanted last', async () => {
    const process = await bought('late');
    await moves(process);
    await passUntil(world, () => world.seller.updates().length > 0);
    await process.registrations.apply(await process.registrations.plan({ scheme: 'HMAC-SHA256' }));
    await passUntil(world, () => isMoved(process, { scheme: 'HMAC-SHA256' }));
    expect(sent()).toEqual({ attempts: [1, 1], applied: 2 });
    expect(world.seller.buy('buy-1').push?.['authentication']).toMatchObject({ schemes: ['HMAC-SHA256'] });
  });

  it('is shared by two processes, each step once', async () => {
    const process = await manyBought('late', 9);
    const other = await world.process();
    await other.start();
    const plan = await process.registrations.plan();
    await Promise.all([process.registrations.apply(plan), other.registrations.apply(plan)]);
    await passUntil(world, () => isMoved(process));
    expect(world.seller.most).toBe(4);
    const attempts = [...world.seller.buys.values()].map((one) => [...one.attempts.values()]);
    expect(attempts).toEqual(attempts.map(() => [1]));
  });

  it('names a media buy whose seller takes no registration in an update: its other channel stays', async () => {
    const process = await bought('unregistered');
    await moves(process);
    await passUntil(world, async () => (await statesOf(process))[0] === 'refused');
    expect(await allSteps(process)).toMatchObject([
      {
        state: 'refused',
        from: [{ channel: 'push', baseUrl: OLD }],
        reason: expect.stringContaining('push_notification_config'),
      },
    ]);
    expect(baseIn(world.seller.buy('buy-1').reports)).toBe(NEW);
    // The seller may do so: thousands of alarms would say one thing.
    expect(process.alarms.filter(({ code }) => code === 'operation_refused')).toEqual([]);
  });

  it('says so where its seller takes no registration in an update, and the update fails', async () => {
    const process = await bought('unregistered, fails');
    await moves(process);
    await passUntil(world, async () => (await statesOf(process))[0] === 'refused');
    expect(baseIn(world.seller.buy('buy-1').reports)).toBe(OLD);
    expect(process.alarms.filter(({ code }) => code === 'operation_refused')).toMatchObject([
      { mediaBuyId: 'buy-1', message: expect.stringContaining('nobody pays') },
    ]);
  });

  it('says so of a step that cannot be begun any more, because its update is not known by now', async () => {
    world = movingWorld();
    const old = await world.process({ baseUrl: OLD });
    await world.buy(old, 'buy-1');
    const process = await world.process();
    await moves(process);
    // The owner's own update comes first, and asks for more than an update of ours could repeat.
    const of = { agentUrl: AGENT, edition: '3.1' } as const;
    const webhook = await old.registrations.reportingWebhook(of, { frequency: 'daily' });
    const made = await old.registrations.create({
      ...of,
      taskType: 'update_media_buy',
      arguments: {
        media_buy_id: 'buy-1',
        reporting_webhook: { ...webhook, token: 'a-token-of-sixteen' },
      },
    });
    await made.call();
    await process.start();
    await passUntil(world, async () => (await statesOf(process))[0] === 'refused');
    const reason = expect.stringContaining('its metrics or further members are not known here');
    expect(await allSteps(process)).toMatchObject([{ state: 'refused', reason }]);
    expect(world.seller.updates()).toHaveLength(1);
    expect(process.alarms).toMatchObject([
      { code: 'operation_refused', sender: AGENT, mediaBuyId: 'buy-1', message: reason },
    ]);
  });

  it('goes on without a media buy that has become terminal', async () => {
    const process = await bought('conflict');
    world.seller.buy('buy-1').status = 'completed';
    await moves(process);
    await passUntil(world, () => world.seller.calls.some(({ operation }) => operation === 'get_media_buys'));
    await world.clock.pass(10 * MINUTE);
    expect(sent()).toEqual({ attempts: [1], applied: 0 });
  });

  it('forgets steps with their seller', async () => {
    const process = await bought('never');
    await moves(process);
    await process.registrations.forget(AGENT);
    expect(await allSteps(process)).toEqual([]);
    await world.clock.pass(10 * MINUTE);
    expect(world.seller.updates().length).toBeLessThan(2);
  });

  it.each<readonly [string, unknown, ApplyOptions]>([
    ['nothing', {}, {}],
    ['steps that are none', { to: {}, steps: [7] }, {}],
    ['a step of nothing', { to: {}, steps: [{ agentUrl: AGENT, state: 'planned' }] }, {}],
    ['a step of no seller', { to: {}, steps: [{ agentUrl: 'x', mediaBuyId: 'b', state: 'planned' }] }, {}],
    ['a base that is not ours any more', { to: { baseUrl: OLD }, steps: [] }, {}],
    ['a number of steps that is none', { to: {}, steps: [] }, { first: -1 }],
    ['an unknown option', { to: {}, steps: [] }, { last: 1 } as ApplyOptions],
  ])('refuses %s', async (_is, plan, options) => {
    world = movingWorld();
    const { registrations } = await world.process({ baseUrl: NEW });
    await expect(registrations.apply(plan as MovePlan, options)).rejects.toMatchObject({
      code: 'request_invalid',
    });
  });
});

describe('a seller that answers get_media_buys as it likes', () => {
  it.each<readonly [string, unknown]>([
    ['no revision', { media_buy_id: 'buy-1' }],
    ['a revision that is no number', { media_buy_id: 'buy-1', revision: { a: 1 } }],
    ['one beyond what is exact', { media_buy_id: 'buy-1', revision: 1e300 }],
    ['one that is not whole', { media_buy_id: 'buy-1', revision: 1.5 }],
    ['another media buy', { media_buy_id: 'buy-2', revision: 9, status: 'canceled' }],
    ['no object', 7],
  ])('%s: the step begins again without one, at most ten times', async (_is, row) => {
    const process = await bought('conflict');
    world.seller.says = () => row;
    await moves(process);
    await passUntil(world, async () => (await statesOf(process))[0] === 'refused');
    expect(world.seller.updates().map(({ revision }) => revision)).toEqual(Array(11).fill(undefined));
  });
});

describe('a process dies at every step of a move, and another one finishes it', () => {
  it.each<readonly [Manner, number]>([
    ['done', 1],
    ['conflict', 2],
    ['submitted', 1],
  ])('%s: each update once, under %i keys at most', async (manner, keys) => {
    let passed = 0;
    for (let diesAt = 0; ; diesAt += 1) {
      world = movingWorld();
      const old = await world.process({ baseUrl: OLD });
      await world.buy(old, 'buy-1');
      world.seller.buy('buy-1').manner = manner;
      const heir = await world.process();
      await moves(heir);
      const { process, life } = await mortalProcess(world, diesAt);
      await process.registrations.start();
      await passUntil(world, async () => life.isOver() || isMoved(heir), 5 * MINUTE);
      await heir.start();
      await passUntil(world, () => isMoved(heir));
      const { attempts, applied, reports, push } = world.seller.buy('buy-1');
      const where = `${diesAt}, ${life.passed.at(-1)}`;
      expect([where, await isMoved(heir), applied.length]).toEqual([where, true, 1]);
      expect(attempts.size).toBeLessThanOrEqual(keys);
      expect([reports, push].map(baseIn)).toEqual([NEW, NEW]);
      passed = diesAt;
      await world.end();
      if (!life.isOver() || diesAt >= MOST_POINTS) break;
    }
    expect(passed).toBeGreaterThan(10);
  });
});

/** Looks go on after the move: points behind these are of them. */
const MOST_POINTS: number = LONG ? 60 : 30;
