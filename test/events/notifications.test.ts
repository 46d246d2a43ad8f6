import { describe, expect, expectTypeOf, it } from 'vitest';
import type { Event, NotificationEvent, NotificationFamily, OtherEvent } from '../../src/events/index.ts';
import { notificationFamily } from '../../src/events/for-tests.ts';
import { SAMPLE_FAMILIES } from '../../src/testing/for-tests.ts';
import { type SampleFamily, samplePayloads } from '../../src/testing/index.ts';
import { agentTask, eventOf, eventOfKind, KEY, toolEnvelope, warningCodes } from './helpers.ts';

type Members = Readonly<Record<string, unknown>>;

const samples = samplePayloads();
const sample = (family: SampleFamily): Members =>
  JSON.parse(JSON.stringify(samples.family(family))) as Members;

const without = (payload: Members, name: string): Members =>
  Object.fromEntries(Object.entries(payload).filter(([own]) => own !== name));

/** What identifies each payload; of the wholesale feed, inside its `event`. */
const IDS: Record<SampleFamily, string | readonly string[]> = {
  impairment: 'impairment_id',
  'creative.status_changed': 'creative_id',
  'creative.purged': 'creative_id',
  'creative.assignment_changed': 'media_buy_id',
  'indicators.changed': 'media_buy_id',
  'account.status_changed': 'account_id',
  'capabilities.changed': 'agent_url',
  'account.change_recorded': ['change_id', 'resource'],
  'principal.changed': 'agent_url',
  'reporting.ledger_changed': 'reporting_revision_id',
  'reporting.status_changed': ['delivery_config_id', 'health'],
  'reporting.delivery_ready': ['reporting_revision_id', 'reporting_materialization_id'],
  'product.updated': 'event',
  collection_list_changed: 'list_id',
  property_list_changed: 'list_id',
  artifact_push: 'media_buy_id',
  'revocation-notification': 'rights_id',
};

/** Of the envelope, or of the family's own name. */
const ENVELOPE = ['idempotency_key', 'notification_id', 'timestamp', 'notification_type', 'event'];

const IDENTIFIED = Object.entries(IDS).map(
  ([family, ids]) => [family as SampleFamily, [ids].flat() as readonly string[]] as const,
);

describe('a known family’s payload is event.notification', () => {
  it('there is a sample of each', () => {
    const families = SAMPLE_FAMILIES.map(notificationFamily) as NotificationFamily[];
    expectTypeOf(families).items.toEqualTypeOf<keyof import('../../src/events/index.ts').Notifications>();
    expect(new Set(families).size).toBe(SAMPLE_FAMILIES.length);
  });

  describe.each(IDENTIFIED)('%s', (family, ids) => {
    const payload = sample(family);
    /** Members beyond name, key and id. */
    const more = Object.keys(payload).filter((name) => !ENVELOPE.includes(name) && !ids.includes(name));

    it('is the body as sent, with unknown members', () => {
      const sent = { ...payload, vendor: { deep: [null] }, toString: 1 };
      const event = eventOfKind('other', sent);
      expect(event).toMatchObject({ family, transport: 'tool', warnings: [] });
      expect(event.notification).toBe(event.envelope);
      expect(event.notification).toEqual(sent);
    });

    it.each(more)('may lack %s, and null is as good as absence', (name) => {
      for (const sent of [without(payload, name), { ...payload, [name]: null }]) {
        const named = family === 'artifact_push' && name === 'artifacts' ? { event: family } : {};
        expect(eventOf({ ...sent, ...named })).toMatchObject({ family, warnings: [], notification: sent });
      }
    });

    it.each(ids)('must have what identifies it: %s', (id) => {
      const named = { event_type: family };
      for (const value of [undefined, null, '', 5, {}, []]) {
        const sent = { ...payload, ...named, [id]: value };
        const event = eventOfKind('other', sent);
        expect(event.family).toBe(family);
        expect('notification' in event).toBe(false);
        expect(warningCodes(event)).toEqual(['invalid_notification']);
        expect(event.envelope).toEqual(JSON.parse(JSON.stringify(sent)));
      }
    });

    it('does not fit with a member of another type', () => {
      const FREE = ['remediation', 'initiator'];
      for (const name of more.filter((one) => !FREE.includes(one))) {
        const event = eventOfKind('other', { ...payload, event_type: family, [name]: true });
        expect('notification' in event, name).toBe(false);
        expect(event.warnings).toEqual([
          { code: 'invalid_notification', message: expect.stringMatching(new RegExp(` \\(at ${name}\\)$`)) },
        ]);
      }
    });
  });

  it('a change of the ledger has the id of a revision or of an adjustment', () => {
    const adjustment = {
      ...without(sample('reporting.ledger_changed'), 'reporting_revision_id'),
      change_kind: 'adjustment_published',
      reporting_adjustment_id: 'adj_1',
      adjusts_reporting_revision_id: 'rev_1',
    };
    expect(eventOf(adjustment)).toMatchObject({ notification: adjustment, warnings: [] });
    const neither = without(adjustment, 'reporting_adjustment_id');
    expect(warningCodes(eventOfKind('other', neither))).toEqual(['invalid_notification']);
  });

  it.each([
    ['account.change_recorded', { resource: { type: 'media_buy', resource_id: 5 } }],
    ['indicators.changed', { changed_indicator_types: [5] }],
    ['capabilities.changed', { changed_paths: 'all' }],
    ['impairment', { transition: { from: 5 } }],
    ['impairment', { package_ids: [5] }],
    ['creative.status_changed', { transition: { to: {} } }],
    ['product.updated', { event: { event_id: 'e', event_type: 'product.updated', entity_id: 5 } }],
    ['product.updated', { event: { event_type: 'product.updated' } }],
  ] as const)('%s does not fit with %j', (family, members) => {
    const event = eventOfKind('other', { ...sample(family), ...members });
    expect(warningCodes(event)).toEqual(['invalid_notification']);
  });

  it.each([
    ['impairment', { transition: { to: 'blocked' }, remediation: { action: 'replace' } }],
    ['creative.status_changed', { transition: {}, initiator: { kind: 'buyer' } }],
    ['capabilities.changed', { capabilities_version: 3 }],
    ['product.updated', { wholesale_feed_version: 7, event: { event_id: 'e', event_type: 'product.x' } }],
  ] as const)('%s fits with %j', (family, members) => {
    expect(eventOf({ ...sample(family), ...members })).toMatchObject({ notification: members, warnings: [] });
  });
});

describe('an impairment beside the health of its media buy', () => {
  const impairment = { impairment_id: 'imp_1', reason_code: 'BRAND_SAFETY' };

  it.each([
    ['a task envelope', toolEnvelope({ result: { impairment, health: 'impaired' } })],
    [
      'one without a task type',
      toolEnvelope({ task_type: null, result: { impairment, health: 'ok', media_buy_id: 'mb' } }),
    ],
    [
      'an agent’s task',
      agentTask('completed', { artifacts: [{ parts: [{ data: { impairment, health: 'impaired' } }] }] }),
    ],
  ])('under the result of %s is that family', (_of, payload) => {
    expect(eventOf(payload)).toMatchObject({
      kind: 'other',
      family: 'impairment',
      notification: impairment,
      warnings: [],
    });
  });

  it.each([
    ['no health', { impairment, media_buy_id: 'mb_1' }],
    ['no impairment', { health: 'impaired', media_buy_id: 'mb_1' }],
    ['null', { impairment: null, health: 'ok', media_buy_id: 'mb_1' }],
    ['an impairment without its id', { impairment: { reason_code: 'x' }, health: 'impaired' }],
    ['the lists of get_media_buys', { impairments: [impairment], health: 'impaired' }],
  ])('is the end of a task with %s', (_with, result) => {
    expect(eventOf(toolEnvelope({ result }))).toMatchObject({ kind: 'task', status: 'completed' });
  });
});

describe('the place of the payload', () => {
  const { impairment_id, reason_code } = sample('impairment') as {
    impairment_id: string;
    reason_code: string;
  };
  const payload = { impairment_id, reason_code };

  it('the result of a task envelope', () => {
    for (const envelope of [
      toolEnvelope({ task_type: 'impairment', result: payload }),
      toolEnvelope({ result: { ...payload, notification_type: 'impairment' } }),
      { idempotency_key: KEY, type: 'impairment', result: payload },
    ]) {
      const event = eventOfKind('other', envelope);
      expect(event).toMatchObject({ family: 'impairment', notification: payload, warnings: [] });
      expect(event.notification).toBe(event.data);
    }
  });

  it('the data part of an agent’s task', () => {
    const artifacts = [{ parts: [{ data: { ...payload, event: 'impairment' } }] }];
    const event = eventOfKind('other', agentTask('completed', { artifacts }));
    expect(event).toMatchObject({ family: 'impairment', transport: 'agent', warnings: [] });
    expect(event.notification).toBe(event.data);
  });

  it('the body, if both would fit', () => {
    const event = eventOfKind('other', {
      idempotency_key: KEY,
      event: 'impairment',
      impairment_id: 'outer',
      result: payload,
    });
    expect(event.notification).toBe(event.envelope);
  });

  it('a task envelope of an unknown status has one too, by its name', () => {
    const event = eventOfKind('other', {
      ...sample('account.status_changed'),
      task_id: 't',
      status: 'suspended',
    });
    expect(event).toMatchObject({ family: 'account.status_changed', notification: { account_id: 'acc_1' } });
    expect(warningCodes(event)).toContain('unknown_status');
  });

  it('the warning names places, not values, and at most four', () => {
    const { warnings } = eventOf({
      ...sample('impairment'),
      impairment_id: ['secret'],
      transition: { from: ['secret'], to: 5 },
      reason: 5,
      observed_at: 5,
    });
    expect(warnings[0]?.message).toMatch(/\(at impairment_id, transition\.from, transition\.to, [a-z_]+\)$/);
    const inResult = eventOf(toolEnvelope({ task_type: 'impairment', result: [] })).warnings[0];
    expect(inResult?.message).toMatch(/\(at impairment_id\)$/);
  });
});

describe('the wholesale feed', () => {
  it.each(['product.', 'product.updated', 'signal.removed', 'wholesale_feed.bulk_change', 'wholesale_feed'])(
    '%s belongs to it',
    (event_type) => {
      const event = { event_id: 'e', event_type };
      expect(notificationFamily(event_type)).toBe('wholesale_feed');
      const payload = { idempotency_key: KEY, event };
      expect(eventOf(payload)).toMatchObject({ family: event_type, notification: payload, warnings: [] });
    },
  );

  it.each(['products.updated', 'product', 'my.product.updated', 'Product.updated', 'signals'])(
    '%s does not: its payload is unknown',
    (event_type) => {
      expect(notificationFamily(event_type)).toBe(event_type);
      const event = eventOfKind('other', { idempotency_key: KEY, event: { event_type } });
      expect('notification' in event).toBe(false);
      expect(event.warnings).toEqual([]);
    },
  );
});

it.each(['constructor', '__proto__', 'toString', 'valueOf', 'vendor.x'])(
  'the family %s has no payload that is known',
  (family) => {
    const event = eventOfKind('other', { idempotency_key: KEY, notification_type: family });
    expect('notification' in event).toBe(false);
    expect(event).toMatchObject({ family, warnings: [] });
  },
);

describe('types', () => {
  it('notification narrows by family', () => {
    const read = (event: OtherEvent): string | undefined => {
      if (event.family === 'creative.purged' && event.notification) {
        expectTypeOf(event).toEqualTypeOf<NotificationEvent<'creative.purged'>>();
        return event.notification.creative_id;
      }
      return undefined;
    };
    const event: Event = eventOf(sample('creative.purged'));
    expect(event.kind === 'other' && read(event)).toBe('cr_1');
  });
});
