// Types of the notification payloads that this package knows (verification.md §7.36).
// Validated by `notification-schemas.ts`, with one schema for each family.

/** Optional text; `null` is allowed, because many senders write it for an absent member. */
type Text = string | null | undefined;

/**
 * The payload of an `impairment` notification: a problem of a resource, e.g. of a creative, that keeps media buys
 * from delivering as booked.
 *
 * Its id is always present. In this and the other payloads every other member may be missing in some edition, and
 * unknown members are kept.
 */
export interface Impairment {
  readonly impairment_id: string;
  /** The type of the resource, e.g. `creative`. */
  readonly resource_type?: Text;
  readonly resource_id?: Text;
  readonly package_ids?: readonly string[] | null | undefined;
  /** The change of state. If it has no `from`, the impairment is new. */
  readonly transition?: Transition | null | undefined;
  readonly reason_code?: Text;
  /** The time of observation, ISO 8601. */
  readonly observed_at?: Text;
  readonly reason?: Text;
  /** The seller's proposal to solve the problem, as text or an object. */
  readonly remediation?: unknown;
  readonly [member: string]: unknown;
}

/** A change of a resource from one state to another, in the payload of a notification. */
export interface Transition {
  readonly from?: Text;
  readonly to?: Text;
  /** The time of observation, ISO 8601. */
  readonly observed_at?: Text;
  readonly [member: string]: unknown;
}

/** The payload of a `creative.status_changed` notification: the review or serving status of a creative changed. */
export interface CreativeStatusChange {
  readonly creative_id: string;
  readonly transition?: Transition | null | undefined;
  readonly reason_code?: Text;
  readonly reason_detail?: Text;
  /** The party that changed the status, as text or an object. */
  readonly initiator?: unknown;
  readonly [member: string]: unknown;
}

/** The payload of a `creative.purged` notification: a creative was removed from the seller's library. */
export interface CreativePurge {
  readonly creative_id: string;
  readonly purge_kind?: Text;
  /** The time of the removal, ISO 8601. */
  readonly purged_at?: Text;
  readonly reason_code?: Text;
  readonly reason_detail?: Text;
  /** The party that removed the creative, as text or an object. */
  readonly initiator?: unknown;
  readonly [member: string]: unknown;
}

/**
 * The payload of a `creative.assignment_changed` or `indicators.changed` notification: the creatives or indicators
 * of a media buy changed.
 */
export interface MediaBuyChange {
  readonly media_buy_id: string;
  readonly package_id?: Text;
  readonly creative_id?: Text;
  readonly change_kind?: Text;
  /** The object that the indicators belong to, e.g. `package`. Used by `indicators.changed` only. */
  readonly relationship_kind?: Text;
  /** The types of the changed indicators. Used by `indicators.changed` only. */
  readonly changed_indicator_types?: readonly string[] | null | undefined;
  /** The time of observation, ISO 8601. */
  readonly observed_at?: Text;
  readonly [member: string]: unknown;
}

/** The payload of an `account.status_changed` notification: the status of your account with the seller changed. */
export interface AccountStatusChange {
  readonly account_id: string;
  readonly previous_status?: Text;
  /** The status of the account, e.g. `active`. It is not a task's status. */
  readonly status?: Text;
  /** The time of observation, ISO 8601. */
  readonly observed_at?: Text;
  readonly reason_code?: Text;
  readonly reason_detail?: Text;
  /** The steps that the buyer has to take, and their deadline. */
  readonly setup?: unknown;
  readonly [member: string]: unknown;
}

/**
 * The payload of an `account.change_recorded` notification: the change log of your account with the seller has a new
 * entry. Read the log from your own cursor, not from one in this payload.
 */
export interface AccountChange {
  /** The id of the change, which is also the notification's id. */
  readonly change_id: string;
  readonly resource: ChangedResource;
  /** The time of the entry, ISO 8601. */
  readonly recorded_at?: Text;
  readonly action?: Text;
  readonly [member: string]: unknown;
}

/** The resource, e.g. a media buy, that an `account.change_recorded` notification is about: its type and id. */
export interface ChangedResource {
  /** The type of the resource, e.g. `media_buy`. */
  readonly type: string;
  readonly resource_id: string;
  readonly parent_ids?: unknown;
  readonly [member: string]: unknown;
}

/**
 * The payload of a `principal.changed` notification: what a seller's agent has stored about you changed, e.g.
 * because a proof became invalid. Ask the agent for it again.
 */
export interface PrincipalChange {
  /** The URL of the agent that sent the notification. */
  readonly agent_url: string;
  /** The time of the change, ISO 8601. */
  readonly changed_at?: Text;
  /** The reason of the change, e.g. `proof_invalidated`. */
  readonly reason?: Text;
  readonly destination_id?: Text;
  readonly [member: string]: unknown;
}

/**
 * The payload of a `reporting.ledger_changed` notification: a revision of a report, or an adjustment, was published in
 * the seller's reporting ledger. At least one of the ids `reporting_revision_id` and `reporting_adjustment_id` is
 * present. The payload has no figures.
 */
export interface ReportingLedgerChange {
  readonly reporting_revision_id?: Text;
  readonly reporting_adjustment_id?: Text;
  /** The kind of change: `revision_published` or `adjustment_published`. */
  readonly change_kind?: Text;
  /** The finality of the figures, e.g. `snapshot` or `official`. */
  readonly finality?: Text;
  readonly supersedes_reporting_revision_id?: Text;
  readonly adjusts_reporting_revision_id?: Text;
  readonly [member: string]: unknown;
}

/**
 * The payload of a `reporting.status_changed` notification: the health of a reporting feed changed, e.g. to
 * `delayed`.
 */
export interface ReportingStatusChange {
  readonly delivery_config_id: string;
  /** The new health, e.g. `delayed`. */
  readonly health: string;
  readonly previous_health?: Text;
  readonly delivery_config_version?: string | number | null | undefined;
  /** The purpose of the feed, e.g. `billing`. */
  readonly feed_purpose?: Text;
  readonly reporting_obligation_id?: Text;
  readonly issue_ids?: readonly string[] | null | undefined;
  readonly [member: string]: unknown;
}

/**
 * The payload of a `reporting.delivery_ready` notification: a revision of a report can be fetched. Import it once for
 * each pair of `reporting_revision_id` and `reporting_materialization_id`.
 */
export interface ReportingDelivery {
  readonly reporting_revision_id: string;
  readonly reporting_materialization_id: string;
  readonly delivery_config_id?: Text;
  readonly delivery_config_version?: string | number | null | undefined;
  readonly feed_purpose?: Text;
  /** The readiness of the revision: `available` or `delivered`. */
  readonly readiness?: Text;
  readonly finality?: Text;
  /** The time up to which there is data, ISO 8601. */
  readonly data_through?: Text;
  readonly [member: string]: unknown;
}

/**
 * The payload of a `capabilities.changed` notification: an agent's capabilities changed. Ask the agent for them
 * again.
 */
export interface CapabilitiesChange {
  readonly agent_url: string;
  /** The time of the change, ISO 8601. */
  readonly changed_at?: Text;
  readonly capabilities_version?: string | number | null | undefined;
  readonly reason?: Text;
  readonly changed_paths?: readonly string[] | null | undefined;
  readonly [member: string]: unknown;
}

/**
 * The payload of a notification about the seller's wholesale feed of products and signals, e.g. `product.updated`:
 * the change, and the feed's new version.
 */
export interface WholesaleFeedChange {
  readonly event: WholesaleFeedEvent;
  readonly wholesale_feed_version?: string | number | null | undefined;
  /** The version before this change. If it differs from the last version that you know, you missed an event. */
  readonly previous_wholesale_feed_version?: string | number | null | undefined;
  /** The copy of the feed that the change concerns, e.g. `public`. */
  readonly cache_scope?: Text;
  readonly [member: string]: unknown;
}

/** The change that a wholesale feed notification reports: its id, its type, and the changed product or signal. */
export interface WholesaleFeedEvent {
  readonly event_id: string;
  /** The type of change, e.g. `product.updated`. */
  readonly event_type?: Text;
  readonly entity_id?: Text;
  readonly entity_type?: Text;
  /** The time of the change, ISO 8601. */
  readonly created_at?: Text;
  /** The changed data; its shape depends on `event_type`. */
  readonly payload?: unknown;
  readonly [member: string]: unknown;
}

/**
 * The payload of a `collection_list_changed` or `property_list_changed` notification: the list has other members
 * now. Fetch it again.
 */
export interface ListChange {
  readonly list_id: string;
  /** The time at which the members of the list were determined, ISO 8601. */
  readonly resolved_at?: Text;
  readonly [member: string]: unknown;
}

/** The payload of an `artifact_push` notification: artifacts that were served beside a media buy's ads. */
export interface ArtifactPush {
  readonly media_buy_id: string;
  readonly batch_id?: Text;
  readonly artifacts?: readonly unknown[] | null | undefined;
  readonly [member: string]: unknown;
}

/**
 * The payload of a `revocation-notification`: rights were revoked, and content that was made under them may no
 * longer be used.
 */
export interface RightsRevocation {
  readonly rights_id: string;
  readonly brand_id?: Text;
  readonly reason?: Text;
  /** The time from which the revocation holds, ISO 8601. */
  readonly effective_at?: Text;
  /** The revoked uses. Absent: all uses. */
  readonly revoked_uses?: readonly unknown[] | null | undefined;
  readonly [member: string]: unknown;
}

/**
 * The types of notification payloads that this package knows, by family, e.g. `impairment: Impairment`. The names
 * are those of `handlers.notifications`. `wholesale_feed` stands for every family of that feed.
 */
export interface Notifications {
  readonly impairment: Impairment;
  readonly 'creative.status_changed': CreativeStatusChange;
  readonly 'creative.purged': CreativePurge;
  readonly 'creative.assignment_changed': MediaBuyChange;
  readonly 'indicators.changed': MediaBuyChange;
  readonly 'account.status_changed': AccountStatusChange;
  readonly 'account.change_recorded': AccountChange;
  readonly 'principal.changed': PrincipalChange;
  readonly 'reporting.ledger_changed': ReportingLedgerChange;
  readonly 'reporting.status_changed': ReportingStatusChange;
  readonly 'reporting.delivery_ready': ReportingDelivery;
  readonly 'capabilities.changed': CapabilitiesChange;
  readonly wholesale_feed: WholesaleFeedChange;
  readonly collection_list_changed: ListChange;
  readonly property_list_changed: ListChange;
  readonly artifact_push: ArtifactPush;
  readonly 'revocation-notification': RightsRevocation;
}

/**
 * The name of a family (kind) of notifications whose payload this package types, e.g. `impairment`. Notifications of
 * other families reach the handler `other`, untyped, unless you have a handler of their name.
 */
export type NotificationFamily = keyof Notifications;

/**
 * The family names of notifications about the seller's wholesale feed of products and signals: `wholesale_feed`, and
 * those that begin with `product.`, `signal.` or `wholesale_feed.`.
 */
export type WholesaleFeedFamily = `${'product' | 'signal' | 'wholesale_feed'}.${string}` | 'wholesale_feed';
