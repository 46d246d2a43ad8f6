import type { Jwk } from '../../crypto/engine.ts';
import { defined } from '../../codec/members.ts';
import type { DeliveryCase } from '../case.ts';
import { VectorError } from '../errors.ts';
import type { Setup, VectorSender } from '../subject.ts';
import { outcomeExpectation } from './expectation.ts';
import { type JsonObject, type ShapeContext, DEFAULT_AGENT, editionOf, isJsonObject } from './members.ts';
import { objectOf, objectsOf, optionalNumber, optionalObject, optionalText } from './members.ts';
import { plainSetup, present, requestOf, textOf, textsOf, timeOf } from './members.ts';

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

/** `authentication` as it was registered (contract.md §4.3). */
function legacyOf(json: JsonObject): Pick<VectorSender, 'legacy'> {
  if (present(json, 'authentication') === undefined) return {};
  const authentication = objectOf(json, 'authentication');
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
function tokenOf(json: JsonObject): Pick<VectorSender, 'notificationToken'> {
  if (present(json, 'notification_token') === undefined) return {};
  const given = objectOf(json, 'notification_token');
  const onMismatch = optionalText(given, 'on_mismatch');
  if (onMismatch !== undefined && onMismatch !== 'warn' && onMismatch !== 'refuse') {
    throw new VectorError('notification_token.on_mismatch is wrong: expected "warn" or "refuse"');
  }
  const previousToken = optionalText(given, 'previous_token');
  return { notificationToken: { token: textOf(given, 'token'), ...defined({ previousToken, onMismatch }) } };
}

function senderOf(json: JsonObject, context: ShapeContext, lacking: Lacking): VectorSender {
  return {
    agentUrl: optionalText(json, 'agent_url') ?? DEFAULT_AGENT,
    keys: keysOf(json, context, lacking),
    edition: editionOf(json, context),
    ...legacyOf(json),
    ...tokenOf(json),
  };
}

/** The senders of a vector: those that it lists, else one that has its keys. Its edition is that of each. */
export function sendersOf(
  json: JsonObject,
  context: ShapeContext,
  lacking: Lacking = 'mistake',
): readonly VectorSender[] {
  const own = { ...context, edition: editionOf(json, context) };
  const senders = objectsOf(json, 'senders').map((sender) => senderOf(sender, own, lacking));
  return senders.length > 0 ? senders : [senderOf(json, context, lacking)];
}

/** `test_harness_state`. */
export function harnessState(
  json: JsonObject,
): Omit<Setup, 'url' | 'nowMs' | 'senders' | 'protocol' | 'limits'> {
  const state = optionalObject(json, 'test_harness_state');
  const filled = optionalText(state, 'per_keyid_cap_filled_for');
  const revocationStaleSeconds = optionalNumber(state, 'revocation_list_stale_seconds');
  return {
    usedNonces: objectsOf(state, 'replay_cache_entries').map((entry) => ({
      keyid: textOf(entry, 'keyid'),
      nonce: textOf(entry, 'nonce'),
    })),
    fullKids: filled === undefined ? [] : [filled],
    revokedKids: textsOf(state, 'revoked_kids') ?? [],
    ...(revocationStaleSeconds !== undefined && { revocationStaleSeconds }),
  };
}

/** What the folder says of the outcome. */
function placedIn(file: string): boolean | undefined {
  const place = /(?:^|[/\\])(positive|negative)[/\\][^/\\]*$/.exec(file)?.[1];
  return place === undefined ? undefined : place === 'positive';
}

/** One signature vector a file. */
export function readSignature(json: JsonObject, context: ShapeContext): readonly DeliveryCase[] {
  const { file } = context;
  const request = requestOf(objectOf(json, 'request'));
  const nowMs = timeOf(json, 'reference_now');
  const expected = outcomeExpectation(optionalObject(json, 'expected_outcome'), placedIn(file), context);
  if (expected.authentic === undefined) {
    throw new VectorError('expected_outcome.success is missing: expected true or false');
  }
  const senders = sendersOf(json, context, expected.authentic ? 'mistake' : 'not published');
  const setup = { ...plainSetup(context, { url: request.url, nowMs, senders }), ...harnessState(json) };
  const signatureBase = optionalText(json, 'expected_signature_base');
  return [
    {
      kind: 'signature',
      name: optionalText(json, 'name') ?? context.stem,
      file,
      setup,
      steps: [{ request, nowMs, handlerFails: false, expected }],
      // Published for a request that has no base, it is empty.
      ...(signatureBase !== undefined && signatureBase !== '' && { signatureBase }),
    },
  ];
}
