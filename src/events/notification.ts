/** Text that may be absent: `null` is how many senders write absence. */
type Text = string | null | undefined;

/**
 * Something about a resource that keeps media buys from delivering as booked. What identifies it is always there; here
 * and in the other payloads any other member may be missing in one edition of the protocol, and unknown ones survive.
 */
export interface Impairment {
  readonly impairment_id: string;
  /** e.g. `creative`. */
  readonly resource_type?: Text;
  readonly resource_id?: Text;
  readonly package_ids?: readonly string[] | null | undefined;
  /** Without `from`: it is new. */
  readonly transition?: Transition | null | undefined;
  readonly reason_code?: Text;
  /** ISO 8601. */
  readonly observed_at?: Text;
  readonly reason?: Text;
  /** What would mend it, in words or as an object. */
  readonly remediation?: unknown;
  readonly [member: string]: unknown;
}

/** From which state to which. */
export interface Transition {
  readonly from?: Text;
  readonly to?: Text;
  /** ISO 8601. */
  readonly observed_at?: Text;
  readonly [member: string]: unknown;
}

/** A creative's review or serving status changed. */
export interface CreativeStatusChange {
  readonly creative_id: string;
  readonly transition?: Transition | null | undefined;
  readonly reason_code?: Text;
  readonly reason_detail?: Text;
  /** Who changed it, as text or as an object. */
  readonly initiator?: unknown;
  readonly [member: string]: unknown;
}

/** A creative is gone from the seller's library. */
export interface CreativePurge {
  readonly creative_id: string;
  readonly purge_kind?: Text;
  /** ISO 8601. */
  readonly purged_at?: Text;
  readonly reason_code?: Text;
  readonly reason_detail?: Text;
  /** Who purged it, as text or as an object. */
  readonly initiator?: unknown;
  readonly [member: string]: unknown;
}

/** What a media buy delivers with changed: which creatives, or the indicators of them. */
export interface MediaBuyChange {
  readonly media_buy_id: string;
  readonly package_id?: Text;
  readonly creative_id?: Text;
  readonly change_kind?: Text;
  /** Of `indicators.changed`: what the indicators are of, e.g. `package`. */
  readonly relationship_kind?: Text;
  /** Of `indicators.changed`. */
  readonly changed_indicator_types?: readonly string[] | null | undefined;
  /** ISO 8601. */
  readonly observed_at?: Text;
  readonly [member: string]: unknown;
}

/** The status of the buyer's account with the seller changed. */
export interface AccountStatusChange {
  readonly account_id: string;
  readonly previous_status?: Text;
  /** The account's, e.g. `active`: no task's. */
  readonly status?: Text;
  /** ISO 8601. */
  readonly observed_at?: Text;
  readonly reason_code?: Text;
  readonly reason_detail?: Text;
  /** What the buyer has to do, and until when. */
  readonly setup?: unknown;
  readonly [member: string]: unknown;
}

/** An entry of the account's change log: read on from your own cursor, never from one in here. */
export interface AccountChange {
  /** The notification's id too. */
  readonly change_id: string;
  readonly resource: ChangedResource;
  /** ISO 8601. */
  readonly recorded_at?: Text;
  readonly action?: Text;
  readonly [member: string]: unknown;
}

/** What a change is of. */
export interface ChangedResource {
  /** e.g. `media_buy`. */
  readonly type: string;
  readonly resource_id: string;
  readonly parent_ids?: unknown;
  readonly [member: string]: unknown;
}

/** The buyer's own set-up with an agent changed, e.g. a proof that is void: read it again. */
export interface PrincipalChange {
  readonly agent_url: string;
  /** ISO 8601. */
  readonly changed_at?: Text;
  /** e.g. `proof_invalidated`. */
  readonly reason?: Text;
  readonly destination_id?: Text;
  readonly [member: string]: unknown;
}

/**
 * A report's revision, or an adjustment of one, was published, and is in the ledger: one of the two ids is always there. No
 * figures.
 */
export interface ReportingLedgerChange {
  readonly reporting_revision_id?: Text;
  readonly reporting_adjustment_id?: Text;
  /** `revision_published` or `adjustment_published`. */
  readonly change_kind?: Text;
  /** e.g. `snapshot`, `official`. */
  readonly finality?: Text;
  readonly supersedes_reporting_revision_id?: Text;
  readonly adjusts_reporting_revision_id?: Text;
  readonly [member: string]: unknown;
}

/** How a feed of reports does changed. */
export interface ReportingStatusChange {
  readonly delivery_config_id: string;
  /** e.g. `delayed`. */
  readonly health: string;
  readonly previous_health?: Text;
  readonly delivery_config_version?: string | number | null | undefined;
  /** e.g. `billing`. */
  readonly feed_purpose?: Text;
  readonly reporting_obligation_id?: Text;
  readonly issue_ids?: readonly string[] | null | undefined;
  readonly [member: string]: unknown;
}

/** A revision can be fetched: take it in once for its two ids. */
export interface ReportingDelivery {
  readonly reporting_revision_id: string;
  readonly reporting_materialization_id: string;
  readonly delivery_config_id?: Text;
  readonly delivery_config_version?: string | number | null | undefined;
  readonly feed_purpose?: Text;
  /** `available` or `delivered`. */
  readonly readiness?: Text;
  readonly finality?: Text;
  /** ISO 8601. */
  readonly data_through?: Text;
  readonly [member: string]: unknown;
}

/** What an agent can do changed: ask it again. */
export interface CapabilitiesChange {
  readonly agent_url: string;
  /** ISO 8601. */
  readonly changed_at?: Text;
  readonly capabilities_version?: string | number | null | undefined;
  readonly reason?: Text;
  readonly changed_paths?: readonly string[] | null | undefined;
  readonly [member: string]: unknown;
}

/** A change of the seller's wholesale feed of products and signals. */
export interface WholesaleFeedChange {
  readonly event: WholesaleFeedEvent;
  readonly wholesale_feed_version?: string | number | null | undefined;
  /** Another one than the last that you know: an event was missed. */
  readonly previous_wholesale_feed_version?: string | number | null | undefined;
  /** Whose copy of the feed it concerns, e.g. `public`. */
  readonly cache_scope?: Text;
  readonly [member: string]: unknown;
}

/** One change of a wholesale feed. */
export interface WholesaleFeedEvent {
  readonly event_id: string;
  /** e.g. `product.updated`. */
  readonly event_type?: Text;
  readonly entity_id?: Text;
  readonly entity_type?: Text;
  /** ISO 8601. */
  readonly created_at?: Text;
  /** By `event_type`. */
  readonly payload?: unknown;
  readonly [member: string]: unknown;
}

/** A collection or property list resolves to something else: fetch it again. */
export interface ListChange {
  readonly list_id: string;
  /** ISO 8601. */
  readonly resolved_at?: Text;
  readonly [member: string]: unknown;
}

/** Artifacts that were delivered beside a media buy's ads. */
export interface ArtifactPush {
  readonly media_buy_id: string;
  readonly batch_id?: Text;
  readonly artifacts?: readonly unknown[] | null | undefined;
  readonly [member: string]: unknown;
}

/** Rights were revoked: what was made under them may not be used any more. */
export interface RightsRevocation {
  readonly rights_id: string;
  readonly brand_id?: Text;
  readonly reason?: Text;
  /** ISO 8601. */
  readonly effective_at?: Text;
  /** Absent: all of them. */
  readonly revoked_uses?: readonly unknown[] | null | undefined;
  readonly [member: string]: unknown;
}

/** Payloads by family, as `handlers.notifications` names them. `wholesale_feed` is every family of the feed. */
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

/** Families of which the payload is known. */
export type NotificationFamily = keyof Notifications;

/** What events of the wholesale feed call themselves. */
export type WholesaleFeedFamily = `${'product' | 'signal' | 'wholesale_feed'}.${string}` | 'wholesale_feed';
