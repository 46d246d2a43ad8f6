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
  readonly [member: string]: unknown;
}

/** What a media buy delivers with changed: which creatives, or the indicators of them. */
export interface MediaBuyChange {
  readonly media_buy_id: string;
  readonly package_id?: Text;
  readonly creative_id?: Text;
  readonly change_kind?: Text;
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
  readonly [member: string]: unknown;
}

/** What an agent can do changed: ask it again. */
export interface CapabilitiesChange {
  readonly agent_url: string;
  /** ISO 8601. */
  readonly changed_at?: Text;
  readonly capabilities_version?: string | number | null | undefined;
  readonly reason?: Text;
  readonly [member: string]: unknown;
}

/** A change of the seller's wholesale feed of products and signals. */
export interface WholesaleFeedChange {
  readonly event: WholesaleFeedEvent;
  readonly wholesale_feed_version?: string | number | null | undefined;
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
