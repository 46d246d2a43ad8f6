// The proof of control: its types, its recognition and the check of its members (verification.md §7.9).
// Called for every body before its format is detected, and by the stage that answers it.

import { isJsonObject, type JsonObject, present, textMember } from '../codec/members.ts';

/** The body of a proof of control as sent, with unknown members (verification.md §7.9). */
export interface ChallengeBody {
  readonly type: 'webhook.challenge';
  /** 32 to 255 characters of `[A-Za-z0-9_.:-]`, echoed if the answer is yes. */
  readonly challenge: string;
  /**
   * The seller that activates, by its own statement. You are asked only if it is the verified sender's
   * `agentUrl`.
   */
  readonly seller_agent_url: string;
  /** The account that the subscription belongs to. With `scope: 'agent'` it is yours with the whole agent. */
  readonly account_id?: string | null | undefined;
  readonly scope?: string | null | undefined;
  /** The subscriber that was registered, `notification_configs[].subscriber_id`. */
  readonly subscriber_id?: string | null | undefined;
  /** The authentication that the seller will use for its deliveries. */
  readonly delivery_auth?: ChallengeAuth | null | undefined;
  readonly event_types?: readonly string[] | null | undefined;
  readonly [member: string]: unknown;
}

/**
 * A proof of control: a signed request by which a seller checks that you own the webhook's URL, before it activates
 * a subscription. Registrations or `onChallenge` receive it and decide the answer. `authMatches` is true if the authentication that
 * it names is the one that you configured for this sender.
 */
export interface WebhookChallenge extends ChallengeBody {
  /**
   * True if `delivery_auth` equals the configuration of this sender at this URL. That is `rfc9421` if it signs;
   * otherwise the scheme, and the fingerprint of its present or previous credential.
   *
   * Accept only if it is true: anyone who could change the registration on its way may have inserted credentials of
   * their own.
   */
  readonly authMatches: boolean;
}

/** The member `delivery_auth` of a proof of control. */
export interface ChallengeAuth {
  /** The scheme: `rfc9421`, `Bearer` or `HMAC-SHA256`. */
  readonly mode: string;
  /** The SHA-256 of the credential in hex. Present for the legacy schemes. */
  readonly credential_fingerprint?: string | null | undefined;
  readonly [member: string]: unknown;
}

/** Largest body that can be a proof of control. A larger body is an ordinary one. */
export const MAX_CHALLENGE_BYTES = 16_384;

/**
 * True for a proof of control; this is decided before the format of a body. A body with an idempotency key, or a
 * larger one, is an ordinary body.
 */
export function isChallenge(payload: JsonObject, bytes: number): boolean {
  return (
    payload['type'] === 'webhook.challenge' &&
    bytes <= MAX_CHALLENGE_BYTES &&
    present(payload, 'idempotency_key') === undefined
  );
}

const CHALLENGE = /^[A-Za-z0-9_.:-]{32,255}$/;

const isText = (value: unknown): boolean => typeof value === 'string';

/** Optional members, each with the check that applies if it is present. */
const OPTIONAL: Readonly<Record<string, (value: unknown) => boolean>> = {
  account_id: isText,
  scope: isText,
  subscriber_id: isText,
  event_types: (value) => Array.isArray(value) && value.every(isText),
  delivery_auth: (value) =>
    isJsonObject(value) && isText(value['mode']) && isText(present(value, 'credential_fingerprint') ?? ''),
};

/**
 * Checks the members of a proof of control.
 * @returns the challenge, or the reason why it is not valid.
 */
export function readChallenge(payload: JsonObject): ChallengeBody | string {
  if (!CHALLENGE.test(textMember(payload, 'challenge') ?? '')) {
    return 'challenge is not 32 to 255 characters of [A-Za-z0-9_.:-]';
  }
  if (textMember(payload, 'seller_agent_url') === undefined)
    return 'seller_agent_url is missing or not a string';
  for (const [name, fits] of Object.entries(OPTIONAL)) {
    const value = present(payload, name);
    if (value !== undefined && !fits(value)) return `${name} is of the wrong type`;
  }
  return payload as ChallengeBody;
}
