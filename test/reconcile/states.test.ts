import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { afterEach, describe, expect, it } from 'vitest';
import { CONTEXT, observeStateWith, type PulledState, type WithContext } from '../../src/for-tests.ts';
import type { Event, OtherEvent } from '../../src/events/index.ts';
import { PermanentError } from '../../src/index.ts';
import { keptState } from '../../src/states/for-tests.ts';
import type { KeptState, StoreRegistrations } from '../../src/stores/index.ts';
import { memoryStore } from '../../src/stores/memory.ts';
import { streamIn } from '../../src/windows/for-tests.ts';
import { AGENT, testReceiver } from '../receiver/setup.ts';
import { BUY, buy, type Process, world, type World } from './kit.ts';

let here: World | undefined;
afterEach(() => here?.end());

const FLIGHT = { start: '2026-03-02T00:00:00Z', end: '2026-03-20T00:00:00Z' };
const NOW = '2026-03-05T12:00:00.000Z';
const OPENED_AT = '2026-03-05T11:00:00.000Z';
const CLOSED_AT = '2026-03-05T11:30:00.000Z';

const begin = (): World => (here = world(NOW));

/** Not the answer of the order. */
const heardBy = ({ seen }: Pick<Process, 'seen'>): readonly OtherEvent[] =>
  seen.map(({ event }) => event).filter((event: Event) => event.kind === 'other');
function last(process: Pick<Process, 'seen'>): OtherEvent {
  const event = heardBy(process).at(-1);
  assert.ok(event);
  return event;
}

/** As a seller sends it and shows it. */
const impairment = (more: object = {}) => ({
  impairment_id: 'i-1',
  resource_type: 'creative',
  resource_id: 'c-1',
  package_ids: ['p-1'],
  transition: { from: 'approved', to: 'rejected' },
  reason_code: 'POLICY',
  observed_at: OPENED_AT,
  ...more,
});
const closing = { transition: { from: 'rejected', to: 'approved' }, observed_at: CLOSED_AT };
const body = (more: object = {}): Record<string, unknown> => ({
  idempotency_key: randomUUID(),
  notification_type: 'impairment',
  media_buy_id: BUY,
  ...impairment(more),
});

const contextOf = ({ receiver }: Pick<Process, 'receiver'>) => (receiver as unknown as WithContext)[CONTEXT];

/** A snapshot has an impairment of the media buy, of which nothing is kept yet. */
const pull = (process: Pick<Process, 'receiver'>, pulled: Partial<PulledState>) =>
  observeStateWith(contextOf(process))({
    sender: AGENT,
    family: 'impairment',
    mediaBuyId: BUY,
    payload: impairment(),
    state: { id: 'i-1', at: Date.parse(OPENED_AT), to: 'rejected', ended: false },
    seen: undefined,
    holder: { kind: 'stream', id: BUY },
    ...pulled,
  });

/** What is kept of a state. A test receiver's store is the one of its registrations. */
async function keptIn(process: Process, id = 'i-1', mediaBuyId = BUY): Promise<KeptState | undefined> {
  const { store } = contextOf(process);
  const row = await (store.registrations as StoreRegistrations).run(AGENT, (rows) =>
    rows.get('stream', mediaBuyId),
  );
  return row && keptState(streamIn(row.value), id, 0);
}

describe.each(['inline', 'inbox'] as const)('event.state, in mode %s', (mode) => {
  const heard = async (process: Process, count: number): Promise<void> => {
    await expect.poll(() => heardBy(process).length).toBe(count);
    await here?.clock.settled();
  };

  it('of a webhook: id, instant, media buy; of what a pull told before, that it is repeated', async () => {
    const one = await begin().process({}, { mode });
    await buy(one, FLIGHT, null);
    await one.deliver(body());
    await heard(one, 1);
    const state = { id: 'i-1', observedAt: OPENED_AT, ended: false, repeated: false, mediaBuyId: BUY };
    expect(last(one).state).toEqual(state);
    expect(await keptIn(one)).toMatchObject({
      to: 'rejected',
      by: 'webhook',
      origin: 'approved',
      isFirst: true,
    });
    expect(await keptIn(one)).not.toHaveProperty('key');
    const seen = await keptIn(one);
    const change = { id: 'i-1', at: Date.parse(CLOSED_AT), to: 'paused', ended: false };
    expect(await pull(one, { state: change, seen })).toMatchObject({ kind: 'accepted' });
    await heard(one, 2);
    await one.deliver(body({ transition: { to: 'paused' }, observed_at: CLOSED_AT }));
    await heard(one, 3);
    expect(last(one).state).toEqual({ ...state, observedAt: CLOSED_AT, repeated: true });
    // Older than what is kept: handled, and nothing of it is kept.
    const kept = await keptIn(one);
    await one.deliver(body());
    await heard(one, 4);
    expect(last(one).state).toEqual(state);
    expect(await keptIn(one)).toEqual(kept);
  });

  it('of a pull: an event of the family, typed, with the object of the snapshot, to the same handler', async () => {
    const told: OtherEvent[] = [];
    const handlers = {
      notifications: { impairment: async (event: OtherEvent) => void told.push(event) },
      completed: async () => {},
      other: async () => assert.fail('the wrong handler'),
    };
    const one = await begin().process({}, { mode, handlers });
    await buy(one, FLIGHT, null);
    const payload = impairment({ remediation: { hint: 'x' }, media_buy_id: 'of another' });
    const outcome = await pull(one, { payload });
    expect(outcome.kind).toBe('accepted');
    await expect.poll(() => told.length).toBe(1);
    await here?.clock.settled();
    const [event] = told;
    expect(event).toMatchObject({
      source: 'pull',
      kind: 'other',
      family: 'impairment',
      transport: 'tool',
      sender: AGENT,
      notification: payload,
      reemission: false,
      warnings: [],
      registration: { taskType: 'create_media_buy' },
      envelope: { media_buy_id: BUY },
      state: { id: 'i-1', observedAt: OPENED_AT, ended: false, repeated: false, mediaBuyId: BUY },
    });
    expect(event).not.toHaveProperty('taskId');
    expect(await keptIn(one)).toMatchObject({ by: 'pull', wasOpen: true, isFirst: true });
    expect(await keptIn(one)).not.toHaveProperty('key');
  });

  it('of an end, told by a pull or by a webhook', async () => {
    const one = await begin().process({}, { mode });
    await buy(one, FLIGHT, null);
    await one.deliver(body());
    await heard(one, 1);
    const end = {
      impairment_id: 'i-1',
      transition: { from: 'rejected' },
      observed_at: CLOSED_AT,
    };
    const state = { id: 'i-1', at: Date.parse(CLOSED_AT), ended: true };
    await pull(one, { payload: end, state, seen: await keptIn(one) });
    await heard(one, 2);
    expect(last(one)).toMatchObject({
      notification: end,
      state: { observedAt: CLOSED_AT, ended: true, repeated: false },
    });
    await one.deliver(body({ ...closing, observed_at: NOW }));
    await heard(one, 3);
    expect(last(one).state).toMatchObject({ observedAt: NOW, ended: true, repeated: false });
    expect(await keptIn(one)).toMatchObject({ isEnded: true, by: 'webhook' });
    await one.deliver(body({ impairment_id: 'i-2', health: 'ok' }));
    await heard(one, 4);
    expect(last(one).state).toMatchObject({ id: 'i-2', ended: true });
  });

  it('is the same where the event is run again, and redriven', async () => {
    let fails = true;
    const one = await begin().process(
      {},
      {
        mode,
        handler: async () => {
          if (fails) throw new PermanentError('no');
        },
      },
    );
    await buy(one, FLIGHT, null);
    const signed = body();
    await one.deliver(signed);
    await heard(one, 1);
    const { state } = last(one);
    expect(await keptIn(one)).toMatchObject({ key: signed['idempotency_key'] });
    fails = false;
    await one.receiver.inbox.redrive(AGENT, String(signed['idempotency_key']));
    await heard(one, 2);
    expect(last(one).state).toEqual(state);
    await expect.poll(async () => (await keptIn(one))?.key).toBeUndefined();
  });
});

describe('event.state', () => {
  it('of an event that names its operation alone, in a task’s envelope', async () => {
    const one = await begin().process();
    const { start: start_time, end: end_time } = FLIGHT;
    const made = await one.registrations.create({
      agentUrl: AGENT,
      taskType: 'create_media_buy',
      arguments: { start_time, end_time, packages: [] },
    });
    const mediaBuyId = 'achat d’été';
    await made.settle({ media_buy_id: mediaBuyId, status: 'completed', packages: [] });
    await one.deliver({
      idempotency_key: randomUUID(),
      operation_id: made.operationId,
      task_id: 't-1',
      task_type: 'create_media_buy',
      status: 'completed',
      timestamp: NOW,
      result: { impairment: impairment(), health: 'impaired' },
    });
    expect(last(one)).toMatchObject({
      family: 'impairment',
      registration: { operationId: made.operationId },
    });
    expect(last(one).state).toEqual({
      id: 'i-1',
      observedAt: OPENED_AT,
      ended: false,
      repeated: false,
      mediaBuyId,
    });
    const { streams } = await one.reconciler.account();
    expect(streams.map((stream) => stream.mediaBuyId)).toEqual([mediaBuyId]);
  });

  it('of a media buy that nobody registered, and of an event that names none', async () => {
    const one = await begin().process();
    await one.deliver(body());
    expect(last(one).state).toMatchObject({ id: 'i-1', observedAt: OPENED_AT, mediaBuyId: BUY });
    await one.deliver(body({ media_buy_id: undefined }));
    expect(last(one).state).not.toHaveProperty('mediaBuyId');
    expect(await keptIn(one)).toBeUndefined();
  });

  it('of other families of a subscription: the id of the thing; of those that have none, none', async () => {
    const one = await begin().process();
    const at = '2026-03-05T10:00:00Z';
    const subscription = { subscriber_id: 's-1', account_id: 'a-1', fired_at: NOW };
    const cases: readonly [string, object, object | undefined][] = [
      [
        'creative.status_changed',
        { creative_id: 'c-1', transition: { from: 'a', to: 'b', observed_at: at } },
        { id: 'c-1', observedAt: '2026-03-05T10:00:00.000Z', ended: false },
      ],
      ['creative.purged', { creative_id: 'c-1' }, { id: 'c-1', observedAt: NOW, ended: true }],
      ['account.status_changed', { status: 'active', observed_at: at }, { id: 'a-1', ended: false }],
      ['product.removed', { event: { event_id: 'e', entity_id: 'p-1' } }, { id: 'p-1', ended: true }],
      ['product.updated', { event: { event_id: 'e', entity_id: 'p-1' } }, { id: 'p-1', ended: false }],
      ['reporting.status_changed', { delivery_config_id: 'd-1', health: 'late' }, { id: 'd-1' }],
      ['wholesale_feed.bulk_change', { event: { event_id: 'e' } }, undefined],
      ['creative.assignment_changed', { media_buy_id: BUY, creative_id: 'c-1' }, undefined],
      ['capabilities.changed', { agent_url: AGENT }, undefined],
      ['a.family.of.tomorrow', { creative_id: 'c-1' }, undefined],
    ];
    for (const [notification_type, payload, state] of cases) {
      const event = { idempotency_key: randomUUID(), notification_type, ...subscription, ...payload };
      await one.deliver(event);
      expect(last(one).family).toBe(notification_type);
      if (state) expect(last(one).state, notification_type).toMatchObject(state);
      else expect(last(one), notification_type).not.toHaveProperty('state');
    }
    // Of no subscription.
    await one.deliver({
      idempotency_key: randomUUID(),
      notification_type: 'creative.purged',
      creative_id: 'c-1',
    });
    expect(last(one)).not.toHaveProperty('state');
  });

  it('is none without registrations: the store is asked for nothing', async () => {
    const at = await testReceiver({
      store: { ...memoryStore(), registrations: new Proxy({}, { get: () => assert.fail('asked') }) as never },
    });
    await at.deliver(body());
    expect(last(at)).toMatchObject({ family: 'impairment' });
    expect(last(at)).not.toHaveProperty('state');
    await at.receiver.stop();
  });
});

describe('a pulled state', () => {
  it('is told once by two processes; what came since it was judged makes it a duplicate', async () => {
    const at = begin();
    const [one, two] = [await at.process(), await at.process()];
    await buy(one, FLIGHT, null);
    const kinds = async (pulled: Partial<PulledState>): Promise<string[]> =>
      (await Promise.all([pull(one, pulled), pull(two, pulled)]))
        .map(({ kind }) => kind)
        .toSorted((a, b) => (a < b ? -1 : 1));
    expect(await kinds({})).toEqual(['accepted', 'duplicate']);
    const seen = await keptIn(one);
    await one.deliver(body({ observed_at: CLOSED_AT, transition: { to: 'paused' } }));
    const state = { id: 'i-1', at: Date.parse(NOW), ended: true };
    expect(await kinds({ state, seen })).toEqual(['duplicate', 'duplicate']);
    expect(await kinds({ state, seen: await keptIn(one) })).toEqual(['accepted', 'duplicate']);
    await expect.poll(() => heardBy(one).length + heardBy(two).length).toBe(3);
    // Its account is gone.
    await one.registrations.forget(AGENT);
    expect(await kinds({})).toEqual(['duplicate', 'duplicate']);
  });

  it('of a subscription names that, with the owner’s ref, and is of the family that was asked for', async () => {
    const one = await begin().process();
    const { store } = contextOf(one);
    const holder = { kind: 'snapshot', id: 's-1 account.status_changed' } as const;
    await store.registrations?.run(AGENT, (rows) =>
      rows.save({ ...holder, sender: AGENT, value: '{}', dueAt: null, list: null, expiresAt: null }),
    );
    // Another account than that of the subscription, and what would be another subscription's.
    const payload = { account_id: 'a-9', status: 'suspended', subscriber_id: 's-9' };
    const outcome = await observeStateWith(contextOf(one))({
      sender: AGENT,
      family: 'account.status_changed',
      subscription: { subscriberId: 's-1', accountId: 'a-1' },
      payload,
      state: { id: 'a-9', at: Date.parse(OPENED_AT), to: 'suspended', ended: false },
      seen: undefined,
      holder,
    });
    expect(outcome.kind).toBe('accepted');
    await expect.poll(() => heardBy(one).length).toBe(1);
    expect(last(one)).toMatchObject({
      family: 'account.status_changed',
      notification: payload,
      subscription: { subscriberId: 's-1', accountId: 'a-1' },
      state: { id: 'a-9', ended: false },
    });
    expect(last(one).state).not.toHaveProperty('mediaBuyId');
    // The webhook of it.
    await one.deliver({
      idempotency_key: randomUUID(),
      notification_type: 'account.status_changed',
      subscriber_id: 's-1',
      account_id: 'a-9',
      status: 'suspended',
      observed_at: OPENED_AT,
    });
    expect(last(one)).toMatchObject({ source: 'webhook', state: { repeated: true } });
  });

  it('that JSON cannot keep, or that is too large, is no event, and nothing of it is kept', async () => {
    const one = await begin().process();
    await buy(one, FLIGHT, null);
    const round: Record<string, unknown> = {};
    round['round'] = round;
    for (const payload of [{ n: 5n }, { at: new Date() }, round, { text: 'x'.repeat(2_000_000) }]) {
      await expect(pull(one, { payload })).rejects.toThrow(/which JSON cannot keep|over maxBodyBytes/u);
    }
    expect(await keptIn(one)).toBeUndefined();
  });

  it('whose object is no payload of its family is handled all the same, and warned of', async () => {
    const one = await begin().process();
    await buy(one, FLIGHT, null);
    await pull(one, { payload: impairment({ package_ids: 5 }) });
    await expect.poll(() => heardBy(one).length).toBe(1);
    expect(last(one)).toMatchObject({ state: { id: 'i-1' }, warnings: [{ code: 'invalid_notification' }] });
    expect(last(one)).not.toHaveProperty('notification');
  });

  it('that comes after the last report is none of the seller’s mistakes', async () => {
    const one = await begin().process();
    await buy(one, FLIGHT, null);
    await one.report({ start: '2026-03-03T00:00:00Z', end: '2026-03-04T00:00:00Z' }, { type: 'final' });
    await pull(one, { payload: impairment({ observed_at: '2026-03-05T23:00:00Z' }) });
    await expect.poll(() => heardBy(one).length).toBe(1);
    expect(last(one).warnings).toEqual([]);
    expect(one.alarms).toEqual([]);
  });
});

describe('a hostile seller', () => {
  it.each<[string, object, string | undefined]>([
    ['an instant of the year 9999', { observed_at: '9999-12-31T23:59:59Z' }, NOW],
    ['one of the year 1', { observed_at: '0001-01-01T00:00:00Z' }, '0001-01-01T00:00:00.000Z'],
    ['none', { observed_at: undefined }, NOW],
    ['one that is none', { observed_at: 'yesterday' }, NOW],
    ['none, and a time of its own', { observed_at: null, fired_at: OPENED_AT }, OPENED_AT],
    ['a number', { observed_at: 5 }, undefined],
    ['a transition that is a list', { transition: [] }, undefined],
    ['a transition of numbers', { transition: { to: 5 } }, undefined],
    ['no transition', { transition: undefined }, OPENED_AT],
    ['a state of 100 kB', { transition: { to: 'x'.repeat(100_000) } }, OPENED_AT],
    ['an id of 100 kB', { impairment_id: 'x'.repeat(100_000) }, undefined],
    ['a media buy of 100 kB', { media_buy_id: 'x'.repeat(100_000) }, OPENED_AT],
    ['an id of a prototype', { impairment_id: '__proto__' }, OPENED_AT],
  ])('%s', async (_what, members, observedAt) => {
    const one = await begin().process();
    await buy(one, FLIGHT, null);
    expect(await one.deliver(body(members))).toMatchObject({ kind: 'accepted', state: 'applied' });
    expect(last(one).state?.observedAt).toBe(observedAt);
    // What is true is kept, whatever came before it.
    await here?.until('2026-03-05T13:00:00Z');
    await one.deliver(body({ observed_at: '2026-03-05T12:30:00Z' }));
    expect((await keptIn(one))?.at).toBe(Date.parse('2026-03-05T12:30:00Z'));
  });

  it('hundreds of impairments of one media buy: a hundred are kept, the owner is told, all are handled', async () => {
    const one = await begin().process();
    await buy(one, FLIGHT, null);
    for (let n = 0; n < 150; n += 1) await one.deliver(body({ impairment_id: `i-${n}` }));
    expect(heardBy(one)).toHaveLength(150);
    expect(await keptIn(one, 'i-49')).toBeUndefined();
    expect(await keptIn(one, 'i-50')).toBeDefined();
    expect(one.alarms).toMatchObject([{ code: 'cap_near', limit: 'states', sender: AGENT }]);
  });
});
