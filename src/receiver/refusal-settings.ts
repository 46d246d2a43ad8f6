// Finds the setting of the receiver that may have caused a refusal, and the advice for its alarm (verification.md
// §2.37).
// Called by `refused.ts` after the answer; the table `SETTINGS` has a row for every code.

import type { AlarmCode, SettingCode } from '../shared/codes.ts';
import { bearerToken, hmacSecretsOf, PUSH_TOKEN_FIELD } from '../auth/credentials.ts';
import { signingField } from '../auth/mode.ts';
import { readSignatureFields } from '../auth/rfc9421/checks.ts';
import { isAdmissible } from '../config/content-types.ts';
import type { HeaderFields } from '../shared/delivery.ts';
import type { ReceiverOptions } from '../config/receiver-options.ts';
import type { RefusedCode } from '../shared/codes.ts';
import type { Config } from '../config/resolve-options.ts';
import type { HealthNotes } from './health.ts';
import type { KeyResolver } from '../keys/key-resolver.ts';
import type { Protocols } from '../shared/wire-names.ts';
import type { Sender, SenderEntry } from '../config/sender-entry.ts';
import { AGENT_PUSH, mediaName } from '../stages/guard.ts';

/** A setting that may have caused a refusal. */
export interface Suspect {
  /**
   * The option of the receiver or of a sender. Absent if the cause is something else on the receiver's side, e.g. a
   * proxy.
   */
  readonly option?: keyof ReceiverOptions | keyof Sender;
  /** One or more sentences that say what to change. */
  readonly advice: string;
}

/** Parts of the receiver that are examined for the cause of a refusal. */
export interface SettingParts {
  readonly config: Config;
  readonly protocols: Protocols;
  readonly keys: KeyResolver;
  readonly notes: HealthNotes;
}

/** A refused delivery, with the facts that were found before the refusal. */
export interface RefusedCase {
  readonly headers: HeaderFields;
  /** The key id that the delivery names, if any. */
  readonly keyid: string | undefined;
  /**
   * The senders of the delivery's URL; empty if none is registered there, or if the refusal came before the look-up.
   */
  readonly senders: readonly SenderEntry[];
  readonly parts: SettingParts;
}

type Find = (refused: RefusedCase) => Suspect | undefined;

const hasBearer = (headers: HeaderFields): boolean =>
  (headers.get('authorization') ?? []).some((line) => bearerToken(line) !== undefined);

/** True if the request is meant as a delivery: it has a signature or a token. */
const isCredentialed = ({ headers, parts: context }: RefusedCase): boolean =>
  signingField(headers, context.protocols) !== undefined ||
  hasBearer(headers) ||
  headers.has(PUSH_TOKEN_FIELD);

const mediaType: Find = (refused) => {
  const { headers, senders, parts: context } = refused;
  const [media = ''] = (headers.get('content-type') ?? []).map(mediaName);
  const isPush = media === AGENT_PUSH && senders.length > 0;
  if (!isCredentialed(refused) && !isPush) return undefined;
  const isOpen = isAdmissible(media) && !context.config.contentTypes.has(media);
  // The advice repeats the type, which a stranger chose, only if the type is a valid value of the option.
  return isOpen
    ? {
        option: 'contentTypes',
        advice: `If a seller sends this type, set contentTypes: ['${media}']. Otherwise your proxy has changed it.`,
      }
    : { advice: 'The seller has to send application/json in UTF-8, unless your proxy has changed it.' };
};

const contentEncoding: Find = (refused) =>
  isCredentialed(refused)
    ? { advice: 'Sellers do not compress, but your proxy may: turn that off for this path.' }
    : undefined;

const bodySize: Find = ({ parts: context }) => ({
  option: 'maxBodyBytes',
  advice: `If a seller's events are larger, raise maxBodyBytes (${context.config.maxBodyBytes}), and the limit of your proxy.`,
});

const TOKEN_FIELD = "auth: { bearer: { token, header: 'X-A2A-Notification-Token' } }";

/** Returns the advice if the delivery has a token in a header other than the configured one. */
function tokenElsewhere({ headers }: RefusedCase, auth: SenderEntry['auth']): Suspect | undefined {
  const own = auth.scheme === 'bearer' ? (auth.header ?? 'authorization') : undefined;
  if (own !== undefined && headers.has(own)) return undefined;
  if (own !== undefined && own !== 'authorization' && hasBearer(headers)) {
    return { option: 'auth', advice: 'Its token is in Authorization: leave auth.bearer.header out.' };
  }
  if (!headers.has(PUSH_TOKEN_FIELD)) return undefined;
  return {
    option: 'auth',
    advice: `It has a token in X-A2A-Notification-Token: if you gave the seller one, register ${TOKEN_FIELD}.`,
  };
}

/**
 * Returns the protocol name in the delivery's HMAC headers (`x-<name>-signature`), if the receiver does not accept that
 * name.
 */
function unknownHmacName({ headers, parts: context }: RefusedCase): string | undefined {
  for (const field of headers.keys()) {
    const name = /^x-([a-z][a-z0-9-]{0,31})-signature$/.exec(field)?.[1];
    const isKnown = context.protocols.some((protocol) => protocol.name === name);
    if (name !== undefined && !isKnown && headers.has(`x-${name}-timestamp`)) return name;
  }
  return undefined;
}

/** Returns the advice for a delivery that has headers of another scheme instead of the registered one. */
function otherScheme(refused: RefusedCase, auth: SenderEntry['auth']): Suspect | undefined {
  const name = unknownHmacName(refused);
  if (name === undefined) return tokenElsewhere(refused, auth);
  const takesHmac = hmacSecretsOf(auth).length > 0;
  const leave = `Its HMAC fields have the name ${name}: leave protocol out, or set protocol: '${name}'`;
  return takesHmac
    ? { option: 'protocol', advice: `${leave}.` }
    : { option: 'auth', advice: `${leave}, and register its auth: { hmac: { secret } }.` };
}

const fields: Find = (refused) => {
  const { headers, senders, parts: context } = refused;
  const [sender] = senders;
  if (!sender) return undefined;
  const names = context.protocols.filter(
    ({ hmacSignatureHeader, hmacTimestampHeader }) =>
      headers.has(hmacSignatureHeader) || headers.has(hmacTimestampHeader),
  );
  if (names.length > 1 && hmacSecretsOf(sender.auth).length > 0) {
    return {
      option: 'protocol',
      advice: 'If the seller sends the fields of both names, set protocol to the one that it signs by.',
    };
  }
  const isSigned = names.length > 0 || headers.has('signature-input') || headers.has('signature');
  return isSigned ? undefined : otherScheme(refused, sender.auth);
};

/**
 * Returns the advice to accept the protocol name in the signature's tag. Called if the receiver does not accept that
 * name.
 */
const tag: Find = ({ headers }) => {
  const parsed = readSignatureFields(headers);
  const said = parsed.kind === 'parsed' ? (parsed.input.parameters.tag ?? '') : '';
  const name = /^([a-z][a-z0-9-]{0,31})\/webhook-signing\/v1$/.exec(said)?.[1];
  if (name === undefined) return undefined;
  return { option: 'protocol', advice: `Leave protocol out, or set protocol: '${name}'.` };
};

const unknownKey: Find = (refused) => {
  const { keyid, senders, parts: context } = refused;
  if (senders.length === 0) {
    return isCredentialed(refused)
      ? { option: 'senders', advice: 'If you gave a seller this URL, add that seller to senders for it.' }
      : undefined;
  }
  const owner = keyid === undefined ? undefined : context.keys.whose(keyid);
  if (owner !== undefined && !senders.some(({ agentUrl }) => agentUrl === owner)) {
    return {
      option: 'senders',
      advice: `${owner} has a key with this id: if you gave it this URL, add it to senders for it.`,
    };
  }
  const pinned = senders.find(({ pins, publishers }) => pins ?? publishers);
  if (!pinned) return undefined;
  const { agentUrl, pins } = pinned;
  return pins
    ? {
        option: 'pins',
        advice: `Only the pins of ${agentUrl} count: if it owns this key, add the key to them.`,
      }
    : {
        option: 'publishers',
        advice: `The publishers of ${agentUrl} may pin its keys: if it owns this key, they have to list it, or remove them from publishers.`,
      };
};

const pinsIt = ({ pins = [] }: SenderEntry, keyid: string | undefined): boolean =>
  pins.some((jwk) => jwk['kid'] === keyid);

/**
 * Finds the option in which the owner has revoked the key. A key on a seller's revocation list is left out, because no
 * option makes it valid.
 */
const revokedKey: Find = ({ keyid = '', senders }) => {
  const listing = senders.find(({ revocation }) => revocation?.revokedKids?.includes(keyid));
  if (listing) {
    return {
      option: 'revocation',
      advice: `It is in revokedKids of ${listing.agentUrl}. Remove it only if it is not revoked. Otherwise somebody signs with a revoked key: tell the seller.`,
    };
  }
  const pinning = senders.find(({ pins = [] }) =>
    pins.some((jwk) => jwk['kid'] === keyid && jwk['revoked_at'] !== undefined),
  );
  if (!pinning) return undefined;
  return {
    option: 'pins',
    advice: `Its pin of ${pinning.agentUrl} has revoked_at. Change the pin only if the seller says so.`,
  };
};

const SECRETS: Readonly<Record<'hmac' | 'bearer', string>> = {
  hmac: "compare the secret with the seller's; during a rotation set previousSecret",
  bearer: "compare the token with the seller's; during a rotation set previousToken",
};

const failedProof: Find = ({ headers, keyid, senders, parts: context }) => {
  const [sender] = senders;
  if (!sender) return undefined;
  const { auth } = sender;
  if (auth.scheme !== 'signature')
    return { option: 'auth', advice: `If the seller sent it, ${SECRETS[auth.scheme]}.` };
  if (!headers.has('signature-input'))
    return { option: 'auth', advice: `If the seller sent it, ${SECRETS.hmac}.` };
  const owner = keyid === undefined ? undefined : context.keys.whose(keyid, senders);
  if (owner !== undefined && context.notes.senders.get(owner)?.lastAcceptedAt === undefined) {
    return {
      option: 'publicUrl',
      advice: `Nothing from ${owner} was accepted since the start. Compare publicUrl with the URL that you gave the seller, and check whether a proxy changes what is signed (npx proto-webhooks explain).`,
    };
  }
  const pinning = senders.find((one) => pinsIt(one, keyid));
  if (!pinning) return undefined;
  return {
    option: 'pins',
    advice: `The key is a pin of ${pinning.agentUrl}: check whether the seller has replaced it under the same kid.`,
  };
};

const changedBody: Find = () => ({
  advice:
    "The body is not the one that was signed. Check whether your proxy, parser or middleware changes it; otherwise the seller's client does.",
});

const scheme: Find = () => ({
  option: 'auth',
  advice: 'If the seller has changed its scheme, change the auth of its sender.',
});

/**
 * For each code of a refusal, the possible cause on the receiver's side (verification.md §2.37). A function finds the
 * wrong setting from facts that are already known. An alarm code means that this alarm was already raised, where the
 * cause was found. Undefined means that no other setting would have accepted the delivery.
 */
export const SETTINGS: {
  readonly [C in RefusedCode]: C extends SettingCode ? Find : AlarmCode | undefined;
} = {
  method_not_allowed: undefined,
  unsupported_media_type: mediaType,
  unsupported_content_encoding: contentEncoding,
  payload_too_large: bodySize,
  webhook_signature_header_malformed: fields,
  webhook_signature_params_incomplete: undefined,
  webhook_signature_tag_invalid: tag,
  webhook_signature_alg_not_allowed: undefined,
  webhook_signature_window_invalid: undefined,
  webhook_signature_components_incomplete: undefined,
  webhook_signature_key_unknown: unknownKey,
  webhook_signature_key_purpose_invalid: 'key_purpose_refused',
  webhook_signature_key_revoked: revokedKey,
  webhook_signature_rate_abuse: 'cap_reached',
  webhook_target_uri_malformed: undefined,
  webhook_signature_invalid: failedProof,
  webhook_signature_digest_mismatch: changedBody,
  webhook_signature_replayed: undefined,
  webhook_body_malformed: undefined,
  webhook_mode_mismatch: scheme,
  webhook_token_mismatch: 'token_mismatch',
  missing_idempotency_key: undefined,
  missing_envelope_fields: undefined,
  invalid_envelope_status: undefined,
  invalid_envelope: undefined,
  payload_changed: 'payload_changed',
  task_already_final: 'second_terminal_status',
  challenge_refused: 'challenge_refused',
  sender_over_limit: 'cap_reached',
};

const isSettingCode = (code: RefusedCode): code is SettingCode => typeof SETTINGS[code] === 'function';

/** Returns the setting that may have caused the refusal, and the code of its alarm; undefined if there is none. */
export function suspectOf(
  code: RefusedCode,
  refused: RefusedCase,
): (Suspect & { readonly code: SettingCode }) | undefined {
  if (!isSettingCode(code)) return undefined;
  const suspect = SETTINGS[code](refused);
  return suspect && { ...suspect, code };
}
