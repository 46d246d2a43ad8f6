import { describe, expect, it } from 'vitest';
import {
  agentTask,
  codeOf,
  deliveryReport,
  eventOf,
  eventOfKind,
  KEY,
  readOk,
  toolEnvelope,
  warningCodes,
} from './helpers.ts';

const FAMILIES = [
  ['impairment', 'impairment'],
  ['collection_list_changed', 'collection_list_changed'],
  ['collection-list-changed', 'collection_list_changed'],
  ['property_list_changed', 'property_list_changed'],
  ['PROPERTY_LIST_CHANGED', 'property_list_changed'],
  ['revocation-notification', 'revocation-notification'],
  ['revocation_notification', 'revocation-notification'],
  ['rights.revocation-notification', 'revocation-notification'],
  ['rights/revocation_notification', 'revocation-notification'],
  ['artifact_push', 'artifact_push'],
  ['artifact-webhook', 'artifact_push'],
] as const;

const DISCRIMINATORS = ['event', 'event_type', 'type', 'notification_type', 'task_type'];

describe('other webhook families (contract.md §6.12)', () => {
  describe.each(DISCRIMINATORS)('named by %s', (member) => {
    it.each(FAMILIES)('%s: kind other, without task_id and status', (name, family) => {
      const payload = { idempotency_key: KEY, [member]: name, anything: { a: 1 } };
      const event = eventOfKind('other', payload);
      expect(event).toMatchObject({ family, transport: 'tool', idempotencyKey: KEY, envelope: payload });
      expect('taskId' in event).toBe(false);
      expect('status' in event).toBe(false);
      // Nothing of the payload is there; test/events/notifications.test.ts has whole ones.
      expect(warningCodes(event)).toEqual(['invalid_notification']);
    });
  });

  it('keeps task_id, status and timestamp where it has them, and is not ordered', () => {
    const reading = readOk(toolEnvelope({ task_type: 'impairment', notification_id: 'imp_1' }));
    expect(reading.event).toMatchObject({
      kind: 'other',
      family: 'impairment',
      taskId: 'task_1',
      status: 'completed',
      notificationId: 'imp_1',
      data: { media_buy_id: 'mb_1' },
    });
    expect('instant' in reading).toBe(false);
    expect(reading.terminal).toBe(false);
  });

  it('is named in the result of an envelope too', () => {
    const result = { notification_type: 'impairment', notification_id: 'imp_1' };
    expect(eventOf(toolEnvelope({ result }))).toMatchObject({
      family: 'impairment',
      notificationId: 'imp_1',
    });
    expect(eventOf({ idempotency_key: KEY, result })).toMatchObject({ kind: 'other', family: 'impairment' });
  });

  it('a result’s own `type` names no family, nor does its `event` where the task is named', () => {
    expect(eventOf(toolEnvelope({ result: { type: 'artifact' } })).kind).toBe('task');
    const result = { event: 'artifact' };
    expect(eventOf(toolEnvelope({ task_type: 'create_media_buy', result })).kind).toBe('task');
    expect(eventOf(toolEnvelope({ task_type: undefined, result }))).toMatchObject({
      kind: 'other',
      family: 'artifact_push',
    });
  });

  it('has a status of its own: a media-buy word is no mistake there', () => {
    const event = eventOf({ idempotency_key: KEY, event: 'impairment', status: 'active' });
    expect(event).toMatchObject({ kind: 'other', status: 'active' });
    expect(warningCodes(event)).toEqual(['invalid_notification']);
  });

  it.each([
    [undefined, 'missing_idempotency_key'],
    ['short', 'invalid_envelope'],
  ])('needs its key: %s → %s', (idempotency_key, code) => {
    expect(codeOf({ idempotency_key, event: 'property_list_changed' })).toBe(code);
  });

  it('an artifact push is recognised by its shape', () => {
    const payload = { idempotency_key: KEY, media_buy_id: 'm', artifacts: [{ artifact: { id: 'a' } }] };
    expect(eventOf(payload)).toMatchObject({ kind: 'other', family: 'artifact_push' });
    expect(eventOf(payload, { format: 'agent' })).toMatchObject({
      family: 'artifact_push',
      transport: 'tool',
    });
  });

  it('only without task_id and status: a task’s envelope stays one', () => {
    expect(eventOf(toolEnvelope({ artifacts: [{ id: 'a' }], rights_id: 'r' })).kind).toBe('task');
  });

  it.each([
    ['rights_id', 'r', { task_id: 't' }],
    ['rights_id', 'r', { status: 'working' }],
    ['artifacts', [], { task_id: 't' }],
    ['artifacts', [], { status: 'working' }],
  ])('nor by %s %j beside %j: a task’s envelope that lost a member is refused', (shape, value, member) => {
    const payload = { idempotency_key: KEY, [shape]: value, ...member };
    expect(codeOf(payload)).toBe('missing_envelope_fields');
  });

  it('an agent-transport payload stays one, whatever else its top level says', () => {
    const event = eventOf(agentTask('working', { type: 'impairment' }));
    expect(event).toMatchObject({ kind: 'task', transport: 'agent' });
  });

  it('a rights revocation is recognised by its shape', () => {
    const payload = { idempotency_key: KEY, rights_id: 'r', reason: 'expired' };
    expect(eventOf(payload)).toMatchObject({ kind: 'other', family: 'revocation-notification' });
  });

  it('an agent-transport task that lost its status is no artifact push', () => {
    const payload = { id: 't', artifacts: [{ artifactId: 'a', parts: [] }] };
    expect('family' in eventOf({ idempotency_key: KEY, ...payload })).toBe(false);
    expect(codeOf(payload, { format: 'agent' })).toBe('missing_envelope_fields');
  });

  it.each([
    [{ artifacts: [{ id: 'a' }] }, 'artifact_push'],
    [{ rights_id: 'r' }, 'revocation-notification'],
    [{ type: 'impairment' }, 'impairment'],
    [{ result: { notification_type: 'impairment' } }, 'impairment'],
  ])('%j is recognised only when the body names no family', (members, family) => {
    expect(eventOf({ idempotency_key: KEY, ...members })).toMatchObject({ family });
    const named = { idempotency_key: KEY, event_type: 'rights.granted', ...members };
    expect(eventOf(named)).toMatchObject({ kind: 'other', family: 'rights.granted' });
  });

  it.each(['type', 'event'])(
    '%s of a whole task envelope may be any word: it stays a task, and ordered',
    (member) => {
      const reading = readOk(toolEnvelope({ [member]: 'artifact' }));
      expect(reading.event).toMatchObject({ kind: 'task', status: 'completed' });
      expect('instant' in reading).toBe(true);
    },
  );

  it('a registered agent format does not hide it', () => {
    const payload = { idempotency_key: KEY, event: 'impairment' };
    expect(eventOf(payload, { format: 'agent' })).toMatchObject({ kind: 'other', family: 'impairment' });
  });

  it('comes in agent transport by task_type or data, and is not ordered', () => {
    const named = readOk(
      agentTask('completed', { metadata: { idempotency_key: KEY, task_type: 'impairment' } }),
    );
    expect(named.event).toMatchObject({ kind: 'other', family: 'impairment', transport: 'agent' });
    expect('instant' in named).toBe(false);
    const artifacts = [{ parts: [{ data: { event: 'property_list_changed', list_id: 'l' } }] }];
    const event = eventOf(agentTask('completed', { artifacts }));
    expect(event).toMatchObject({ kind: 'other', family: 'property_list_changed', taskId: 'task_1' });
    expect(warningCodes(event)).toEqual([]);
  });
});

describe('event.subscription (subscriptions.md §5.1)', () => {
  const ID = 'Sub_1.of:buyer-7';
  const family = (members: object): object => ({
    idempotency_key: KEY,
    notification_type: 'account.status_changed',
    account_id: 'acc_1',
    ...members,
  });

  it('is what the body names: subscriber and account', () => {
    expect(eventOf(family({ subscriber_id: ID })).subscription).toEqual({
      subscriberId: ID,
      accountId: 'acc_1',
    });
    const ofAgent = family({ subscriber_id: ID, account_id: undefined });
    expect(eventOf(ofAgent).subscription).toEqual({ subscriberId: ID });
    const longest = 'x'.repeat(64);
    expect(eventOf(family({ subscriber_id: longest, account_id: 7 })).subscription).toEqual({
      subscriberId: longest,
    });
  });

  it.each([
    7,
    '',
    'x'.repeat(65),
    'sub 1',
    'sub_1\n',
    'süb',
    null,
    ['sub_1'],
    { id: 'sub_1' },
    true,
    undefined,
  ])('is absent where subscriber_id is %j', (subscriber_id) => {
    const event = eventOf(family({ subscriber_id }));
    expect('subscription' in event).toBe(false);
    expect(event).toMatchObject({ kind: 'other', family: 'account.status_changed' });
  });

  it('is on every kind of event, and found in the payload within an envelope', () => {
    const named = { subscriber_id: ID, account_id: 'acc_1' };
    const subscription = { subscriberId: ID, accountId: 'acc_1' };
    expect(eventOf(toolEnvelope(named))).toMatchObject({ kind: 'task', subscription });
    const report = toolEnvelope({ task_type: 'media_buy_delivery', result: deliveryReport(), ...named });
    expect(eventOf(report)).toMatchObject({ kind: 'delivery-report', subscription });
    const payload = { notification_type: 'impairment', impairment_id: 'i', ...named };
    expect(eventOf(toolEnvelope({ result: payload }))).toMatchObject({ kind: 'other', subscription });
    const artifacts = [{ parts: [{ data: payload }] }];
    expect(eventOf(agentTask('completed', { artifacts }))).toMatchObject({ kind: 'other', subscription });
    expect(eventOf(agentTask('working', named))).toMatchObject({ kind: 'task', subscription });
    // A task's result has members of its own.
    expect('subscription' in eventOf(toolEnvelope({ result: named }))).toBe(false);
  });
});
