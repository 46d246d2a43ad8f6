import { randomBytes, randomUUID } from 'node:crypto';
import { setImmediate as turn } from 'node:timers/promises';
import { beforeEach, describe, expect, it } from 'vitest';
import {
  type Alarm,
  type CallSeller,
  type JsonObject,
  type Registrations,
  SellerBusyError,
  SellerError,
  type StatePage,
  type StateQuery,
} from '../../src/registrations/index.ts';
import { registrationsOf } from '../../src/registrations/for-tests.ts';
import type { Store } from '../../src/stores/index.ts';
import { memoryStore } from '../../src/stores/memory.ts';
import { createMemoryState } from '../../src/stores/for-tests.ts';
import { HOSTILE, MARK } from '../support/hostile-text.ts';
import { SILENT_LOGGER } from '../support/silent-logger.ts';
import { aborted, hashes, NEWEST } from './kit.ts';

const SELLER = 'https://seller.example/mcp';
const OTHER = 'https://other.example/mcp';
const BASE = 'https://buyer.example/webhooks';
const NEW_BASE = 'https://new.example/in';
const ELSEWHERE = 'https://old.example/hooks/s3cret/x';
const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
const CALL_MS = 120_000;

let state: ReturnType<typeof createMemoryState>;
let nowMs: number;
let alarms: Alarm[];
/** Questions of `check`. */
let asked: {
  readonly agentUrl: string;
  readonly operation: string;
  readonly args: JsonObject;
  ref?: string;
}[];
/** What sellers show of each media buy, and of the set of an account. */
let activity: Map<string, unknown>;
let entries: JsonObject[];
let instead: (agentUrl: string, operation: string, args: JsonObject) => unknown;
beforeEach(() => {
  state = createMemoryState();
  nowMs = 0;
  alarms = [];
  asked = [];
  activity = new Map();
  entries = [];
  instead = () => undefined;
});

const now = (): number => Date.now() + nowMs;
const storeHere = (): Store => memoryStore({ state, clockOffsetMs: () => nowMs });

const seller: CallSeller = async (agentUrl, operation, given, { ref, signal }) => {
  asked.push({ agentUrl, operation, args: given, ...(ref !== undefined && { ref }) });
  const other = await instead(agentUrl, operation, given);
  if (other === 'never') return aborted(signal).then(() => Promise.reject(signal.reason as Error));
  if (other !== undefined) return other;
  if (operation === 'list_accounts') {
    return { accounts: [{ account_id: 'a1', notification_configs: entries }] };
  }
  if (operation === 'sync_accounts') {
    const { accounts, dry_run: isDry = false } = given as unknown as {
      readonly accounts: readonly { readonly notification_configs: JsonObject[] }[];
      readonly dry_run?: boolean;
    };
    if (!isDry) entries = accounts[0]?.notification_configs ?? [];
    return { dry_run: isDry, accounts: [{ account_id: 'a1', action: 'updated' }] };
  }
  const ids = given['media_buy_ids'] as readonly string[];
  return {
    media_buys: ids.map((id) => ({
      media_buy_id: id,
      status: 'active',
      ...(activity.has(id) && { webhook_activity: activity.get(id) }),
    })),
  };
};

const process = (baseUrl = BASE, call: CallSeller | undefined = seller): Registrations =>
  registrationsOf(
    {
      store: storeHere(),
      baseUrl,
      secrets: [NEWEST],
      callMs: CALL_MS,
      logger: SILENT_LOGGER,
      onAlarm: (alarm) => void alarms.push(alarm),
      call,
    },
    {
      hashes,
      randomBytes: (count) => new Uint8Array(randomBytes(count)),
      newId: () => randomUUID(),
      now: () => nowMs,
      sleep: async (ms, signal) => {
        await turn();
        // The time limit of a question, which is never over here.
        if (ms === (CALL_MS * 3) / 4) return aborted(signal);
        nowMs += ms;
        return undefined;
      },
    },
  );

interface Ordered {
  readonly agentUrl?: string;
  readonly reports?: boolean | string;
  readonly args?: JsonObject;
  readonly ref?: string;
}

/** A media buy with reports, unless they go to nobody or to another's URL. */
async function order(
  by: Registrations,
  mediaBuyId: string,
  { agentUrl = SELLER, reports = true, args = {}, ref }: Ordered = {},
): Promise<void> {
  const webhook = await by.reportingWebhook({ agentUrl }, { frequency: 'daily' });
  const made = await by.create({
    agentUrl,
    ...(ref !== undefined && { ref }),
    taskType: 'create_media_buy',
    arguments: {
      ...args,
      packages: [{ product_id: 'p' }],
      ...(reports !== false && {
        reporting_webhook: { ...webhook, ...(typeof reports === 'string' && { url: reports }) },
      }),
    },
  });
  await made.settle({ status: 'completed', media_buy_id: mediaBuyId, packages: [] });
}

const fired = (url: unknown, type: string | undefined = 'scheduled', at: number | undefined = now()) => ({
  idempotency_key: randomUUID(),
  ...(at !== undefined && { fired_at: new Date(at).toISOString() }),
  ...(type !== undefined && { notification_type: type }),
  attempt: 1,
  status: 'success',
  url,
});

const check = (by: Registrations, query: StateQuery = {}): Promise<StatePage> =>
  by.state({ ...query, check: true });

/** The scheme of each URL that differs, with what is shown. */
const driftsOf = ({ urls }: StatePage): Readonly<Record<string, readonly string[]>> =>
  Object.fromEntries(
    urls.flatMap(({ base, scheme, drift }) => (drift ? [[`${base} ${scheme}`, drift.shown] as const] : [])),
  );

/** Lists in lists. */
const deep = (depth: number): unknown =>
  Array.from({ length: depth }).reduce<unknown>((inner) => [inner], 'x');

const REPORTS = `${BASE} HMAC-SHA256`;
const PUSH = `${BASE} signature`;

describe('what a seller shows of a media buy is compared with what it was told', () => {
  it.each([
    `${BASE}/***`,
    `${BASE}/[REDACTED]`,
    `${BASE}/{token}`,
    `${BASE}/<token>`,
    `${BASE}/abcd…`,
    BASE,
    'https://buyer.example/',
    'https://buyer.example',
    'https://buyer.example/web…',
    'https://buyer.example/web...',
    'https://buyer.example/***',
    'https://buyer.example/redacted/x',
    'https://***/webhooks/x',
    'https://buyer.***/webhooks/x',
    'https://BUYER.example:443/webhooks/x',
    'https://buyer.example./webhooks/x',
    'https://buyer.example/%77ebhooks/x',
    'https://someone:password@buyer.example/webhooks/x?token=1',
  ])('%s is it', async (url) => {
    const by = process();
    await order(by, 'buy-1');
    activity.set('buy-1', [fired(url), fired(url, 'impairment'), fired(url, 'x.new')]);
    const page = await check(by);
    expect(driftsOf(page)).toEqual({});
    expect(page.check).toEqual({ compared: { mediaBuys: 1, subscriptions: 0 }, errors: [] });
    expect(alarms).toEqual([]);
  });

  it.each([
    [ELSEWHERE, 'https://old.example/…'],
    ['https://someone:password@old.example/hooks/s3cret?token=s3cret', 'https://old.example/…'],
    ['https://buyer.example:8443/webhooks/x', 'https://buyer.example:8443/…'],
    ['https://buyer.example/hooks/s3cret', 'https://buyer.example/hooks/…'],
    ['https://buyer.example/webhooks2/s3cret', 'https://buyer.example/webhooks2/…'],
    ['https://buyer.example/hoo…', 'https://buyer.example/hoo…/…'],
    ['https://buyer.example.evil.example/webhooks/x', 'https://buyer.example.evil.example/…'],
    ['https://old.***/webhooks/x', 'https://old.***/…'],
    ['http://buyer.example:443/webhooks/x', 'http://buyer.example:443/…'],
    [
      `https://buyer.example/${encodeURI(`\u202E${'y'.repeat(500)}`)}/x`,
      expect.stringMatching(/^https:\/\/buyer\.example\/\?y{200,240}…$/),
    ],
  ])('%.60s is not', async (url, shown) => {
    const by = process();
    await order(by, 'buy-1');
    activity.set('buy-1', [fired(url)]);
    const page = await check(by);
    expect(driftsOf(page)).toEqual({ [REPORTS]: [shown] });
    expect(JSON.stringify([page, alarms])).not.toMatch(/s3cret|password/);
  });

  it.each([
    ['scheduled', [REPORTS]],
    ['final', [REPORTS]],
    ['delayed', [REPORTS]],
    ['adjusted', [REPORTS]],
    ['window_update', [REPORTS]],
    ['impairment', [PUSH]],
    ['x.new', [REPORTS, PUSH]],
    [undefined, [REPORTS, PUSH]],
  ])('a record of type %s is of %j', async (type, urls) => {
    const by = process();
    await order(by, 'buy-1');
    activity.set('buy-1', [{ ...fired(ELSEWHERE), notification_type: type }]);
    const page = await check(by);
    expect(Object.keys(driftsOf(page)).toSorted()).toEqual(urls.toSorted());
    expect(page.urls.flatMap(({ drift }) => drift?.mediaBuys ?? [])).toEqual(urls.map(() => 'buy-1'));
  });

  it('what was sent before the seller acknowledged its URL is not compared; what says no time may be of any', async () => {
    const by = process();
    await order(by, 'buy-1');
    activity.set('buy-1', [fired(ELSEWHERE, 'scheduled', now() - HOUR_MS)]);
    expect((await check(by)).check?.compared.mediaBuys).toBe(0);
    for (const fired_at of [undefined, 'yesterday', 7]) {
      activity.set('buy-1', [{ ...fired(ELSEWHERE), fired_at }]);
      expect(driftsOf(await check(by))).toEqual({ [REPORTS]: ['https://old.example/…'] });
    }
  });

  it.each([
    [undefined],
    [null],
    ['https://old.example'],
    [{ url: ELSEWHERE }],
    [[]],
    [[null, 7, 'x', [], {}]],
    [
      [
        { url: 7 },
        { url: 'x' },
        { url: 'ftp://old.example/x' },
        { url: `https://old.example/${'x'.repeat(2000)}` },
      ],
    ],
    [[{ url: '[REDACTED]' }, { url: '***' }]],
  ])('%#: shows nothing', async (shown) => {
    const by = process();
    await order(by, 'buy-1');
    activity.set('buy-1', shown);
    const page = await check(by);
    expect(driftsOf(page)).toEqual({});
    expect(page.check).toEqual({ compared: { mediaBuys: 0, subscriptions: 0 }, errors: [] });
  });

  it('a channel of another owner is left alone; a media buy without reports has one channel', async () => {
    const by = process();
    await order(by, 'another', { reports: 'https://another.example/reports' });
    await order(by, 'push-only', { reports: false });
    for (const id of ['another', 'push-only'])
      activity.set(id, [fired(ELSEWHERE), fired(ELSEWHERE, 'x.new')]);
    const page = await check(by);
    expect(driftsOf(page)).toEqual({ [PUSH]: ['https://old.example/…'] });
    expect(page.urls.flatMap(({ drift }) => drift?.mediaBuys ?? [])).toEqual(['push-only']);
  });

  it('a former URL counts while the media buy is on it, and a horizon after it was replaced', async () => {
    await order(process(), 'buy-1');
    const by = process(NEW_BASE);
    nowMs += HOUR_MS;
    const made = await by.create({
      agentUrl: SELLER,
      taskType: 'update_media_buy',
      arguments: {
        media_buy_id: 'buy-1',
        reporting_webhook: await by.reportingWebhook({ agentUrl: SELLER }, { frequency: 'daily' }),
      },
    });
    await made.settle({ status: 'completed', media_buy_id: 'buy-1' });
    const replacedAt = now();
    const show = (at: number): void => void activity.set('buy-1', [fired(`${BASE}/***`, 'scheduled', at)]);
    nowMs += 3 * DAY_MS;
    // Nothing has come by the new one.
    show(now());
    expect(driftsOf(await check(by))).toEqual({});
    const { registrations } = storeHere();
    const page = await registrations?.page({ kind: 'stream', sender: SELLER, limit: 1 });
    const [row] = page?.rows ?? [];
    const stream = JSON.parse(row?.value ?? '') as { readonly told: readonly JsonObject[] };
    const told = stream.told.map((one) => (one['base'] === NEW_BASE ? { ...one, heardAt: now() } : one));
    await registrations?.run(SELLER, (rows) => {
      if (row) rows.save({ ...row, value: JSON.stringify({ ...stream, told }) });
    });
    show(replacedAt + DAY_MS - 1000);
    expect(driftsOf(await check(by))).toEqual({});
    show(replacedAt + DAY_MS + 1000);
    expect(driftsOf(await check(by))).toEqual({ [`${NEW_BASE} HMAC-SHA256`]: ['https://buyer.example/…'] });
    activity.set('buy-1', [{ ...fired(`${BASE}/***`), fired_at: undefined }]);
    expect(driftsOf(await check(by))).toEqual({});
  });

  it('one whose horizon after its end is over is not asked about', async () => {
    const by = process();
    await order(by, 'buy-1');
    const { registrations } = storeHere();
    const page = await registrations?.page({ kind: 'stream', sender: SELLER, limit: 1 });
    const [row] = page?.rows ?? [];
    await registrations?.run(SELLER, (rows) => {
      if (row) rows.save({ ...row, value: JSON.stringify({ ...JSON.parse(row.value), endedAt: now() }) });
    });
    await check(by);
    expect(asked).toHaveLength(1);
    nowMs += DAY_MS + 1000;
    await check(by);
    expect(asked).toHaveLength(1);
  });
});

describe('the questions', () => {
  it('are of a hundred media buys each, by account and ref, and no more than the page needs', async () => {
    const by = process();
    for (let n = 0; n < 120; n += 1) await order(by, `buy-${n}`);
    await order(by, 'of-account', { args: { account: { account_id: 'a1' } } });
    await order(by, 'of-ref', { args: { account: { account_id: 'a1' } }, ref: 'spring' });
    await order(by, 'of-other', { agentUrl: OTHER });
    activity.set('buy-7', [fired(`${BASE}/x`)]);
    const page = await check(by, { agentUrl: SELLER });
    expect(page.check).toEqual({ compared: { mediaBuys: 1, subscriptions: 0 }, errors: [] });
    const sizes = asked.map(({ args, ref }) => [
      (args['media_buy_ids'] as readonly string[]).length,
      args['account'] ?? null,
      ref ?? null,
    ]);
    expect(new Set(sizes.map((size) => JSON.stringify(size)))).toEqual(
      new Set([
        '[1,{"account_id":"a1"},"spring"]',
        '[1,{"account_id":"a1"},null]',
        '[20,null,null]',
        '[100,null,null]',
      ]),
    );
    expect(sizes).toHaveLength(4);
    expect(
      asked.every(({ agentUrl, operation }) => agentUrl === SELLER && operation === 'get_media_buys'),
    ).toBe(true);
    expect(asked[0]?.args).toMatchObject({
      include_webhook_activity: true,
      webhook_activity_limit: 10,
      pagination: { max_results: 100 },
    });
  });

  it('go on behind a cursor while that brings media buys', async () => {
    const by = process();
    await order(by, 'buy-1');
    await order(by, 'buy-2');
    const one = (id: string): unknown => ({ media_buy_id: id, webhook_activity: [fired(ELSEWHERE)] });
    instead = (_agentUrl, _operation, { pagination }) => {
      const { cursor } = pagination as { readonly cursor?: string };
      return {
        media_buys: [one(cursor === undefined ? 'buy-1' : 'buy-2')],
        pagination: { has_more: true, cursor: `${cursor ?? ''}c` },
      };
    };
    const page = await check(by);
    expect(page.urls.find(({ drift }) => drift)?.drift).toEqual({
      counts: { mediaBuys: 2, subscriptions: 0 },
      mediaBuys: ['buy-1', 'buy-2'],
      subscriptions: [],
      shown: ['https://old.example/…'],
    });
    expect(asked).toHaveLength(2);
    instead = () => ({ media_buys: [], pagination: { has_more: true, cursor: randomUUID() } });
    await check(by);
    expect(asked).toHaveLength(3);
  });

  it('a seller that fails is named, and the others are asked', async () => {
    const by = process();
    await order(by, 'buy-1');
    await order(by, 'buy-1', { agentUrl: OTHER });
    activity.set('buy-1', [fired(ELSEWHERE)]);
    const failures: readonly (readonly [unknown, string])[] = [
      [new SellerError('INVALID_REQUEST', `unknown ${HOSTILE}`), 'INVALID_REQUEST'],
      [new Error('no connection'), 'unanswered'],
      [Object.assign(new Error('too many'), { status: 429, retryAfterMs: 1000 }), 'seller_busy'],
      [{ adcp_error: { code: 'ACCOUNT_NOT_FOUND', message: 'none' } }, 'ACCOUNT_NOT_FOUND'],
      [{ status: 'submitted', task_id: 't' }, 'answer_invalid'],
      ['media buys', 'answer_invalid'],
      [{ media_buys: deep(10_000) }, 'answer_refused'],
    ];
    for (const [failure, code] of failures) {
      nowMs += HOUR_MS;
      instead = (agentUrl) => {
        if (agentUrl !== SELLER) return undefined;
        if (failure instanceof Error) throw failure;
        return failure;
      };
      const page = await check(by);
      expect(page.check?.errors).toEqual([
        { agentUrl: SELLER, of: 'mediaBuys', code, message: expect.any(String) as string },
      ]);
      expect(page.check?.errors[0]?.message.length).toBeLessThan(400);
      expect(page.check?.errors[0]?.message).not.toContain('\n');
      expect(page.urls.filter(({ drift }) => drift).map(({ agentUrl }) => agentUrl)).toEqual([OTHER]);
    }
  });

  it('one that asks for a pause has it, by every process; a place is given back', async () => {
    const by = process();
    await order(by, 'buy-1');
    instead = () => {
      throw new SellerBusyError(429, HOUR_MS);
    };
    expect((await check(by)).check?.errors).toMatchObject([{ code: 'seller_busy' }]);
    instead = () => undefined;
    expect((await check(process())).check?.errors).toMatchObject([{ code: 'seller_busy' }]);
    expect(asked).toHaveLength(1);
    nowMs += HOUR_MS - 60_000;
    // What is left of it is waited for.
    expect((await check(by)).check?.errors).toEqual([]);
    for (let n = 0; n < 9; n += 1) await check(by);
    expect(asked).toHaveLength(11);
  });

  it('at most four at once are with a seller, also by many processes', async () => {
    const by = process();
    await order(by, 'buy-1');
    let [running, most] = [0, 0];
    instead = async () => {
      running += 1;
      most = Math.max(most, running);
      for (let turns = 0; turns < 20; turns += 1) await turn();
      running -= 1;
      return undefined;
    };
    await Promise.all(Array.from({ length: 9 }, () => check(process())));
    expect(asked).toHaveLength(9);
    expect(most).toBe(4);
  });

  it('end with the signal of the owner', async () => {
    const by = process();
    await order(by, 'buy-1');
    const owner = new AbortController();
    instead = () => {
      queueMicrotask(() => owner.abort(new Error('enough')));
      return 'never';
    };
    await expect(check(by, { signal: owner.signal })).rejects.toThrow('enough');
    instead = () => undefined;
    expect((await check(by)).check?.errors).toEqual([]);
  });

  it('are not asked without check, nor by registrations without a client', async () => {
    const by = process();
    await order(by, 'buy-1');
    expect(await by.state()).not.toHaveProperty('check');
    expect(asked).toEqual([]);
    const plain = registrationsOf(
      { store: storeHere(), baseUrl: BASE, secrets: [NEWEST], logger: SILENT_LOGGER },
      { hashes, randomBytes, newId: randomUUID, now: () => nowMs, sleep: (_ms, signal) => aborted(signal) },
    );
    await expect(plain.state({ check: true })).rejects.toMatchObject({
      code: 'request_invalid',
      message: expect.stringContaining('createRegistrations({ call') as string,
    });
    for (const query of [{ check: 'yes' }, { check: true, signal: 1 }]) {
      await expect(by.state(query as never)).rejects.toMatchObject({ code: 'request_invalid' });
    }
  });
});

describe('subscriptions are compared with the set of their account', () => {
  const name = { agentUrl: SELLER, account: { account_id: 'a1' }, ref: 'creatives' };
  const subscribed = async (): Promise<Registrations> => {
    const by = process();
    await by.subscribe({
      ...name,
      scheme: 'Bearer',
      eventTypes: ['creative.status_changed', 'creative.purged'],
    });
    entries = entries.map((entry) => ({ ...entry, authentication: { schemes: ['Bearer'] } }));
    asked = [];
    return by;
  };
  const BEARER = `${BASE} Bearer`;

  it('one that is there as it was told is no difference', async () => {
    const by = await subscribed();
    entries = entries.map((entry) => ({
      ...entry,
      url: `${BASE}/***`,
      event_types: ['creative.purged', 'creative.status_changed'],
    }));
    const page = await check(by);
    expect([driftsOf(page), page.check]).toEqual([
      {},
      { compared: { mediaBuys: 0, subscriptions: 1 }, errors: [] },
    ]);
    expect(asked).toMatchObject([
      { operation: 'list_accounts', ref: 'creatives', args: { account: { account_id: 'a1' } } },
    ]);
  });

  it.each<readonly [string, (entry: JsonObject) => readonly JsonObject[], string]>([
    ['is gone', () => [], 'it is not among the notification_configs'],
    ['is there twice', (entry) => [entry, entry], 'more than once'],
    ['is paused', (entry) => [{ ...entry, active: false }], 'paused'],
    [
      'has another URL',
      (entry) => [{ ...entry, url: ELSEWHERE }],
      'another url of it: https://old.example/…',
    ],
    ['has none', (entry) => [{ ...entry, url: 7 }], 'another url'],
    ['has another scheme', ({ authentication: _no, ...entry }) => [entry], 'authentication'],
    ['has other types', (entry) => [{ ...entry, event_types: ['creative.purged'] }], 'event_types'],
  ])('one that %s is', async (_is, changed, says) => {
    const by = await subscribed();
    entries = entries.flatMap(changed);
    const page = await check(by);
    expect(driftsOf(page)).toEqual({ [BEARER]: [expect.stringContaining(says)] });
    expect(page.urls.find(({ drift }) => drift)?.drift).toMatchObject({
      counts: { mediaBuys: 0, subscriptions: 1 },
      subscriptions: ['creatives'],
    });
    expect(alarms).toMatchObject([{ code: 'registration_drift', sender: SELLER, base: BASE }]);
    expect(JSON.stringify([page, alarms])).not.toMatch(/s3cret/);
    // Nothing was changed.
    expect(asked.map(({ operation }) => operation)).toEqual(['list_accounts']);
    expect((await by.subscriptions.list()).subscriptions).toMatchObject([{ state: 'active' }]);
  });

  it('are asked for also where media buys cannot be asked about; not of a seller that is busy', async () => {
    const by = await subscribed();
    await order(by, 'buy-1');
    entries = [];
    instead = (_agentUrl, operation) => {
      if (operation === 'get_media_buys') throw new Error('Tool get_media_buys not found');
      return undefined;
    };
    const page = await check(by);
    expect(page.check).toMatchObject({
      compared: { mediaBuys: 0, subscriptions: 1 },
      errors: [{ of: 'mediaBuys', code: 'unanswered' }],
    });
    expect(driftsOf(page)).toHaveProperty(BEARER);
    asked = [];
    instead = () => {
      throw new SellerBusyError(429, undefined);
    };
    expect((await check(by)).check?.errors).toMatchObject([{ of: 'mediaBuys', code: 'seller_busy' }]);
    expect(asked).toHaveLength(1);
  });

  it('a set that cannot be read is named', async () => {
    const by = await subscribed();
    await order(by, 'buy-1');
    activity.set('buy-1', [fired(ELSEWHERE)]);
    instead = (_agentUrl, operation) => (operation === 'list_accounts' ? { accounts: [] } : undefined);
    const page = await check(by);
    expect(page.check?.errors).toMatchObject([
      { agentUrl: SELLER, of: 'subscriptions', code: 'account_unknown' },
    ]);
    expect(driftsOf(page)).toHaveProperty(REPORTS);
  });
});

describe('the alarm registration_drift', () => {
  it('comes once a day and URL, by whichever process, and names some of them', async () => {
    const [one, two] = [process(), process()];
    for (let n = 0; n < 6; n += 1) await order(one, `buy-${n}`);
    await order(one, HOSTILE.slice(0, 200));
    const all = (url: string): void => {
      for (let n = 0; n < 6; n += 1) activity.set(`buy-${n}`, [fired(url), fired(url, 'impairment')]);
      activity.set(HOSTILE.slice(0, 200), [fired(url)]);
    };
    all(`${BASE}/x`);
    await check(one);
    expect(alarms).toEqual([]);
    all(ELSEWHERE);
    await check(one);
    expect(alarms).toHaveLength(2);
    expect(alarms.find(({ message }) => message.includes('7 media buys'))).toMatchObject({
      code: 'registration_drift',
      sender: SELLER,
      base: BASE,
      route: expect.stringMatching(/^[\w-]{22}$/) as string,
      counts: { mediaBuys: 7, subscriptions: 0 },
      shown: ['https://old.example/…'],
      message: expect.stringMatching(
        /it shows https:\/\/old\.example\/…\. Ask it, or tell it again/,
      ) as string,
    });
    expect(alarms.every(({ message }) => !message.includes('\n') && message.length < 1000)).toBe(true);
    expect(alarms.some(({ message }) => message.includes(MARK))).toBe(false);
    await check(two);
    nowMs += DAY_MS - 60_000;
    all(ELSEWHERE);
    await check(two);
    expect(alarms).toHaveLength(2);
    nowMs += 120_000;
    await Promise.all([check(one), check(two)]);
    expect(alarms).toHaveLength(4);
  });

  it('is of the URLs of the page alone, which may be one', async () => {
    const by = process();
    await order(by, 'buy-1');
    activity.set('buy-1', [fired(ELSEWHERE), fired(ELSEWHERE, 'impairment')]);
    const first = await check(by, { limit: 1 });
    expect([Object.keys(driftsOf(first)).length, alarms.length]).toEqual([1, 1]);
    const second = await check(by, { limit: 1, ...(first.next !== undefined && { after: first.next }) });
    expect([Object.keys(driftsOf(second)).length, alarms.length]).toEqual([1, 2]);
  });
});
