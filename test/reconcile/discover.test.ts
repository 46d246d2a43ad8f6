import { afterEach, describe, expect, it } from 'vitest';
import { SellerBusyError, SellerError } from '../../src/registrations/index.ts';
import type { DiscoverQuery, Discovery } from '../../src/reconcile/index.ts';
import type { JsonObject } from '../../src/registrations/index.ts';
import { AGENT } from '../receiver/setup.ts';
import { buy, day, type Process, world, type World } from './kit.ts';

let here: World | undefined;
afterEach(() => here?.end());
const begin = (at = '2026-03-10T12:00:00Z'): World => (here = world(at));

const ACCOUNT = { account_id: 'a1' };
const FLIGHT = { start_time: '2026-03-02T00:00:00+01:00', end_time: '2026-04-01T00:00:00Z' };

const row = (id: string, more: JsonObject = {}): JsonObject => ({
  media_buy_id: id,
  status: 'active',
  ...FLIGHT,
  ...more,
});
const task = (id: string, more: JsonObject = {}): JsonObject => ({
  task_id: id,
  task_type: 'sync_creatives',
  domain: 'media-buy',
  status: 'working',
  created_at: '2026-03-09T00:00:00Z',
  updated_at: '2026-03-09T00:00:00Z',
  ...more,
});

type Page = { readonly max_results: number; readonly cursor?: string };

/** Answers page by page: `cursor` is the place of the first row. */
function paged(name: string, rows: readonly unknown[]) {
  return ({ pagination }: JsonObject): JsonObject => {
    const { max_results: most, cursor = '0' } = pagination as unknown as Page;
    const end = Number(cursor) + most;
    const more = end < rows.length ? { has_more: true, cursor: String(end) } : { has_more: false };
    return { [name]: rows.slice(Number(cursor), end) as never, pagination: more };
  };
}

const idsOf = ({ mediaBuys, tasks = [] }: Discovery): readonly string[] => [
  ...mediaBuys.map(({ mediaBuyId }) => mediaBuyId),
  ...tasks.map(({ taskId }) => taskId),
];

/** All answers, as an owner would go on. */
async function all({ reconciler }: Process, query: DiscoverQuery): Promise<readonly Discovery[]> {
  const answers: Discovery[] = [];
  let after: string | undefined;
  do {
    const answer = await reconciler.discover({ ...query, after });
    answers.push(answer);
    after = answer.next;
  } while (after !== undefined && answers.length < 20);
  return answers;
}

describe('what runs and is not known', () => {
  it('media buys with their flight and where the seller sends, open tasks, each as an argument of adopt', async () => {
    const { process, seller } = begin();
    const one = await process();
    const sent = (url: unknown): JsonObject => ({
      webhook_activity: [{ url: url as string, status: 'success' }],
    });
    seller.buys = paged('media_buys', [
      row('ours', sent('https://buyer.example/webhooks/abc')),
      row('theirs', sent('https://buyer.example@evil.example/webhooks')),
      row('silent', { status: 'pending_creatives', webhook_activity: [], start_time: 'soon' }),
      row('endless', { end_time: null }),
      row('over', { status: 'completed' }),
    ]);
    const tasks = [
      task('task-1'),
      task('undated', { created_at: null }),
      task('misdated', { created_at: 'today' }),
      task('done', { status: 'completed' }),
    ];
    seller.others.set('list_tasks', paged('tasks', tasks));
    const found = await one.reconciler.discover({ agentUrl: AGENT, account: ACCOUNT, ref: 'spring' });
    const own = { agentUrl: AGENT, account: ACCOUNT, ref: 'spring' };
    const [start, end] = ['2026-03-01T23:00:00.000Z', '2026-04-01T00:00:00.000Z'];
    // Strictly: a fact that the seller does not tell is no member, not even one that is undefined.
    expect(found).toStrictEqual({
      mediaBuys: [
        {
          mediaBuyId: 'ours',
          status: 'active',
          start,
          end,
          usesOurUrl: true,
          adoption: { ...own, mediaBuyId: 'ours' },
        },
        {
          mediaBuyId: 'theirs',
          status: 'active',
          start,
          end,
          usesOurUrl: false,
          adoption: { ...own, mediaBuyId: 'theirs' },
        },
        {
          mediaBuyId: 'silent',
          status: 'pending_creatives',
          end,
          adoption: { ...own, mediaBuyId: 'silent' },
        },
        {
          mediaBuyId: 'endless',
          status: 'active',
          start,
          adoption: { ...own, mediaBuyId: 'endless' },
        },
      ],
      tasks: [
        {
          taskId: 'task-1',
          taskType: 'sync_creatives',
          status: 'working',
          createdAt: '2026-03-09T00:00:00.000Z',
          adoption: { ...own, taskId: 'task-1', taskType: 'sync_creatives' },
        },
        ...['undated', 'misdated'].map((taskId) => ({
          taskId,
          taskType: 'sync_creatives',
          status: 'working',
          adoption: { ...own, taskId, taskType: 'sync_creatives' },
        })),
      ],
      errors: [],
    });
    expect(seller.questions.map(({ operation, args }) => ({ operation, args }))).toEqual([
      {
        operation: 'get_media_buys',
        args: {
          account: ACCOUNT,
          status_filter: ['pending_creatives', 'pending_start', 'active', 'paused'],
          include_webhook_activity: true,
          webhook_activity_limit: 10,
          pagination: { max_results: 100 },
        },
      },
      {
        operation: 'list_tasks',
        args: {
          account: ACCOUNT,
          filters: { statuses: ['submitted', 'working', 'input-required'] },
          pagination: { max_results: 100 },
        },
      },
    ]);
    // Nothing was adopted; what is, is not found again, in any state.
    expect(await one.registrations.list()).toEqual({ operations: [] });
    for (const { adoption } of [...found.mediaBuys, ...(found.tasks ?? [])]) {
      await one.registrations.adopt(adoption);
    }
    expect(await one.reconciler.discover({ agentUrl: AGENT, account: ACCOUNT })).toEqual({
      mediaBuys: [],
      tasks: [],
      errors: [],
    });
  });

  it('a media buy that was bought here, one whose reports alone came, a task that has ended', async () => {
    const { process, seller } = begin();
    const one = await process();
    await buy(one, { start: FLIGHT.start_time, end: FLIGHT.end_time });
    await one.report(day(2), { mediaBuyId: 'stranger' });
    const call = { agentUrl: AGENT, taskType: 'sync_creatives', arguments: {} };
    const made = await one.registrations.create(call);
    await made.settle({ status: 'submitted', task_id: 'ended' });
    await made.settle({ status: 'completed', task_id: 'ended', result: {} });
    seller.buys = paged('media_buys', [row('buy-1'), row('stranger')]);
    seller.others.set('list_tasks', paged('tasks', [task('ended'), task('other')]));
    const found = await one.reconciler.discover({ agentUrl: AGENT });
    expect(idsOf(found)).toEqual(['stranger', 'other']);
    expect(found.mediaBuys[0]?.adoption).toEqual({ agentUrl: AGENT, mediaBuyId: 'stranger' });
  });

  it('what is known of the seller goes with each adoption', async () => {
    const { process, seller } = begin();
    const one = await process();
    seller.buys = paged('media_buys', [row('buy')]);
    const of = {
      agentUrl: AGENT,
      edition: '3.1',
      brandJsonUrl: 'https://seller.example/brand.json',
    } as const;
    const { mediaBuys } = await one.reconciler.discover(of);
    expect(mediaBuys[0]?.adoption).toEqual({ ...of, mediaBuyId: 'buy' });
  });
});

describe('pages', () => {
  it('10,000 media buys in pages of 100; the rest, and the tasks behind theirs, with next', async () => {
    const { process, seller } = begin();
    const one = await process();
    const ids = Array.from({ length: 10_150 }, (_, at) => `buy-${at}`);
    seller.buys = paged(
      'media_buys',
      ids.map((id) => row(id)),
    );
    seller.others.set('list_tasks', paged('tasks', [task('task-1')]));
    const answers = await all(one, { agentUrl: AGENT });
    expect(answers.map((answer) => [answer.mediaBuys.length, answer.tasks?.length, answer.errors])).toEqual([
      [10_000, 1, []],
      [150, 0, []],
    ]);
    expect(answers.flatMap(({ mediaBuys }) => mediaBuys.map(({ mediaBuyId }) => mediaBuyId))).toEqual(ids);
    expect(seller.asked('get_media_buys')).toHaveLength(102);
    expect(seller.asked('list_tasks')).toHaveLength(1);
  });

  it('10,000 media buys in one answer, though a page was asked for; of more it is said', async () => {
    const { process, seller } = begin();
    const one = await process();
    seller.buys = () => ({
      media_buys: Array.from({ length: 10_001 }, (_, at) => row(`buy-${at}`)) as never,
    });
    const { mediaBuys, errors } = await one.reconciler.discover({ agentUrl: AGENT });
    expect(mediaBuys).toHaveLength(10_000);
    expect(errors).toContainEqual({
      of: 'mediaBuys',
      code: 'answer_invalid',
      message: "Entries of the seller's answer that were not read, for a page has too many: 1.",
    });
  });

  it.each([
    ['a cursor that comes again', () => ({ has_more: true, cursor: 'again' }), 2, /repeats a page/],
    ['no cursor', () => ({ has_more: true }), 1, /gives no cursor/],
    ['a cursor that is too long', () => ({ has_more: true, cursor: 'c'.repeat(5000) }), 1, /gives no cursor/],
    ['a cursor that is no text', () => ({ has_more: true, cursor: { a: 1 } }), 1, /gives no cursor/],
  ])('%s ends the list, and what came is there', async (_what, pagination, pages, message) => {
    const { process, seller } = begin();
    const one = await process();
    let page = 0;
    seller.buys = () => {
      page += 1;
      return { media_buys: [row(`buy-${page}`)], pagination: pagination() };
    };
    const { mediaBuys, errors, next } = await one.reconciler.discover({ agentUrl: AGENT });
    expect(mediaBuys).toHaveLength(pages);
    expect(errors[0]).toMatchObject({ of: 'mediaBuys', code: 'answer_invalid' });
    expect(errors[0]?.message).toMatch(message);
    expect(next).toBeUndefined();
  });

  it('a seller that ignores the cursor and makes a new one each time is not asked for ever', async () => {
    const { process, seller } = begin();
    const one = await process();
    let page = 0;
    seller.buys = () => ({
      media_buys: [row('buy-1')],
      pagination: { has_more: true, cursor: `c${(page += 1)}` },
    });
    const { mediaBuys, errors } = await one.reconciler.discover({ agentUrl: AGENT });
    expect(mediaBuys).toHaveLength(1);
    expect(errors[0]?.message).toMatch(/repeats a page/);
    expect(page).toBe(2);
  });

  it('a list without end is over after 1,000 pages', async () => {
    const { process, seller } = begin();
    const one = await process();
    let page = 0;
    seller.buys = () => ({
      media_buys: [row(`buy-${page}`)],
      pagination: { has_more: true, cursor: `c${(page += 1)}` },
    });
    const answers = await all(one, { agentUrl: AGENT });
    expect(answers).toHaveLength(10);
    expect(answers.at(-1)?.errors[0]?.message).toMatch(/more than 1000 pages/);
    expect(answers.flatMap(({ mediaBuys }) => mediaBuys)).toHaveLength(1000);
  });

  it('a later page that fails: what came is there, and next asks for that page again', async () => {
    const { process, seller } = begin();
    const one = await process();
    const pages = paged(
      'media_buys',
      Array.from({ length: 250 }, (_, at) => row(`buy-${at}`)),
    );
    let isDown = true;
    seller.buys = (args) => {
      if (isDown && seller.asked('get_media_buys').length === 2) throw new Error('connection reset');
      return pages(args);
    };
    seller.others.set('list_tasks', paged('tasks', []));
    const first = await one.reconciler.discover({ agentUrl: AGENT });
    expect([first.mediaBuys.length, first.errors]).toEqual([
      100,
      [{ of: 'mediaBuys', code: 'unanswered', message: 'connection reset' }],
    ]);
    isDown = false;
    const rest = await one.reconciler.discover({ agentUrl: AGENT, after: first.next });
    expect([rest.mediaBuys.length, rest.mediaBuys[0]?.mediaBuyId, rest.errors]).toEqual([150, 'buy-100', []]);
    expect(rest.next).toBeUndefined();
  });
});

describe('editions', () => {
  it.each([
    ['by a code', () => ({ adcp_error: { code: 'INVALID_REQUEST', message: 'unknown member' } })],
    [
      'by its SDK',
      () => {
        throw new Error('MCP error -32602: Invalid arguments for tool get_media_buys');
      },
    ],
  ])('a seller that refuses an argument %s is asked without it', async (_how, refuse) => {
    const { process, seller } = begin();
    const one = await process();
    const rows = Array.from({ length: 150 }, (_, at) => row(`buy-${at}`));
    seller.buys = (args) => ('include_webhook_activity' in args ? refuse() : paged('media_buys', rows)(args));
    seller.others.set('tasks/list', (args) =>
      'account' in args ? refuse() : paged('tasks', [task('task-1')])(args),
    );
    seller.operations = ['get_media_buys', 'tasks/get', 'tasks/list'];
    const { mediaBuys, tasks, errors } = await one.reconciler.discover({ agentUrl: AGENT, account: ACCOUNT });
    expect(mediaBuys).toHaveLength(150);
    // Twice for the first page, once for the second.
    expect(seller.asked('get_media_buys')).toHaveLength(3);
    // Of which account they are is not known.
    expect(tasks?.map(({ adoption }) => adoption)).toEqual([
      { agentUrl: AGENT, taskId: 'task-1', taskType: 'sync_creatives' },
    ]);
    expect(errors).toMatchObject([{ of: 'tasks', code: 'account_refused' }]);
  });

  it.each([
    [['list_tasks', 'tasks/list'], ['list_tasks']],
    [['tasks_list'], ['tasks_list']],
    [['get_media_buys'], []],
    [undefined, ['list_tasks', 'tasks/list', 'tasks_list']],
  ])('a seller with %j is asked for its tasks by %j', async (operations, asked) => {
    const { process, seller } = begin();
    const one = await process();
    seller.operations = operations;
    const { tasks, errors, next } = await one.reconciler.discover({ agentUrl: AGENT });
    expect(seller.questions.slice(1).map(({ operation }) => operation)).toEqual(asked);
    expect([tasks, next]).toEqual([undefined, undefined]);
    expect(errors).toMatchObject([{ of: 'tasks', code: 'no_operation' }]);
  });

  it('over the agent transport only by a skill that its card lists', async () => {
    const { process, seller } = begin();
    const one = await process();
    seller.transport = 'agent';
    expect(await one.reconciler.discover({ agentUrl: AGENT })).toMatchObject({
      errors: [{ of: 'tasks', code: 'no_operation' }],
    });
    seller.operations = ['get_media_buys', 'list_tasks'];
    const data = paged('tasks', [task('task-1')]);
    seller.others.set('list_tasks', (args) => ({
      id: 'call-1',
      status: { state: 'completed' },
      artifacts: [{ parts: [{ kind: 'data', data: data(args) as never }] }],
    }));
    const { tasks, errors } = await one.reconciler.discover({ agentUrl: AGENT });
    expect([tasks?.length, errors]).toEqual([1, []]);
    expect(seller.asked('tasks/list')).toEqual([]);
  });
});

describe('what fails', () => {
  it('nothing came: it rejects with what the seller said', async () => {
    const { process, seller } = begin();
    const one = await process();
    seller.buys = () => ({ adcp_error: { code: 'ACCOUNT_NOT_FOUND', message: 'no such account' } });
    const failed = one.reconciler.discover({ agentUrl: AGENT, account: ACCOUNT });
    await expect(failed).rejects.toThrow(SellerError);
    await expect(failed).rejects.toMatchObject({ code: 'ACCOUNT_NOT_FOUND' });
    seller.buys = () => ({ ok: true });
    await expect(one.reconciler.discover({ agentUrl: AGENT })).rejects.toMatchObject({
      code: 'answer_invalid',
    });
    // Tasks alone came.
    seller.others.set('list_tasks', paged('tasks', [task('task-1')]));
    expect(await one.reconciler.discover({ agentUrl: AGENT })).toMatchObject({
      mediaBuys: [],
      tasks: [{ taskId: 'task-1' }],
      errors: [{ of: 'mediaBuys', code: 'answer_invalid' }],
    });
  });

  it('a seller that is busy is left alone by all processes, and then asked no more than it may be', async () => {
    const { process, seller, clock } = begin();
    const [one, other] = [await process(), await process({ callMs: 60_000 })];
    seller.buys = () => {
      throw new SellerBusyError(429, 30_000);
    };
    await expect(one.reconciler.discover({ agentUrl: AGENT })).rejects.toThrow(SellerBusyError);
    const asked = seller.questions.length;
    // It waits for no longer than a question may take.
    await expect(one.reconciler.discover({ agentUrl: AGENT })).rejects.toMatchObject({ code: 'seller_busy' });
    expect(seller.questions).toHaveLength(asked);
    seller.buys = paged('media_buys', [row('buy-1')]);
    const waiting = other.reconciler.discover({ agentUrl: AGENT });
    await clock.pass(31_000);
    expect(idsOf(await waiting)).toEqual(['buy-1']);
  });

  it('a seller that does not answer, and the caller’s own signal', async () => {
    const { process, seller } = begin();
    const [hasty, patient] = [await process({ callMs: 20 }), await process()];
    seller.buys = () => new Promise(() => undefined);
    seller.operations = [];
    await expect(hasty.reconciler.discover({ agentUrl: AGENT })).rejects.toThrow(
      /did not answer within 20 ms/,
    );
    const own = new AbortController();
    const aborted = patient.reconciler.discover({ agentUrl: AGENT, signal: own.signal });
    await expect.poll(() => seller.asked('get_media_buys').length).toBe(2);
    own.abort(new Error('enough'));
    await expect(aborted).rejects.toThrow('enough');
    // Its place is free again.
    seller.buys = paged('media_buys', [row('buy-1')]);
    const free = await process({ perSeller: 1 });
    expect(idsOf(await free.reconciler.discover({ agentUrl: AGENT }))).toEqual(['buy-1']);
  });

  it.each([
    [{ agentUrl: 'seller' }, /agentUrl/],
    [{ account: 'a1' }, /account: must be an object/],
    [{ ref: 7 }, /ref: is a number/],
    [{ after: '{}' }, /after: is not the next/],
    [{ after: '{"mediaBuys":[5000,""]}' }, /after: is not the next/],
    [{ after: 7 }, /after: is not the next/],
    [{ signal: {} }, /signal: is not an AbortSignal/],
    [{ media_buy_ids: [] }, /media_buy_ids/],
  ])('%j is no query, and nobody is asked', async (wrong, message) => {
    const { process, seller } = begin();
    const one = await process();
    const query = { agentUrl: AGENT, ...wrong } as DiscoverQuery;
    const failed = one.reconciler.discover(query);
    await expect(failed).rejects.toMatchObject({ code: 'request_invalid' });
    await expect(failed).rejects.toThrow(message);
    expect(seller.questions).toEqual([]);
  });

  it('hostile entries are counted, and harm no other', async () => {
    const { process, seller } = begin();
    const one = await process();
    const url = `https://buyer.example/${'x'.repeat(5000)}`;
    seller.buys = () => ({
      errors: [{ code: 'X', message: 'beside rows' }],
      media_buys: [
        null,
        'text',
        row(''),
        row('i'.repeat(5000)),
        { media_buy_id: 7, status: 'active' },
        row('__proto__', {
          status: `${'s'.repeat(1000)}\u0000`,
          webhook_activity: [null, { url }, { url: 7 }, { url: 'x:' }],
        }),
      ] as never,
    });
    seller.others.set('list_tasks', () => ({
      tasks: [
        task('t', { task_type: 'bad type' }),
        task('t2', { task_type: null }),
        task('ok', { status: 'new word' }),
      ],
    }));
    const { mediaBuys, tasks, errors } = await one.reconciler.discover({ agentUrl: AGENT });
    expect(mediaBuys).toMatchObject([{ mediaBuyId: '__proto__', status: 's'.repeat(128) }]);
    expect(mediaBuys[0]).not.toHaveProperty('usesOurUrl');
    expect(tasks).toMatchObject([{ taskId: 'ok', status: 'new word' }]);
    expect(errors.map(({ of, message }) => [of, message.slice(-3)])).toEqual([
      ['mediaBuys', ' 5.'],
      ['tasks', ' 2.'],
    ]);
    for (const { adoption } of mediaBuys) await one.registrations.adopt(adoption);
  });
});
