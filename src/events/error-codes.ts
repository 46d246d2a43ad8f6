// The protocol's error codes with their recovery (calls.md §2.2).
// Used by `error-object.ts` and by the errors of calls to sellers.

/**
 * The way in which you can recover from an error that a seller reports. `transient`: send the same call again.
 * `correctable`: change the request. `terminal`: ask a person.
 */
export type Recovery = 'transient' | 'correctable' | 'terminal';

/** The protocol's codes by recovery (calls.md §2.2), in the order of the editions that introduced them. */
const CODES = {
  terminal: [
    'AUTH_INVALID',
    'CONFIGURATION_ERROR',
    'ACCOUNT_NOT_FOUND',
    'ACCOUNT_PAYMENT_REQUIRED',
    'ACCOUNT_SUSPENDED',
    'BUDGET_EXHAUSTED',
    'BILLING_OUT_OF_BAND',
    'AGENT_SUSPENDED',
    'AGENT_BLOCKED',
    'CREDENTIAL_IN_ARGS',
    // From contract.md §3.8. The protocol's own name for this code is PERMISSION_DENIED.
    'INSUFFICIENT_PERMISSIONS',
  ],
  transient: [
    'RATE_LIMITED',
    'SERVICE_UNAVAILABLE',
    'CONFLICT',
    'IDEMPOTENCY_IN_FLIGHT',
    'CAMPAIGN_SUSPENDED',
    'GOVERNANCE_UNAVAILABLE',
    'STALE_RESPONSE',
    'SIGNED_RESPONSE_ENVELOPE_EXPIRED',
  ],
  correctable: [
    'PRODUCT_NOT_FOUND',
    'MEDIA_BUY_NOT_FOUND',
    'PACKAGE_NOT_FOUND',
    'CREATIVE_NOT_FOUND',
    'SIGNAL_NOT_FOUND',
    'SESSION_NOT_FOUND',
    'PLAN_NOT_FOUND',
    'REFERENCE_NOT_FOUND',
    'INVALID_REQUEST',
    'INVALID_STATE',
    'VALIDATION_ERROR',
    'VERSION_UNSUPPORTED',
    'UNSUPPORTED_FEATURE',
    'POLICY_VIOLATION',
    'PERMISSION_DENIED',
    'AUTH_REQUIRED',
    'IDEMPOTENCY_CONFLICT',
    'IDEMPOTENCY_EXPIRED',
    'PRODUCT_UNAVAILABLE',
    'PRODUCT_EXPIRED',
    'PROPOSAL_EXPIRED',
    'PROPOSAL_NOT_COMMITTED',
    'BUDGET_TOO_LOW',
    'BUDGET_EXCEEDED',
    'AUDIENCE_TOO_SMALL',
    'ACCOUNT_SETUP_REQUIRED',
    'ACCOUNT_AMBIGUOUS',
    'COMPLIANCE_UNSATISFIED',
    'GOVERNANCE_DENIED',
    'CREATIVE_REJECTED',
    'CREATIVE_DEADLINE_EXCEEDED',
    'NOT_CANCELLABLE',
    'SESSION_TERMINATED',
    'IO_REQUIRED',
    'TERMS_REJECTED',
    'REQUOTE_REQUIRED',
    // The codes from here on were added in edition 3.1 of the protocol.
    'PROPOSAL_NOT_FOUND',
    'AUTH_MISSING',
    'AUTHORIZATION_REQUIRED',
    'SCOPE_INSUFFICIENT',
    'READ_ONLY_SCOPE',
    'FIELD_NOT_PERMITTED',
    'ACTION_NOT_ALLOWED',
    'BUDGET_CAP_REACHED',
    'CREATIVE_VALUE_NOT_ALLOWED',
    'CREATIVE_INACCESSIBLE',
    'UNPRICEABLE_OUTPUT',
    'UNSUPPORTED_GRANULARITY',
    'UNSUPPORTED_PROVISIONING',
    'SIGNAL_TARGETING_INCOMPATIBLE',
    'MULTI_FINALIZE_UNSUPPORTED',
    'PROVENANCE_REQUIRED',
    'PROVENANCE_DIGITAL_SOURCE_TYPE_MISSING',
    'PROVENANCE_DISCLOSURE_MISSING',
    'PROVENANCE_EMBEDDED_MISSING',
    'PROVENANCE_VERIFIER_NOT_ACCEPTED',
    'PROVENANCE_CLAIM_CONTRADICTED',
    'EVALUATOR_AGENT_NOT_ACCEPTED',
    'BILLING_NOT_SUPPORTED',
    'BILLING_NOT_PERMITTED_FOR_AGENT',
    'PAYMENT_TERMS_NOT_SUPPORTED',
    'BRAND_REQUIRED',
    'PRIVATE_FIELD_IN_PUBLIC_PLACEMENT',
    'FORMAT_PROJECTION_FAILED',
    'FORMAT_DECLARATION_DIVERGENT',
    'FORMAT_DECLARATION_V1_AMBIGUOUS',
    'FORMAT_OPTION_UNRESOLVED',
    'FORMAT_DECLARATION_V1_LOSSY_MULTI_SIZE',
    'FORMAT_NOT_SUPPORTED',
    'PIXEL_TRACKER_LOSSY_DOWNGRADE',
    'PIXEL_TRACKER_UPGRADE_INFERRED',
    'FEED_FETCH_FAILED',
    'INVALID_FEED_FORMAT',
    'ITEM_VALIDATION_FAILED',
    'CATALOG_LIMIT_EXCEEDED',
    // The codes from here on were added in edition 3.2 of the protocol.
    'ACCOUNT_REQUIRED',
    'ACCOUNT_MOVED',
    'ACCOUNT_IDENTITY_CONFLICT',
    'CREATIVE_LOCALE_NOT_ACCEPTED',
    'PROVENANCE_SYNTHETIC_DEPICTION_MISSING',
    'FORMAT_SHAPE_PROMOTED',
    'PLACE_TARGET_UNAVAILABLE',
    'BIDDING_PLACEMENT_CONFLICT',
    'AMBIGUOUS_BIDDING_POLICY',
    'CONFLICTING_SELECTORS',
    'INVALID_PRICING_OPTION',
    'INVALID_USAGE_DATA',
    'SIGNED_RESPONSE_REQUEST_HASH_MISMATCH',
    'SIGNED_RESPONSE_TENANT_MISMATCH',
    'VAST_PARSE_FAILED',
    'VAST_VERSION_MISMATCH',
    'VAST_WRAPPER_DEPTH_EXCEEDED',
  ],
} as const;

/** A code that the protocol defines. */
export type ErrorCode = (typeof CODES)[Recovery][number];

const RECOVERY_BY_CODE: ReadonlyMap<string, Recovery> = new Map(
  Object.entries(CODES).flatMap(([recovery, codes]) => codes.map((code) => [code, recovery as Recovery])),
);

/** Returns the recovery for a code by the protocol's table; undefined for a code that is not in the table. */
export const recoveryOfCode = (code: string): Recovery | undefined => RECOVERY_BY_CODE.get(code);

/** True for one of the protocol's three words for recovery. */
export const isRecovery = (value: unknown): value is Recovery =>
  typeof value === 'string' && Object.hasOwn(CODES, value);

/** Reads the `recovery` member of an error. An unknown word counts as `terminal`. Undefined if there is no word. */
export function recoveryMember(value: unknown): Recovery | undefined {
  if (typeof value !== 'string' || value === '') return undefined;
  return isRecovery(value) ? value : 'terminal';
}
