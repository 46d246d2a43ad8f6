import { randomUUID } from 'node:crypto';
import type { Entry } from './entries.ts';

/** Of whom an event is. */
export interface Owner {
  /** Absent: of the agent. */
  readonly accountId?: string;
  readonly agentUrl: string;
}

const NOW = (): string => new Date().toISOString();

/** Members beyond the common ones, by event type, or by what stands before its dot. */
const FAMILIES: Readonly<Record<string, (type: string, id: string) => object>> = {
  'creative.status_changed': () => ({
    creative_id: 'creative-1',
    transition: { from: 'pending_review', to: 'approved', observed_at: NOW() },
    reason_code: 'review_passed',
    initiator: 'seller',
  }),
  'creative.purged': () => ({
    creative_id: 'creative-1',
    purge_kind: 'soft',
    purged_at: NOW(),
    reason_code: 'unused',
    initiator: 'system',
  }),
  'creative.assignment_changed': () => ({
    media_buy_id: 'buy-1',
    package_id: 'package-1',
    creative_id: 'creative-1',
    change_kind: 'assigned',
    observed_at: NOW(),
  }),
  'indicators.changed': () => ({
    relationship_kind: 'media_buy',
    media_buy_id: 'buy-1',
    change_kind: 'asserted',
    changed_indicator_types: ['pacing'],
    observed_at: NOW(),
  }),
  'account.status_changed': () => ({
    previous_status: 'active',
    status: 'suspended',
    observed_at: NOW(),
    reason_code: 'credit',
  }),
  'capabilities.changed': () => ({
    changed_at: NOW(),
    reason: 'deploy',
    capabilities_version: `v-${randomUUID()}`,
  }),
  'wholesale_feed.bulk_change': (type, id) => ({
    wholesale_feed_version: '8',
    previous_wholesale_feed_version: '7',
    cache_scope: 'account',
    event: {
      event_id: id,
      event_type: type,
      entity_type: 'product',
      entity_id: 'feed',
      created_at: NOW(),
      payload: {
        applies_to: { scope: 'public' },
        summary: 'much',
        affected_entity_type: 'product',
        affected_count: 9,
        recommendation: 'read',
      },
    },
  }),
};

const feedEvent = (type: string, id: string): object => {
  const [entity = ''] = type.split('.');
  return {
    wholesale_feed_version: '8',
    previous_wholesale_feed_version: '7',
    cache_scope: 'account',
    event: {
      event_id: id,
      event_type: type,
      entity_type: entity,
      entity_id: `${entity}-1`,
      created_at: NOW(),
      payload: { applies_to: { scope: 'public' }, [`${entity}_id`]: `${entity}-1` },
    },
  };
};

/** An event of a type, for an entry. */
export function eventOf(type: string, { subscriber_id }: Entry, { accountId, agentUrl }: Owner): object {
  const id = randomUUID();
  const more = (FAMILIES[type] ?? feedEvent)(type, id);
  return {
    idempotency_key: randomUUID(),
    notification_id: id,
    notification_type: type,
    fired_at: NOW(),
    subscriber_id,
    ...(accountId === undefined ? { agent_url: agentUrl } : { account_id: accountId }),
    ...more,
  };
}
