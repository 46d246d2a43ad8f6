// Schemas of notification payloads, by family (verification.md §7.36, §7.37).
// Called by `assemble.ts`; public for users of `proto-webhooks/events`.

import * as z from 'zod/mini';
import type { NotificationFamily, Notifications } from './event.ts';

/** Members that identify a payload are required. Others are optional; if present, they must have the right type. */
const id = z.string().check(z.minLength(1));
const text = z.nullish(z.string());
const version = z.nullish(z.union([z.string(), z.number()]));
const list = z.nullish(z.array(z.unknown()));
const texts = z.nullish(z.array(z.string()));
const transition = z.nullish(z.looseObject({ from: text, to: text, observed_at: text }));

const mediaBuyChange = z.looseObject({
  media_buy_id: id,
  package_id: text,
  creative_id: text,
  change_kind: text,
  relationship_kind: text,
  changed_indicator_types: texts,
  observed_at: text,
});
const listChange = z.looseObject({ list_id: id, resolved_at: text });

/**
 * Validates the payloads of notifications: one zod schema for each family, e.g. `notificationSchemas.impairment`.
 * Unknown members are kept, and `null` counts as absent.
 */
export const notificationSchemas: { readonly [F in NotificationFamily]: z.ZodMiniType<Notifications[F]> } = {
  impairment: z.looseObject({
    impairment_id: id,
    resource_type: text,
    resource_id: text,
    package_ids: texts,
    transition,
    reason_code: text,
    observed_at: text,
    reason: text,
  }),
  'creative.status_changed': z.looseObject({
    creative_id: id,
    transition,
    reason_code: text,
    reason_detail: text,
  }),
  'creative.purged': z.looseObject({
    creative_id: id,
    purge_kind: text,
    purged_at: text,
    reason_code: text,
    reason_detail: text,
  }),
  'creative.assignment_changed': mediaBuyChange,
  'indicators.changed': mediaBuyChange,
  'account.status_changed': z.looseObject({
    account_id: id,
    previous_status: text,
    status: text,
    observed_at: text,
    reason_code: text,
    reason_detail: text,
  }),
  'account.change_recorded': z.looseObject({
    change_id: id,
    resource: z.looseObject({ type: id, resource_id: id }),
    recorded_at: text,
    action: text,
  }),
  'principal.changed': z.looseObject({ agent_url: id, changed_at: text, reason: text, destination_id: text }),
  'reporting.ledger_changed': z
    .looseObject({
      reporting_revision_id: text,
      reporting_adjustment_id: text,
      change_kind: text,
      finality: text,
      supersedes_reporting_revision_id: text,
      adjusts_reporting_revision_id: text,
    })
    .check(z.refine((change) => !!change.reporting_revision_id || !!change.reporting_adjustment_id)),
  'reporting.status_changed': z.looseObject({
    delivery_config_id: id,
    health: id,
    previous_health: text,
    delivery_config_version: version,
    feed_purpose: text,
    reporting_obligation_id: text,
    issue_ids: texts,
  }),
  'reporting.delivery_ready': z.looseObject({
    reporting_revision_id: id,
    reporting_materialization_id: id,
    delivery_config_id: text,
    delivery_config_version: version,
    feed_purpose: text,
    readiness: text,
    finality: text,
    data_through: text,
  }),
  'capabilities.changed': z.looseObject({
    agent_url: id,
    changed_at: text,
    capabilities_version: version,
    reason: text,
    changed_paths: texts,
  }),
  wholesale_feed: z.looseObject({
    event: z.looseObject({
      event_id: id,
      event_type: text,
      entity_id: text,
      entity_type: text,
      created_at: text,
    }),
    wholesale_feed_version: version,
    previous_wholesale_feed_version: version,
    cache_scope: text,
  }),
  collection_list_changed: listChange,
  property_list_changed: listChange,
  artifact_push: z.looseObject({ media_buy_id: id, batch_id: text, artifacts: list }),
  'revocation-notification': z.looseObject({
    rights_id: id,
    brand_id: text,
    reason: text,
    effective_at: text,
    revoked_uses: list,
  }),
};
