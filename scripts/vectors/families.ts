import { type Json, without } from './kit.ts';
import { envelope, reportResult } from './sign.ts';

/** A body that is taken: what kind of event it gives, and what that calls itself. */
interface Family {
  readonly id: string;
  readonly payload: Json;
  readonly expected_event_kind: 'task' | 'delivery-report' | 'other';
  readonly expected_family?: string | null;
  readonly expected_warnings: readonly string[];
}

const AT = '2026-09-21T14:13:00Z';
const keyOf = (name: string): unknown => envelope(name)['idempotency_key'];
const keyed = (id: string, members: Json): Json => ({ idempotency_key: keyOf(`family ${id}`), ...members });

function family(id: string, name: string | null, members: Json, warnings: readonly string[] = []): Family {
  return {
    id: `family: ${id}`,
    payload: keyed(id, members),
    expected_event_kind: 'other',
    expected_family: name,
    expected_warnings: warnings,
  };
}

const CHANGE = { media_buy_id: 'mb_1', package_id: 'pkg_1', creative_id: 'cr_1', change_kind: 'assigned' };

/** Members by family, as `notification_type` names it. */
const NAMED: Readonly<Record<string, Json>> = {
  impairment: {
    impairment_id: 'imp_1',
    resource_type: 'creative',
    resource_id: 'cr_1',
    package_ids: ['pkg_1'],
    transition: { to: 'blocked' },
    reason_code: 'BRAND_SAFETY',
    observed_at: AT,
  },
  'creative.status_changed': {
    creative_id: 'cr_1',
    transition: { from: 'pending_review', to: 'approved', observed_at: AT },
    reason_code: 'REVIEW_PASSED',
    initiator: 'seller',
  },
  'creative.purged': { creative_id: 'cr_1', purge_kind: 'expired', purged_at: AT },
  'creative.assignment_changed': { ...CHANGE, observed_at: AT },
  'indicators.changed': { ...CHANGE, observed_at: AT },
  'account.status_changed': {
    account_id: 'acc_1',
    previous_status: 'paused',
    status: 'active',
    observed_at: AT,
    reason_code: 'APPROVED',
  },
  'capabilities.changed': {
    agent_url: 'https://seller.example/mcp',
    changed_at: AT,
    capabilities_version: '2',
    reason: 'new_operation',
  },
  'account.change_recorded': {
    change_id: 'change_1',
    resource: { type: 'media_buy', resource_id: 'mb_1' },
    recorded_at: AT,
    action: 'updated',
  },
  'principal.changed': {
    agent_url: 'https://seller.example/mcp',
    changed_at: AT,
    reason: 'proof_invalidated',
  },
  'reporting.ledger_changed': {
    reporting_revision_id: 'rev_1',
    change_kind: 'revision_published',
    finality: 'official',
  },
  'reporting.status_changed': {
    delivery_config_id: 'config_1',
    health: 'delayed',
    feed_purpose: 'billing',
    issue_ids: ['issue_1'],
  },
  'reporting.delivery_ready': {
    reporting_revision_id: 'rev_1',
    reporting_materialization_id: 'mat_1',
    readiness: 'delivered',
    data_through: null,
  },
  collection_list_changed: { list_id: 'list_1', resolved_at: AT },
  property_list_changed: { list_id: 'list_1', resolved_at: AT },
};

const feed = (event_type: string): Json => ({
  wholesale_feed_version: '7',
  cache_scope: 'public',
  event: { event_id: 'event_1', event_type, entity_id: 'prod_1', payload: {} },
});

const TASKS: readonly Family[] = [
  {
    id: 'a name beside task_id and status: a task',
    payload: envelope('named task', { event: 'task.completed' }),
    expected_event_kind: 'task',
    expected_warnings: [],
  },
  {
    id: 'a name beside the whole envelope of a report: a report',
    payload: envelope('named report', {
      notification_type: 'window_update',
      task_type: 'media_buy_delivery',
      result: reportResult('window_update', { partial_data: true, unavailable_count: 1 }),
    }),
    expected_event_kind: 'delivery-report',
    expected_warnings: [],
  },
  {
    id: 'tool: auth-required',
    payload: envelope('auth-required', { status: 'auth-required', result: {} }),
    expected_event_kind: 'task',
    expected_warnings: [],
  },
];

const IMPAIRED: Family = {
  id: 'family: impairment, beside the health of its media buy in the result of a task envelope',
  payload: envelope('impaired', {
    result: { impairment: { impairment_id: 'imp_1', reason_code: 'BRAND_SAFETY' }, health: 'impaired' },
  }),
  expected_event_kind: 'other',
  expected_family: 'impairment',
  expected_warnings: [],
};

export const FAMILIES: readonly Family[] = [
  IMPAIRED,
  ...Object.entries(NAMED).map(([name, members]) =>
    family(name, name, { notification_type: name, vendor: { a: null }, ...members }),
  ),
  ...Object.entries(NAMED).map(([name, members]) =>
    family(
      `${name}, without what identifies it`,
      name,
      { event_type: name, ...without(members, Object.keys(members)[0] ?? '') },
      ['invalid_notification'],
    ),
  ),
  ...['product.updated', 'signal.removed', 'wholesale_feed.bulk_change'].map((name) =>
    family(name, name, feed(name)),
  ),
  family('artifact push, by its shape', 'artifact_push', {
    media_buy_id: 'mb_1',
    batch_id: 'batch_1',
    artifacts: [{ artifact: { artifact_id: 'art_1' } }],
  }),
  family('rights revocation, by its shape', 'revocation-notification', {
    rights_id: 'rights_1',
    brand_id: 'brand_1',
    reason: 'contract ended',
    effective_at: AT,
    revoked_uses: ['likeness'],
  }),
  family('another spelling', 'revocation-notification', {
    event: 'rights.revocation_notification',
    rights_id: 'rights_1',
  }),
  family('an impairment with another type', 'impairment', { event: 'impairment', impairment_id: 5 }, [
    'invalid_notification',
  ]),
  ...['notification_type', 'event', 'event_type'].map((member) =>
    family(`any name, by ${member}`, 'Vendor.Thing', {
      [member]: 'Vendor.Thing',
      task_id: 't',
      status: 'paused',
    }),
  ),
  ...['constructor', 'x'.repeat(128)].map((name) => family(`the name ${name}`, name, { event_type: name })),
  family('a name of 129 characters', null, { event_type: 'x'.repeat(129) }),
  family('a name that cannot be printed', null, { event_type: 'x\ny' }),
  family('no name', null, { anything: { at: 'all' } }),
  ...TASKS,
];

/** Refused with 400. */
export const BROKEN: readonly (readonly [id: string, payload: unknown, code: string])[] = [
  ['family without a key', { event_type: 'creative.purged', creative_id: 'c' }, 'missing_idempotency_key'],
  [
    'family with a bad key',
    { idempotency_key: 'short', event_type: 'creative.purged', creative_id: 'c' },
    'invalid_envelope',
  ],
  [
    'bare window_update',
    keyed('bare window', { notification_type: 'window_update' }),
    'missing_envelope_fields',
  ],
  [
    'bare report that names itself nothing',
    keyed('bare nameless', { media_buy_deliveries: [] }),
    'missing_envelope_fields',
  ],
  ...['task_id', 'status', 'result'].map(
    (member) =>
      [
        `no name, and ${member} alone`,
        keyed(`alone ${member}`, { [member]: 'completed' }),
        'missing_envelope_fields',
      ] as const,
  ),
  [
    'agent: a wrapper in a task that has its status',
    { idempotency_key: keyOf('wrapped'), task: { id: 't', status: { state: 'completed' }, message: {} } },
    'invalid_envelope',
  ],
];
