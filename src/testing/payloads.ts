// Builds valid bodies of every status, report and notification family. The entry `proto-webhooks/testing` exports
// `samplePayloads`; the fake seller, dev, the probe and `send` send its bodies.
import { oneOf } from '../config/validate.ts';
import type { DeliveryReport, NotificationFamily, Notifications, TaskStatus } from '../events/event.ts';
import type { AgentTask, AgentTaskStatusUpdate, ToolEnvelope } from '../events/wire.ts';

/**
 * The notification families of which `samplePayloads` and a fake seller can build a sample (`payloads.family`). The
 * only notification of the family `wholesale_feed` is `product.updated`.
 */
export type SampleFamily = Exclude<NotificationFamily, 'wholesale_feed'> | 'product.updated';

type Payloads = Omit<Notifications, 'wholesale_feed'> & {
  readonly 'product.updated': Notifications['wholesale_feed'];
};

/** Functions that make a sample of each family. `at` is an ISO 8601 instant, used for every time in the sample. */
type Samples = { readonly [F in SampleFamily]: (at: string) => Payloads[F] };

const named = (notification_type: SampleFamily): { readonly notification_type: SampleFamily } => ({
  notification_type,
});

const change = { media_buy_id: 'mb_1', package_id: 'pkg_1', creative_id: 'cr_1' };

/**
 * The samples. Most name their family in `notification_type`, three in `event`, and two nowhere, like real
 * notifications of these families.
 */
const SAMPLES: Samples = {
  impairment: (at) => ({
    ...named('impairment'),
    impairment_id: 'imp_1',
    resource_type: 'creative',
    resource_id: 'cr_1',
    package_ids: ['pkg_1'],
    transition: { from: 'active', to: 'blocked' },
    reason_code: 'BRAND_SAFETY',
    observed_at: at,
  }),
  'creative.status_changed': (at) => ({
    ...named('creative.status_changed'),
    creative_id: 'cr_1',
    transition: { from: 'pending_review', to: 'approved', observed_at: at },
    reason_code: 'REVIEW_PASSED',
    initiator: 'seller',
  }),
  'creative.purged': (at) => ({
    ...named('creative.purged'),
    creative_id: 'cr_1',
    purge_kind: 'expired',
    purged_at: at,
  }),
  'creative.assignment_changed': (at) => ({
    ...named('creative.assignment_changed'),
    ...change,
    change_kind: 'assigned',
    observed_at: at,
  }),
  'indicators.changed': (at) => ({
    ...named('indicators.changed'),
    ...change,
    change_kind: 'updated',
    observed_at: at,
  }),
  'account.status_changed': (at) => ({
    ...named('account.status_changed'),
    account_id: 'acc_1',
    previous_status: 'pending_approval',
    status: 'active',
    observed_at: at,
    reason_code: 'APPROVED',
  }),
  'capabilities.changed': (at) => ({
    ...named('capabilities.changed'),
    agent_url: 'https://seller.example/mcp',
    changed_at: at,
    capabilities_version: '2',
    reason: 'new_operation',
  }),
  'account.change_recorded': (at) => ({
    ...named('account.change_recorded'),
    change_id: 'change_1',
    resource: { type: 'media_buy', resource_id: 'mb_1' },
    recorded_at: at,
    action: 'updated',
  }),
  'principal.changed': (at) => ({
    ...named('principal.changed'),
    agent_url: 'https://seller.example/mcp',
    changed_at: at,
    reason: 'proof_invalidated',
    destination_id: 'dest_1',
  }),
  'reporting.ledger_changed': () => ({
    ...named('reporting.ledger_changed'),
    reporting_revision_id: 'rev_2',
    change_kind: 'revision_published',
    finality: 'official',
    supersedes_reporting_revision_id: 'rev_1',
  }),
  'reporting.status_changed': () => ({
    ...named('reporting.status_changed'),
    delivery_config_id: 'config_1',
    health: 'delayed',
    previous_health: 'healthy',
    delivery_config_version: 1,
    feed_purpose: 'billing',
    reporting_obligation_id: 'obligation_1',
    issue_ids: ['issue_1'],
  }),
  'reporting.delivery_ready': (at) => ({
    ...named('reporting.delivery_ready'),
    reporting_revision_id: 'rev_1',
    reporting_materialization_id: 'mat_1',
    delivery_config_id: 'config_1',
    delivery_config_version: 1,
    feed_purpose: 'billing',
    readiness: 'delivered',
    finality: 'official',
    data_through: at,
  }),
  'product.updated': () => ({
    wholesale_feed_version: '7',
    cache_scope: 'public',
    event: {
      event_id: 'event_1',
      event_type: 'product.updated',
      entity_id: 'prod_1',
      payload: { name: 'Homepage' },
    },
  }),
  collection_list_changed: (at) => ({ event: 'collection_list_changed', list_id: 'list_1', resolved_at: at }),
  property_list_changed: (at) => ({ event: 'property_list_changed', list_id: 'list_1', resolved_at: at }),
  artifact_push: () => ({
    media_buy_id: 'mb_1',
    batch_id: 'batch_1',
    artifacts: [{ artifact: { artifact_id: 'art_1', url: 'https://publisher.example/article' } }],
  }),
  'revocation-notification': (at) => ({
    rights_id: 'rights_1',
    brand_id: 'brand_1',
    reason: 'contract ended',
    effective_at: at,
    revoked_uses: ['likeness'],
  }),
};

/** The families that have a sample. */
export const SAMPLE_FAMILIES = Object.keys(SAMPLES) as readonly SampleFamily[];

/** Makes the sample of a family. @throws ConfigError for a family that has none */
function familyPayload(family: SampleFamily, at: string): Payloads[SampleFamily] {
  oneOf('payloads: family', family, SAMPLE_FAMILIES);
  return SAMPLES[family](at);
}

/** The members that are added to a sample payload of `samplePayloads`, or replace its own. */
export type Members = Readonly<Record<string, unknown>>;

/**
 * Builds valid webhook bodies of every kind, for tests of your handlers. Each call makes a new `idempotency_key`, and
 * so a new event. `samplePayloads` returns such a builder, and a fake seller has one.
 */
export interface SamplePayloads {
  /** Builds an envelope of the tool transport. `overrides` replace members at the top level. */
  tool(status: TaskStatus, overrides?: Members): ToolEnvelope & Members;
  /** Builds a body of the agent transport: a `Task` for final states, a `TaskStatusUpdateEvent` for interim ones. */
  agent(status: TaskStatus, overrides?: Members): (AgentTask | AgentTaskStatusUpdate) & Members;
  /**
   * Builds a delivery report in an envelope of the tool transport. `report` replaces members of the result, and
   * `overrides` replaces members of the envelope.
   */
  report(
    type?: DeliveryReport['notification_type'],
    report?: Members,
    overrides?: Members,
  ): ToolEnvelope & Members;
  /** Builds a notification of a family, with all known members and a `notification_id`. */
  family(name: SampleFamily, overrides?: Members): Members;
}

/** Options of `samplePayloads`: the clock, and the source of ids. */
export interface SamplePayloadOptions {
  /** Returns the current time, Unix ms, for `timestamp`. Default: `Date.now`. */
  readonly now?: () => number;
  /** Returns a new id, for idempotency keys and all other ids. Default: a random UUID. */
  readonly newId?: () => string;
}

interface Shape {
  readonly final: boolean;
  /** The member `result` of a sample with this status (contract.md §6.2). */
  readonly result: Members;
}

const SHAPES: Readonly<Record<TaskStatus, Shape>> = {
  submitted: { final: false, result: {} },
  working: { final: false, result: { percentage: 40, current_step: 'reserving inventory', total_steps: 5 } },
  'input-required': { final: false, result: { reason: 'APPROVAL_REQUIRED', validation_errors: [] } },
  'auth-required': { final: false, result: { reason: 'AUTH_REQUIRED' } },
  completed: { final: true, result: { media_buy_id: 'mb_1', packages: [{ package_id: 'pkg_1' }] } },
  failed: {
    final: true,
    result: { errors: [{ code: 'BUDGET_TOO_LOW', message: 'The budget is too low.' }] },
  },
  canceled: { final: true, result: { reason: 'canceled by the buyer' } },
  rejected: { final: true, result: { reason: 'rejected by the publisher' } },
};

const STATUSES = Object.keys(SHAPES) as TaskStatus[];

/**
 * Returns the parts of a sample that depend on its status.
 * @throws ConfigError for a status that the contract does not have. A caller can set any status by `overrides`.
 */
function shapeOf(status: TaskStatus): Shape {
  oneOf('payloads: status', status, STATUSES);
  return SHAPES[status];
}

const HOUR_MS = 3_600_000;

function sampleReport(type: DeliveryReport['notification_type'], at: number): DeliveryReport {
  return {
    notification_type: type,
    sequence_number: 1,
    reporting_period: { start: new Date(at - HOUR_MS).toISOString(), end: new Date(at).toISOString() },
    currency: 'USD',
    media_buy_deliveries: [
      {
        media_buy_id: 'mb_1',
        status: 'active',
        totals: { impressions: 125_000, spend: 562.5, clicks: 312 },
        by_package: [],
      },
    ],
  };
}

interface Made {
  readonly id: string;
  readonly key: string;
  readonly timestamp: string;
}

function agentSample(status: TaskStatus, { id, key, timestamp }: Made): AgentTask | AgentTaskStatusUpdate {
  const { final, result } = shapeOf(status);
  const parts = [
    { kind: 'text', text: `Task ${status}` },
    { kind: 'data', data: result },
  ];
  const common = {
    contextId: `ctx_${id}`,
    idempotency_key: key,
    metadata: { operation_id: `op_${id}`, task_type: 'create_media_buy' },
  };
  if (final) {
    const artifacts = [{ artifactId: `artifact_${id}`, parts }];
    return { kind: 'task', id: `task_${id}`, ...common, status: { state: status, timestamp }, artifacts };
  }
  const message = { kind: 'message', messageId: `message_${id}`, role: 'agent', parts };
  return {
    kind: 'status-update',
    taskId: `task_${id}`,
    ...common,
    status: { state: status, timestamp, message },
    final,
  };
}

/**
 * Creates a builder of valid webhook bodies of every kind, for tests of your handlers. `deliver` of a fake seller
 * sends them.
 *
 * @example
 * ```ts
 * import { samplePayloads } from 'proto-webhooks/testing';
 *
 * const payloads = samplePayloads();
 * console.log(payloads.tool('completed', { task_id: 'task-1' }));
 * console.log(payloads.report('final'));
 * ```
 */
export function samplePayloads(options: SamplePayloadOptions = {}): SamplePayloads {
  const { now = Date.now, newId = () => crypto.randomUUID() } = options;
  const made = (): Made => ({ id: newId(), key: newId(), timestamp: new Date(now()).toISOString() });
  const envelope = (status: string, taskType: string, result: Members): ToolEnvelope => {
    const { id, key, timestamp } = made();
    return {
      idempotency_key: key,
      task_id: `task_${id}`,
      operation_id: `op_${id}`,
      task_type: taskType,
      domain: 'media-buy',
      status,
      timestamp,
      message: `Task ${status}`,
      result,
    };
  };
  return {
    tool: (status, overrides) => ({
      ...envelope(status, 'create_media_buy', shapeOf(status).result),
      ...overrides,
    }),
    agent: (status, overrides) => ({ ...agentSample(status, made()), ...overrides }),
    report: (type = 'scheduled', report, overrides) => ({
      ...envelope('completed', 'media_buy_delivery', { ...sampleReport(type, now()), ...report }),
      ...overrides,
    }),
    family: (name, overrides) => {
      const { id, key, timestamp } = made();
      return {
        idempotency_key: key,
        notification_id: `notification_${id}`,
        timestamp,
        ...familyPayload(name, timestamp),
        ...overrides,
      };
    },
  };
}
