// Reads vectors of signatures and of sequences: their senders, their keys, and the state of the receiver. The file
// index.ts calls this one; `proto-webhooks explain` uses `setupOf`.
import * as z from 'zod/mini';
import { defined, isJsonObject, type JsonObject } from '../../codec/members.ts';
import type { Jwk } from '../../crypto/engine.ts';
import { fieldValue, headerFields } from '../../shared/delivery.ts';
import type { EditionName } from '../../shared/editions.ts';
import {
  type DeliveryCase,
  type Expectation,
  type NotJudgedCase,
  type ReadCase,
  type Step,
  VectorError,
} from '../vector-case.ts';
import type { Setup, VectorRequest, VectorSender } from '../subject.ts';
import { outcomeExpectation, someExpectation } from './expectation.ts';
import {
  aliasOf,
  DEFAULT_AGENT,
  editionOf,
  notJudged,
  optional,
  parse,
  plainSetup,
  read,
  readList,
  requestOf,
  required,
  type ShapeContext,
} from './read-shape.ts';

/** The schema of the members about the sender. */
const SENDER = z.object({
  agent_url: optional.text,
  jwks_ref: optional.texts,
  jwks_override: z.optional(
    z.union([required.object, required.objects], 'JWKs by kid, a JWK Set, or an array of JWKs'),
  ),
  edition: optional.text,
  authentication: optional.object,
  notification_token: optional.object,
});

type GivenSender = z.output<typeof SENDER>;

/** The schemas of a vector's members about its senders, and about the receiver's state before the vector. */
const SETUP = {
  ...SENDER.shape,
  senders: optional.objects,
  test_harness_state: optional.object,
};

const GIVEN = z.object(SETUP);

/**
 * Returns the keys in `jwks_override`. An object of JWKs by `kid` adds or replaces keys. A JWK Set, or the array of
 * one, replaces all keys: then `all` is true.
 */
function overriddenKeys({ jwks_override: override = {} }: GivenSender): {
  readonly keys: readonly Jwk[];
  readonly all: boolean;
} {
  if (!isJsonObject(override)) return { keys: override, all: true };
  if (Array.isArray(override['keys'])) {
    return { keys: parse(z.object({ keys: required.objects }), override, 'jwks_override').keys, all: true };
  }
  const keys = Object.entries(override).map(([kid, jwk]) => {
    if (isJsonObject(jwk)) return { ...jwk, kid };
    throw new VectorError(`jwks_override.${kid} is wrong: expected a JWK`);
  });
  return { keys, all: false };
}

/**
 * The meaning of a `kid` in `jwks_ref` that keys.json lacks. Either it is a mistake, or the key is not published, which
 * may be the reason for a refusal.
 */
type Lacking = 'mistake' | 'not published';

/**
 * Returns the keys that `jwks_ref` names, or all if it is absent. Keys of `jwks_override` replace those with the same
 * `kid`.
 */
function keysOf(given: GivenSender, context: ShapeContext, lacking: Lacking): readonly Jwk[] {
  const override = overriddenKeys(given);
  if (override.all) return override.keys;
  const kids = new Set(override.keys.map(({ kid }) => kid));
  // Keys without a `kid` are left out: no signature can name them, and a receiver accepts none.
  const known = context.keys().filter(({ kid }) => typeof kid === 'string' && !kids.has(kid));
  if (given.jwks_ref === undefined) return [...known, ...override.keys];
  const referred = given.jwks_ref
    .filter((kid) => !kids.has(kid))
    .flatMap((ref) => {
      const found = known.find(({ kid }) => kid === ref);
      if (found) return [found];
      if (lacking === 'not published') return [];
      throw new VectorError(`jwks_ref names ${JSON.stringify(ref)}: expected a kid in keys.json`);
    });
  return [...referred, ...override.keys];
}

const SCHEMES: Readonly<Record<string, 'hmac' | 'bearer'>> = { 'HMAC-SHA256': 'hmac', Bearer: 'bearer' };

const AUTHENTICATION = z.object({
  schemes: optional.texts,
  credentials: required.text,
  previous_credentials: optional.text,
  header: optional.text,
});

/** Returns the legacy authentication in `authentication`, as it was registered (contract.md §4.3). */
function legacyOf(json: JsonObject, context: ShapeContext): NonNullable<VectorSender['legacy']> {
  const given = read(AUTHENTICATION, json, 'authentication', context);
  const scheme = SCHEMES[given.schemes?.[0] ?? ''];
  if (!scheme) {
    throw new VectorError('authentication.schemes is wrong: expected ["HMAC-SHA256"] or ["Bearer"]');
  }
  const { credentials: secret, previous_credentials: previousSecret, header } = given;
  return { scheme, secret, ...defined({ previousSecret, header }) };
}

const TOKEN = z.object({
  token: required.text,
  previous_token: optional.text,
  on_mismatch: z.optional(z.enum(['warn', 'refuse'], '"warn" or "refuse"')),
});

/** Returns the token in `notification_token`, which is sent in addition to a signature. */
function tokenOf(json: JsonObject, context: ShapeContext): NonNullable<VectorSender['notificationToken']> {
  const { token, previous_token, on_mismatch } = read(TOKEN, json, 'notification_token', context);
  return { token, ...defined({ previousToken: previous_token, onMismatch: on_mismatch }) };
}

function senderOf(given: GivenSender, context: ShapeContext, lacking: Lacking): VectorSender {
  const { agent_url: agentUrl = DEFAULT_AGENT, authentication, notification_token: token } = given;
  return {
    agentUrl,
    keys: keysOf(given, context, lacking),
    edition: editionOf(given, context),
    ...(authentication && { legacy: legacyOf(authentication, context) }),
    ...(token && { notificationToken: tokenOf(token, context) }),
  };
}

/**
 * Returns the senders that the vector lists. Each has the vector's edition unless it names its own. Without a list
 * there is one sender, with the vector's keys.
 */
function sendersOf(
  { senders = [], ...given }: z.output<typeof GIVEN>,
  context: ShapeContext,
  lacking: Lacking,
): readonly VectorSender[] {
  const own = { ...context, edition: editionOf(given, context) };
  if (senders.length === 0) return [senderOf(given, context, lacking)];
  return senders.map((sender, index) =>
    senderOf(read(SENDER, sender, `senders[${index}]`, context), own, lacking),
  );
}

const STATE = z.object({
  replay_cache_entries: optional.objects,
  revoked_kids: optional.texts,
  revocation_list: optional.object,
  revocation_list_stale_seconds: optional.number,
  per_keyid_cap_filled_for: optional.text,
});

const NONCE = z.object({ keyid: required.text, nonce: required.text });
const LIST = z.object({ revoked_kids: optional.texts });

/** Returns the receiver's state in `test_harness_state`: used nonces, key ids at their limit, and revoked keys. */
function stateOf(
  state: JsonObject,
  context: ShapeContext,
): Pick<Setup, 'usedNonces' | 'fullKids' | 'revokedKids' | 'revocationStaleMs'> {
  const given = read(STATE, state, 'test_harness_state', context);
  const list = parse(LIST, given.revocation_list ?? {}, 'test_harness_state.revocation_list');
  const filled = given.per_keyid_cap_filled_for;
  return {
    usedNonces: (given.replay_cache_entries ?? []).map((entry, at) =>
      read(NONCE, entry, `test_harness_state.replay_cache_entries[${at}]`, context, 'may have others'),
    ),
    fullKids: filled === undefined ? [] : [filled],
    revokedKids: [...(given.revoked_kids ?? []), ...(list.revoked_kids ?? [])],
    ...defined({
      revocationStaleMs: given.revocation_list_stale_seconds && given.revocation_list_stale_seconds * 1000,
    }),
  };
}

/** Returns the senders of a vector, and the state that it needs. @param place the URL and the time. */
export function setupOf(
  json: JsonObject,
  place: Pick<Setup, 'url' | 'nowMs'>,
  context: ShapeContext,
  lacking: Lacking = 'mistake',
): Setup {
  const given = parse(GIVEN, json);
  const senders = sendersOf(given, context, lacking);
  return {
    ...plainSetup(context, { ...place, senders }),
    ...stateOf(given.test_harness_state ?? {}, context),
  };
}

const OUTCOME = ['expected_outcome', 'expected'] as const;
/** The members that all vectors of one file may have in common, beside the list of vectors. */
const SHARED = { ...SETUP, reference_now: required.seconds };
const VECTOR = z.object({
  ...SHARED,
  expected_outcome: z.optional(z.unknown()),
  expected: z.optional(z.unknown()),
  request: required.object,
  expected_signature_base: optional.text,
});

const msOf = (unixSeconds: number): number => Math.round(unixSeconds * 1000);

/**
 * Returns the verdict that the name of the file's folder gives (`positive` or `negative`); undefined if it gives none.
 */
function placedIn(file: string): boolean | undefined {
  const place = /(?:^|[/\\])(positive|negative)[/\\][^/\\]*$/.exec(file)?.[1];
  return place === undefined ? undefined : place === 'positive';
}

/**
 * Matches the codes for signed requests, which begin with `request_`. The codes for webhooks begin with `webhook_`
 * instead.
 */
export const OF_REQUESTS: RegExp = /^request_/;
/** Matches the tag of signed requests, which this library does not accept. */
const REQUEST_TAG = /;\s*tag="[^"]*request-signing[^"]*"/;

/** True if a vector is about a signed request, and not a webhook. */
function isOfRequests({ headers }: VectorRequest, { authentic, code }: Expectation): boolean {
  const isMeant = authentic === true || OF_REQUESTS.test(code ?? '');
  return isMeant && REQUEST_TAG.test(fieldValue(headerFields(headers), 'signature-input') ?? '');
}

/** The edition since which keys for signed requests may also sign webhooks (src/shared/editions.ts). */
const REQUEST_KEYS_SINCE: EditionName = '3.1';

/**
 * Gives edition 3.1 to each sender that has only keys for signed requests. Otherwise returns the setup unchanged: if an
 * edition is named, or if the webhook need not verify.
 */
function editionBy(setup: Setup, json: JsonObject, { authentic }: Expectation, context: ShapeContext): Setup {
  const isNamed = context.isEditionGiven === true || json['edition'] !== undefined;
  if (authentic !== true || isNamed) return setup;
  const isLater = ({ keys }: VectorSender): boolean => keys.length > 0 && keys.every(isForRequests);
  const senders = setup.senders.map((sender) =>
    isLater(sender) ? { ...sender, edition: REQUEST_KEYS_SINCE } : sender,
  );
  return { ...setup, senders };
}

const isForRequests = (jwk: Jwk): boolean =>
  Object.entries(jwk).some(([name, value]) => name.endsWith('_use') && value === 'request-signing');

function signatureCase(json: JsonObject, name: string, context: ShapeContext): DeliveryCase | NotJudgedCase {
  const given = read(VECTOR, json, '', context, 'may have others');
  const { file } = context;
  const request = requestOf(given.request, 'request', context);
  const nowMs = msOf(given.reference_now);
  const outcome = aliasOf(json, name, OUTCOME) ?? OUTCOME[0];
  const stated = outcomeExpectation(given[outcome] ?? {}, outcome, placedIn(file), context);
  if (isOfRequests(request, stated))
    return notJudged(context, name, 'it is about a signed request, not a webhook');
  const code = stated.code?.replace(OF_REQUESTS, 'webhook_');
  const expected = { ...stated, ...(code !== undefined && { code }) };
  const lacking = expected.authentic === true ? 'mistake' : 'not published';
  const setup = setupOf(json, { url: request.url, nowMs }, context, lacking);
  const signatureBase = given.expected_signature_base;
  return {
    kind: 'signature',
    name,
    file,
    setup: editionBy(setup, json, expected, context),
    steps: [{ request, nowMs, handlerFails: false, expected }],
    // An empty `expected_signature_base` means that the request has no signature base.
    ...(signatureBase !== undefined && signatureBase !== '' && { signatureBase }),
  };
}

/** Reads a file with one signature vector. */
export function readSignature(json: JsonObject, context: ShapeContext): readonly ReadCase[] {
  const { name = context.stem } = parse(z.object({ name: optional.text }), json);
  return [signatureCase(json, name, context)];
}

/** The members of a file that contains several signature vectors. */
export const SIGNATURES: readonly string[] = [...Object.keys(SHARED), 'vectors'];

/** Reads `{vectors: [{id, request, …}]}`. Members that all vectors share may be beside `vectors`. */
export function readSignatures(json: JsonObject, context: ShapeContext): readonly ReadCase[] {
  const shared = Object.fromEntries(Object.entries(json).filter(([name]) => name in SHARED));
  return readList(json, 'vectors', context, (vector, name) =>
    signatureCase({ ...shared, ...vector }, name, context),
  );
}

const RECEIVER = z.object({
  max_nonces_per_key: optional.number,
  max_records_per_sender: optional.number,
  max_body_bytes: optional.number,
  content_types: optional.texts,
  challenge: z.optional(z.enum(['accept', 'refuse'], '"accept" or "refuse"')),
});

/** Returns the configuration of the receiver, from the member `receiver` of a sequence. */
function receiverOf(
  json: JsonObject,
  context: ShapeContext,
): Pick<Setup, 'limits' | 'contentTypes' | 'challenge'> {
  const given = read(RECEIVER, json, 'receiver', context);
  return {
    limits: defined({
      maxNoncesPerKey: given.max_nonces_per_key,
      maxRecordsPerSender: given.max_records_per_sender,
      maxBodyBytes: given.max_body_bytes,
    }),
    ...defined({ contentTypes: given.content_types, challenge: given.challenge }),
  };
}

const STEP = z.object({
  name: optional.text,
  at: optional.number,
  request: required.object,
  handler: z.optional(z.enum(['succeeds', 'fails'], '"succeeds" or "fails"')),
  expected: z.optional(z.unknown()),
});

/** Returns a step of a sequence. `at` is the number of seconds after `reference_now`. */
function stepOf(json: JsonObject, index: number, startMs: number, context: ShapeContext): Step {
  const where = `steps[${index}]`;
  const { name = `step ${index + 1}`, at = 0, handler, ...given } = read(STEP, json, where, context);
  return {
    name,
    request: requestOf(given.request, `${where}.request`, context),
    nowMs: startMs + at * 1000,
    handlerFails: handler === 'fails',
    expected: someExpectation(given.expected, `${where}.expected`, context),
  };
}

const SEQUENCE = z.object({ ...SHARED, receiver: optional.object, steps: optional.objects });

function sequenceOf(json: JsonObject, name: string, context: ShapeContext): DeliveryCase {
  const given = read(SEQUENCE, json, '', context, 'may have others');
  const nowMs = msOf(given.reference_now);
  const steps = (given.steps ?? []).map((step, at) => stepOf(step, at, nowMs, context));
  const [first] = steps;
  if (!first) throw new VectorError('steps is empty: expected at least one');
  const setup = setupOf(json, { url: first.request.url, nowMs }, context);
  return {
    kind: 'sequence',
    name,
    file: context.file,
    setup: { ...setup, ...receiverOf(given.receiver ?? {}, context) },
    steps,
  };
}

/**
 * Reads `{sequences: [{name, reference_now, edition?, receiver?, jwks_ref?, steps: [{at, request, handler?,
 * expected}]}]}`.
 */
export function readSequences(json: JsonObject, context: ShapeContext): readonly ReadCase[] {
  return readList(json, 'sequences', context, (sequence, name) => sequenceOf(sequence, name, context));
}
