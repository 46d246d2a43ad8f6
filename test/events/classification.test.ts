import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Transport } from '../../src/events/index.ts';
import {
  agentTask,
  codeOf,
  deliveryReport,
  eventOf,
  eventOfKind,
  KEY,
  toolEnvelope,
  warningCodes,
} from './helpers.ts';

type Members = Readonly<Record<string, unknown>>;

const keyed = (members: Members): Members => ({ idempotency_key: KEY, ...members });

const FORMATS: readonly (Transport | undefined)[] = [undefined, 'tool', 'agent'];

/** What a body is, whatever its sender's format says: the kind of its event, or the code of its refusal. */
function verdicts(payload: unknown): readonly string[] {
  return FORMATS.map((format) => {
    const code = codeOf(payload, { format });
    return code === 'ok' ? eventOf(payload, { format }).kind : code;
  });
}

const always = (verdict: string): readonly string[] => FORMATS.map(() => verdict);

describe('an authentic object with a key that is no task envelope is of another family: 200', () => {
  it.each([
    ['nothing else', {}],
    ['members that nobody knows', { anything: [{ a: 1 }], type: 'impairments_of_others' }],
    ['a name', { event: 'something_else' }],
    ['a name that is not text', { notification_type: null, event: ['impairment'], event_type: 5 }],
    ['an event without event_type', { event: { impairment: true } }],
    ['status and task_id that are null', { status: null, task_id: null, result: null }],
    ['an object called task', { task: { title: 'x' } }],
    ['a task without a status', { statusUpdate: { taskId: 't', state: 'working' } }],
    ['a task whose status is a word', { task: { id: 't', status: 'completed' } }],
    ['a report’s members under other names', { media_buy_deliveries: 'none', totals: {} }],
  ])('%s', (_name, members) => {
    expect(verdicts(keyed(members))).toEqual(always('other'));
    const event = eventOfKind('other', keyed(members));
    expect(event).toMatchObject({ transport: 'tool', idempotencyKey: KEY, warnings: [] });
  });

  it.each([undefined, 'agent' as const])('has its members as sent, from a sender of format %s', (format) => {
    const payload = keyed({ notification_type: 'x.y', task_id: 't', status: 'active', result: { a: 1 } });
    expect(eventOf(payload, { format })).toEqual({
      kind: 'other',
      source: 'webhook',
      transport: 'tool',
      sender: '',
      idempotencyKey: KEY,
      idempotencyKeySource: 'envelope',
      family: 'x.y',
      taskId: 't',
      status: 'active',
      data: { a: 1 },
      reemission: false,
      warnings: [],
      envelope: payload,
    });
  });
});

describe('a body that names its family', () => {
  const NAMES = [
    ['notification_type', { notification_type: 'x.y' }],
    ['event', { event: 'x.y' }],
    ['event_type', { event_type: 'x.y' }],
    ['event.event_type', { event: { event_type: 'x.y' } }],
  ] as const;

  describe.each(NAMES)('by %s', (_member, name) => {
    it.each([
      ['no more', {}],
      ['a task_id', { task_id: 'task_1' }],
      ['a status', { status: 'completed' }],
      ['a result', { result: { a: 1 } }],
      ['a status object', { task_id: 'task_1', status: { state: 'working' } }],
      ['a status of a media buy', { task_id: 'task_1', status: 'active' }],
      ['a status that is not text', { task_id: 'task_1', status: 5 }],
      ['a task_id that is not text', { task_id: 5, status: 'completed' }],
      ['an empty task_id', { task_id: '', status: 'completed' }],
      ['deliveries', { media_buy_deliveries: [] }],
      ['an object called message', { message: { text: 'x' } }],
      ['wrappers in wrappers', { task: { task: { status: { state: 'working' } } } }],
    ])('and has %s is another family', (_name, members) => {
      const payload = keyed({ ...name, ...members });
      expect(verdicts(payload)).toEqual(always('other'));
      expect(eventOf(payload)).toMatchObject({ family: 'x.y', transport: 'tool', warnings: [] });
    });

    it('is a task envelope with both task_id and status', () => {
      expect(verdicts(toolEnvelope(name))).toEqual(always('task'));
    });

    it('is a delivery report where its envelope is whole', () => {
      const result = deliveryReport();
      const payload = toolEnvelope({ task_type: 'media_buy_delivery', ...name, result });
      expect(verdicts(payload)).toEqual(always('delivery-report'));
    });

    it('stays of the agent transport with a task’s id and state', () => {
      const payload = { idempotency_key: KEY, ...agentTask('working', name) };
      expect(verdicts(payload)).toEqual(always('task'));
      expect(verdicts({ idempotency_key: KEY, ...name, task: agentTask('working') })).toEqual(always('task'));
    });
  });

  it.each([
    ['creative.status_changed', { creative_id: 'c', task_id: 't' }],
    ['account.status_changed', { account_id: 'a', previous_status: 'paused', status: 'active' }],
  ])('%s is a family', (name, members) => {
    expect(eventOf(keyed({ notification_type: name, ...members }))).toMatchObject({
      kind: 'other',
      family: name,
    });
  });

  it('with a status that nobody knows is a task’s, reported, and keeps its name', () => {
    const event = eventOfKind('other', toolEnvelope({ event: 'x.y', status: 'archived' }));
    expect(event).toMatchObject({ family: 'x.y', status: 'archived', taskId: 'task_1' });
    expect(warningCodes(event)).toEqual(['unknown_status']);
  });

  it('is called by the first of its names', () => {
    const names = { notification_type: 'a', event: 'b', event_type: 'c' };
    expect(eventOf(keyed(names))).toMatchObject({ family: 'a' });
    for (const notification_type of [null, '']) {
      expect(eventOf(keyed({ ...names, notification_type }))).toMatchObject({ family: 'b' });
    }
    const nested = { event: { event_type: 'd' } };
    expect(eventOf(keyed({ ...names, notification_type: 7, ...nested }))).toMatchObject({ family: 'c' });
    expect(eventOf(keyed(nested))).toMatchObject({ family: 'd' });
  });

  it.each([
    ['exactly', 'Creative.Status-Changed '],
    ['of 128 characters', 'x'.repeat(128)],
    ['of 128 characters outside the basic plane', '𝒳'.repeat(128)],
    ['empty', ''],
    ['constructor', 'constructor'],
    ['__proto__', '__proto__'],
  ])('family is the name: %s', (_name, family) => {
    expect(eventOf(keyed({ event_type: family }))).toMatchObject({ kind: 'other', family });
  });

  it.each([
    ['longer than 128 characters', 'x'.repeat(129)],
    ['with a line feed', 'x\ny'],
    ['with a NUL', 'x\u0000'],
    ['with a bidi control', 'x\u202Ey'],
    ['with half a surrogate pair', 'x\uD800'],
  ])('a name %s is none: still 200', (_name, event_type) => {
    for (const format of FORMATS) {
      const event = eventOfKind('other', keyed({ event_type }), { format });
      expect('family' in event).toBe(false);
      expect(event.envelope).toEqual(keyed({ event_type }));
    }
  });
});

describe('is still 400', () => {
  it.each([
    ['no key', { anything: 1 }],
    ['no key, with a name', { event_type: 'x.y' }],
    ['a key that is null', { idempotency_key: null, event_type: 'x.y' }],
  ])('%s: missing_idempotency_key', (_name, payload) => {
    expect(codeOf(payload)).toBe('missing_idempotency_key');
  });

  it.each([
    ['a bare result', { media_buy_id: 'mb', packages: [] }],
    ["a bare result with the buy's status", { media_buy_id: 'mb', status: 'active' }],
  ])('%s: missing_envelope_fields', (_name, payload) => {
    for (const format of [undefined, 'tool', 'agent'] as const) {
      expect(codeOf(payload, format && { format })).toBe('missing_envelope_fields');
    }
    expect(codeOf({ ...payload, task_id: 't' })).toBe('missing_idempotency_key');
  });

  it('no key, though the format of its sender may lack it: a name makes it no task', () => {
    expect(codeOf({ event_type: 'x.y' }, { format: 'agent' })).toBe('missing_idempotency_key');
    expect(codeOf({ anything: 1 }, { format: 'agent' })).toBe('missing_envelope_fields');
  });

  it.each(['short', 5, [], {}])('a bad key (%j): invalid_envelope', (idempotency_key) => {
    for (const members of [{}, { event: 'x' }]) {
      const payload = { idempotency_key, ...members };
      expect(verdicts(payload)).toEqual(always('invalid_envelope'));
    }
  });

  it.each(['scheduled', 'final', 'delayed', 'adjusted', 'window_update'])(
    'a bare %s report, by its notification_type',
    (notification_type) => {
      for (const members of [
        {},
        { media_buy_deliveries: [] },
        { event: 'report', result: {} },
        { task_id: 't' },
        { task_id: 't', status: 'active' },
      ]) {
        const payload = keyed({ notification_type, ...members });
        expect(verdicts(payload)).toEqual(always('missing_envelope_fields'));
      }
    },
  );

  it('a bare report that names itself nothing, by media_buy_deliveries', () => {
    expect(verdicts(keyed({ media_buy_deliveries: [] }))).toEqual(always('missing_envelope_fields'));
    expect(verdicts(keyed({ media_buy_deliveries: [], status: 'active' }))).toEqual(
      always('missing_envelope_fields'),
    );
  });

  it.each([
    ['task_id', { task_id: 't' }],
    ['status', { status: 'completed' }],
    ['status, a media buy’s', { status: 'active' }],
    ['result', { result: { notification_type: 'creative.purged' } }],
    ['task_id and result', { task_id: 't', result: {} }],
  ])('a nameless body with %s alone', (_name, members) => {
    expect(codeOf(keyed(members))).toBe('missing_envelope_fields');
    expect(verdicts(keyed(members))).not.toContain('other');
  });

  it('a nameless body with task_id and a media buy’s status: invalid_envelope_status', () => {
    expect(verdicts(keyed({ task_id: 't', status: 'paused' }))).toEqual(always('invalid_envelope_status'));
  });
});

describe('any object with a key that names itself and is neither task nor report', () => {
  const names = fc.oneof(
    fc.string({ maxLength: 140 }),
    fc.string({ unit: 'binary', maxLength: 140 }),
    fc.constantFrom('constructor', '__proto__', 'toString', 'hasOwnProperty', 'impairment', 'product.x', ''),
  );
  const REPORTS = ['scheduled', 'final', 'delayed', 'adjusted', 'window_update'];
  const name = names
    .filter((text) => !REPORTS.includes(text))
    .chain((text) =>
      fc.constantFrom<Members>(
        { notification_type: text },
        { event: text },
        { event_type: text },
        { event: { event_type: text } },
      ),
    );
  const members = fc.dictionary(
    fc.oneof(
      fc.string({ maxLength: 12 }),
      fc.constantFrom('__proto__', 'status', 'result', 'task', 'message', 'artifacts', 'type', 'data'),
    ),
    fc.jsonValue(),
    { maxKeys: 5, noNullPrototype: true },
  );

  it('is accepted, whatever the sender’s format, and passed on as sent', () => {
    let named = 0;
    fc.assert(
      fc.property(members, name, fc.constantFrom(...FORMATS), (more, ownName, format) => {
        const payload = { ...more, idempotency_key: KEY, task_id: null, ...ownName };
        const event = eventOfKind('other', payload, { format });
        expect(event.envelope).toEqual(JSON.parse(JSON.stringify(payload)));
        expect(event.idempotencyKey).toBe(KEY);
        if (event.family === undefined) return;
        named += 1;
        expect(Array.from(event.family).length).toBeLessThanOrEqual(128);
      }),
      { numRuns: 2000 },
    );
    expect(named).toBeGreaterThan(500);
  });
});
