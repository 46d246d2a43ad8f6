import type { Jwk } from '../../crypto/engine.ts';
import { defined } from '../../codec/members.ts';
import { VectorError } from '../errors.ts';
import type { Setup, VectorSender } from '../subject.ts';
import { mostMembers, onlyMembers } from './known.ts';
import { type JsonObject, type ShapeContext, DEFAULT_AGENT, editionOf, isJsonObject } from './members.ts';
import { objectOf, objectsOf, optionalNumber, optionalObject, optionalText } from './members.ts';
import { present, textOf, textsOf } from './members.ts';

/** `jwks_override`: JWKs by `kid`; or a JWK Set, or the array of one, that stands for all keys. */
function overriddenKeys(json: JsonObject): { readonly keys: readonly Jwk[]; readonly all: boolean } {
  if (Array.isArray(json['jwks_override'])) return { keys: objectsOf(json, 'jwks_override'), all: true };
  const override = optionalObject(json, 'jwks_override');
  if (Array.isArray(override['keys'])) return { keys: objectsOf(override, 'keys'), all: true };
  const keys = Object.entries(override).map(([kid, jwk]) => {
    if (!isJsonObject(jwk)) {
      throw new VectorError(`jwks_override.${kid} is wrong: expected a JWK`);
    }
    return { ...jwk, kid };
  });
  return { keys, all: false };
}

/** A `kid` of `jwks_ref` that keys.json lacks: a mistake, or a key that nobody published, which a refusal may be about. */
type Lacking = 'mistake' | 'not published';

/** The keys that `jwks_ref` names (all where it is absent), with those that `jwks_override` gives instead. */
function keysOf(json: JsonObject, context: ShapeContext, lacking: Lacking): readonly Jwk[] {
  const override = overriddenKeys(json);
  if (override.all) return override.keys;
  const kids = new Set(override.keys.map(({ kid }) => kid));
  const refs = textsOf(json, 'jwks_ref');
  // A key without a kid can be named by no signature, and a receiver takes none.
  const known = context.keys().filter(({ kid }) => typeof kid === 'string' && !kids.has(kid));
  if (refs === undefined) return [...known, ...override.keys];
  const referred = refs
    .filter((kid) => !kids.has(kid))
    .flatMap((ref) => {
      const found = known.find(({ kid }) => kid === ref);
      if (found) return [found];
      if (lacking === 'not published') return [];
      throw new VectorError(`jwks_ref names ${JSON.stringify(ref)}: expected a kid of keys.json`);
    });
  return [...referred, ...override.keys];
}

const SCHEMES: Readonly<Record<string, 'hmac' | 'bearer'>> = { 'HMAC-SHA256': 'hmac', Bearer: 'bearer' };

const AUTHENTICATION = ['schemes', 'credentials', 'previous_credentials', 'header'] as const;

/** `authentication` as it was registered (contract.md §4.3). */
function legacyOf(json: JsonObject, context: ShapeContext): Pick<VectorSender, 'legacy'> {
  if (present(json, 'authentication') === undefined) return {};
  const authentication = objectOf(json, 'authentication');
  onlyMembers(authentication, 'authentication', AUTHENTICATION, context);
  const [name = ''] = textsOf(authentication, 'schemes') ?? [];
  const scheme = SCHEMES[name];
  if (!scheme) {
    throw new VectorError('authentication.schemes is wrong: expected ["HMAC-SHA256"] or ["Bearer"]');
  }
  const legacy = {
    scheme,
    secret: textOf(authentication, 'credentials'),
    ...defined({
      previousSecret: optionalText(authentication, 'previous_credentials'),
      header: optionalText(authentication, 'header'),
    }),
  };
  return { legacy };
}

/** `notification_token`, beside a signature. */
function tokenOf(json: JsonObject, context: ShapeContext): Pick<VectorSender, 'notificationToken'> {
  if (present(json, 'notification_token') === undefined) return {};
  const given = objectOf(json, 'notification_token');
  onlyMembers(given, 'notification_token', ['token', 'previous_token', 'on_mismatch'], context);
  const onMismatch = optionalText(given, 'on_mismatch');
  if (onMismatch !== undefined && onMismatch !== 'warn' && onMismatch !== 'refuse') {
    throw new VectorError('notification_token.on_mismatch is wrong: expected "warn" or "refuse"');
  }
  const previousToken = optionalText(given, 'previous_token');
  return { notificationToken: { token: textOf(given, 'token'), ...defined({ previousToken, onMismatch }) } };
}

/** Members that say who sends. */
export const SENDER = [
  'agent_url',
  'jwks_ref',
  'jwks_override',
  'edition',
  'authentication',
  'notification_token',
] as const;

function senderOf(json: JsonObject, context: ShapeContext, lacking: Lacking): VectorSender {
  return {
    agentUrl: optionalText(json, 'agent_url') ?? DEFAULT_AGENT,
    keys: keysOf(json, context, lacking),
    edition: editionOf(json, context),
    ...legacyOf(json, context),
    ...tokenOf(json, context),
  };
}

/** The senders of a vector: those that it lists, else one that has its keys. Its edition is that of each. */
export function sendersOf(
  json: JsonObject,
  context: ShapeContext,
  lacking: Lacking = 'mistake',
): readonly VectorSender[] {
  const own = { ...context, edition: editionOf(json, context) };
  const senders = objectsOf(json, 'senders').map((sender, index) => {
    onlyMembers(sender, `senders[${index}]`, SENDER, context);
    return senderOf(sender, own, lacking);
  });
  return senders.length > 0 ? senders : [senderOf(json, context, lacking)];
}

const STATE = [
  'replay_cache_entries',
  'revoked_kids',
  'revocation_list',
  'revocation_list_stale_seconds',
  'per_keyid_cap_filled_for',
] as const;

/** `test_harness_state`. */
export function harnessState(
  json: JsonObject,
  context: ShapeContext,
): Omit<Setup, 'url' | 'nowMs' | 'senders' | 'protocol' | 'limits'> {
  const state = optionalObject(json, 'test_harness_state');
  onlyMembers(state, 'test_harness_state', STATE, context);
  const list = optionalObject(state, 'revocation_list');
  const filled = optionalText(state, 'per_keyid_cap_filled_for');
  const revocationStaleSeconds = optionalNumber(state, 'revocation_list_stale_seconds');
  return {
    usedNonces: objectsOf(state, 'replay_cache_entries').map((entry) => {
      mostMembers(entry, 'replay_cache_entries', ['keyid', 'nonce'], context);
      return { keyid: textOf(entry, 'keyid'), nonce: textOf(entry, 'nonce') };
    }),
    fullKids: filled === undefined ? [] : [filled],
    revokedKids: [...(textsOf(state, 'revoked_kids') ?? []), ...(textsOf(list, 'revoked_kids') ?? [])],
    ...(revocationStaleSeconds !== undefined && { revocationStaleSeconds }),
  };
}
