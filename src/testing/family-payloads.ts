import { oneOf } from '../config/validate.ts';
import type { NotificationFamily, Notifications } from '../events/event.ts';

/** Families besides tasks and reports of which the payload is known; of the wholesale feed one. */
export type SampleFamily = Exclude<NotificationFamily, 'wholesale_feed'> | 'product.updated';

type Payloads = Omit<Notifications, 'wholesale_feed'> & {
  readonly 'product.updated': Notifications['wholesale_feed'];
};

/** An ISO 8601 instant, for every time that a payload has. */
type Samples = { readonly [F in SampleFamily]: (at: string) => Payloads[F] };

const named = (notification_type: SampleFamily): { readonly notification_type: SampleFamily } => ({
  notification_type,
});

const change = { media_buy_id: 'mb_1', package_id: 'pkg_1', creative_id: 'cr_1' };

/** Each names itself as such payloads do: most by `notification_type`, two nowhere. */
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

/** Every family of which there is a sample. */
export const SAMPLE_FAMILIES = Object.keys(SAMPLES) as readonly SampleFamily[];

/** @throws ConfigError for a family of which there is none. */
export function familyPayload(family: SampleFamily, at: string): Payloads[SampleFamily] {
  oneOf('payloads: family', family, SAMPLE_FAMILIES);
  return SAMPLES[family](at);
}
