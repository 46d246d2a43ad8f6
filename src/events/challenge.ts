// Recognises and checks a proof of control: a signed request by which a seller checks that the webhook's URL is yours
// (verification.md §7.9).
// Called for every body before its format is detected, and by the stage that answers proofs of control.

import { isJsonObject, type JsonObject, present, textMember } from '../codec/members.ts';

/** The body of a proof of control as sent, with unknown members (verification.md §7.9). */
export interface ChallengeBody {
  readonly type: 'webhook.challenge';
  /** 32 to 255 characters of `[A-Za-z0-9_.:-]`. The answer repeats them if you accept. */
  readonly challenge: string;
  /**
   * The agent URL of the seller, as the body states it. If it is not the verified sender's `agentUrl`, the request is
   * refused without asking you.
   */
  readonly seller_agent_url: string;
  /**
   * The account that the subscription belongs to. With `scope: 'agent'` the subscription covers the whole agent instead
   * of one account.
   */
  readonly account_id?: string | null | undefined;
  readonly scope?: string | null | undefined;
  /** The id of the subscription, `notification_configs[].subscriber_id`, as it was registered with the seller. */
  readonly subscriber_id?: string | null | undefined;
  /** The authentication that the seller will use for its deliveries. */
  readonly delivery_auth?: ChallengeAuth | null | undefined;
  readonly event_types?: readonly string[] | null | undefined;
  readonly [member: string]: unknown;
}

/**
 * A proof of control: a signed request by which a seller checks that you own the webhook's URL, before it activates a
 * subscription. The option `registrations` or `onChallenge` decides the answer. `authMatches` is true if the request
 * names the authentication that you configured for this sender.
 */
export interface WebhookChallenge extends ChallengeBody {
  /**
   * True if `delivery_auth` names the authentication that you configured for this sender at this URL. For a sender that
   * signs, that is `rfc9421`. For other senders it is the scheme with the fingerprint of the present or previous
   * credential.
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

/** Largest body, in bytes, that can be a proof of control. A larger body is treated as an ordinary webhook. */
export const MAX_CHALLENGE_BYTES = 16_384;

/**
 * True for a proof of control, which is recognised before the format of a body is detected. A body of more than
 * `MAX_CHALLENGE_BYTES`, or with an idempotency key, is treated as an ordinary webhook.
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

/** Optional members of a proof of control, each with the check of its type, which applies if the member is present. */
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
