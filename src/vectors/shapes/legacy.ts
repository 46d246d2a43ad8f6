// Reads vectors of HMAC senders, bearer senders, and envelopes. Envelopes are sent with a bearer token. The file
// index.ts calls this one for files of these shapes.
import * as z from 'zod/mini';
import { defined, isJsonObject, type JsonObject, present } from '../../codec/members.ts';
import { protocolFor } from '../../shared/wire-names.ts';
import {
  type DeliveryCase,
  type Expectation,
  type NotJudgedCase,
  type ReadCase,
  type SecretCase,
  VectorError,
} from '../vector-case.ts';
import { hmacAction, someExpectation } from './expectation.ts';
import {
  aliasOf,
  bodyOf,
  each,
  DEFAULT_AGENT,
  DEFAULT_NOW_MS,
  DEFAULT_URL,
  editionOf,
  isListOfObjects,
  missing,
  notJudged,
  optional,
  parse,
  plainSetup,
  RAW_BODY,
  read,
  readList,
  required,
  type ShapeContext,
} from './read-shape.ts';

/** The sender of all vectors in a file, with its legacy authentication. */
interface Registered {
  readonly scheme: 'hmac' | 'bearer';
  readonly secret: string;
  readonly previousSecret?: string;
  readonly url?: string | undefined;
  readonly edition?: string | undefined;
}

/** Makes the case of one delivery of a sender with HMAC or bearer authentication. */
function deliveryCase(
  kind: DeliveryCase['kind'],
  name: string,
  { scheme, secret, previousSecret, url = DEFAULT_URL, edition }: Registered,
  request: { readonly headers: Readonly<Record<string, string | string[]>>; readonly body: Uint8Array },
  expected: Expectation,
  context: ShapeContext,
  nowMs: number = DEFAULT_NOW_MS,
): DeliveryCase {
  const legacy = { scheme, secret, ...defined({ previousSecret }) };
  const sender = { agentUrl: DEFAULT_AGENT, keys: [], edition: editionOf({ edition }, context), legacy };
  return {
    kind,
    name,
    file: context.file,
    setup: plainSetup(context, { url, nowMs, senders: [sender] }),
    steps: [{ request: { method: 'POST', url, ...request }, nowMs, handlerFails: false, expected }],
  };
}

const JSON_TYPE = { 'Content-Type': 'application/json' };

/** Returns the headers of a request. Members of `replacing` replace headers of the scheme; a null removes a header. */
function headersWith(
  own: Readonly<Record<string, string>>,
  replacing: JsonObject = {},
): Record<string, string | string[]> {
  const names = new Set(Object.keys(replacing).map((name) => name.toLowerCase()));
  const kept = Object.entries({ ...JSON_TYPE, ...own }).filter(([name]) => !names.has(name.toLowerCase()));
  const given = Object.entries(replacing).filter(
    (entry): entry is [string, string | string[]] => entry[1] !== null,
  );
  return Object.fromEntries([...kept, ...given]);
}

/** The members that vectors of HMAC and of bearer senders have in common. */
const DELIVERY = { headers: optional.object, ...RAW_BODY, expected: z.optional(z.unknown()) };
const SIGNATURE = ['expected_signature', 'signature'] as const;
/** The names of the member with the receiver's time, in Unix seconds. */
const CLOCK = ['reference_now', 'current_time'] as const;
const secondsOrText = z.union([z.number(), z.string()], 'Unix seconds');
const HMAC = z.object({
  ...DELIVERY,
  expected_signature: optional.text,
  signature: optional.text,
  timestamp: secondsOrText,
  ...each(CLOCK, z.optional(secondsOrText)),
  expected_verifier_action: optional.text,
});

type GivenHmac = z.output<typeof HMAC>;

/**
 * Returns the expectation in `expected_verifier_action`, `expected`, or both. If both are absent, a vector of
 * `rejection_vectors` must be refused. Any other vector must then have a valid HMAC, whatever its body contains.
 */
function hmacExpectation(given: GivenHmac, refused: boolean, context: ShapeContext): Expectation {
  const { expected_verifier_action: action, expected } = given;
  if (action === undefined && expected === undefined)
    return refused ? { authentic: false } : { proved: true };
  return {
    ...(action !== undefined && hmacAction(action)),
    ...(expected !== undefined && someExpectation(expected, 'expected', context)),
  };
}

function hmacCase(
  sender: Registered,
  vector: JsonObject,
  name: string,
  refused: boolean,
  context: ShapeContext,
): DeliveryCase {
  const given = read(HMAC, vector, '', context, 'may have others');
  const { hmacSignatureHeader, hmacTimestampHeader } = protocolFor(context.protocol);
  // Without a reference time, the vector's `timestamp` is the receiver's time, so it must be a number.
  const nowMs = Number(given[aliasOf(vector, name, CLOCK) ?? 'timestamp']) * 1000;
  if (!Number.isFinite(nowMs)) throw new VectorError('reference_now is missing: expected Unix seconds');
  const [member] = SIGNATURE;
  const signature = given[aliasOf(vector, name, SIGNATURE) ?? member];
  if (signature === undefined) throw missing(member, 'a string');
  const own = { [hmacTimestampHeader]: String(given.timestamp), [hmacSignatureHeader]: signature };
  const request = { headers: headersWith(own, given.headers), body: bodyOf(given, name) };
  const expected = hmacExpectation(given, refused, context);
  return deliveryCase('hmac', name, sender, request, expected, context, nowMs);
}

/**
 * The lists of vectors in an HMAC file. Those in `rejection_vectors` must be refused, unless a vector says otherwise.
 */
const DELIVERIES = ['vectors', 'rejection_vectors'] as const;
/** The member with the list of secrets that a receiver must refuse. */
const SECRETS = 'secret_rejection_vectors';
/** The member with vectors about the duties of signers. Such vectors cannot be judged here. */
const SIGNERS = 'signer_side';

/** The lists by which an HMAC file is recognised. */
export const HMAC_LISTS: readonly string[] = [...DELIVERIES, SECRETS];
export const HMAC_MEMBERS: readonly string[] = ['secret', 'previous_secret', 'url', ...HMAC_LISTS, SIGNERS];

function secretCase({ secret }: JsonObject, name: string, context: ShapeContext): SecretCase | NotJudgedCase {
  if (secret === undefined) return notJudged(context, name, `${SECRETS}: a vector without a secret`);
  if (typeof secret !== 'string') throw missing('secret', 'a string');
  return { kind: 'secret', name, file: context.file, secret };
}

/**
 * Returns one case for each vector in the member `signer_side`. If that member is not a list, returns one case for the
 * whole member.
 */
function signerCases(json: JsonObject, context: ShapeContext): readonly ReadCase[] {
  const part = present(json, SIGNERS);
  const reason = `${SIGNERS}: vectors of signers have no known form`;
  if (part === undefined) return [];
  if (!isListOfObjects(part)) return [notJudged(context, SIGNERS, reason)];
  return readList(json, SIGNERS, context, (_vector, name) => notJudged(context, name, reason));
}

const HMAC_FILE = z.object({
  secret: required.text,
  previous_secret: optional.text,
  url: optional.text,
});

/** Reads `{secret, vectors: [{id, timestamp, raw_body, expected_signature, …}], rejection_vectors: […]}`. */
export function readHmac(json: JsonObject, context: ShapeContext): readonly ReadCase[] {
  const { secret, previous_secret: previousSecret, url } = parse(HMAC_FILE, json);
  const sender = { scheme: 'hmac', secret, url, ...defined({ previousSecret }) } as const;
  const deliveries = DELIVERIES.flatMap((list) =>
    readList(json, list, context, (vector, name) =>
      hmacCase(sender, vector, name, list !== 'vectors', context),
    ),
  );
  const secrets = readList(json, SECRETS, context, (vector, name) => secretCase(vector, name, context));
  return [...deliveries, ...secrets, ...signerCases(json, context)];
}

const BEARER = z.object(DELIVERY);
const BEARER_FILE = z.object({
  token: required.text,
  previous_token: optional.text,
  url: optional.text,
});

/** Reads `{token, vectors: [{id, headers, raw_body, expected}]}`. */
export function readBearer(json: JsonObject, context: ShapeContext): readonly ReadCase[] {
  const { token: secret, previous_token: previousSecret, url } = parse(BEARER_FILE, json);
  const sender = { scheme: 'bearer', secret, url, ...defined({ previousSecret }) } as const;
  return readList(json, 'vectors', context, (vector, name) => {
    const given = read(BEARER, vector, '', context, 'may have others');
    const headers = headersWith({ Authorization: `Bearer ${secret}` }, given.headers);
    const expected = someExpectation(given.expected, 'expected', context);
    return deliveryCase('bearer', name, sender, { headers, body: bodyOf(given, name) }, expected, context);
  });
}

/** The token with which envelopes are sent, so that they need no signature. */
const TOKEN = 'a-token-of-the-vectors-for-envelopes';

/** The members with an envelope's body: `payload`, which is serialised, or `raw_body`, which is used byte for byte. */
const ENVELOPE = { payload: z.optional(z.unknown()), ...RAW_BODY, edition: optional.text };
const POSITIVE = z.object({
  ...ENVELOPE,
  same_event_as: optional.text,
  expected_warnings: optional.texts,
  expected_event_kind: optional.text,
  expected_family: z.optional(z.nullable(required.text)),
});
const NEGATIVE = z.object({
  ...ENVELOPE,
  expected_error: z.optional(z.unknown()),
  expected_status: optional.number,
});

function envelopeCase(
  vector: JsonObject,
  name: string,
  edition: string | undefined,
  expected: Expectation,
  context: ShapeContext,
): DeliveryCase {
  const body = envelopeBody(vector, name);
  const sender = { scheme: 'bearer', secret: TOKEN, edition } as const;
  const headers = { ...JSON_TYPE, Authorization: `Bearer ${TOKEN}` };
  return deliveryCase('envelope', name, sender, { headers, body }, expected, context);
}

const envelopeBody = (vector: JsonObject, name: string): Uint8Array =>
  Object.hasOwn(vector, 'payload')
    ? new TextEncoder().encode(JSON.stringify(vector['payload']))
    : bodyOf(parse(z.object(RAW_BODY), vector), name);

/**
 * Adds a first request, with the copy of the event in another vector. This vector's own copy must then be accepted as a
 * duplicate, without being handled again.
 */
function afterFirst(delivery: DeliveryCase, id: string, json: JsonObject): DeliveryCase {
  const { positive = [] } = parse(z.object({ positive: optional.objects }), json);
  const first = positive.find((vector) => vector['id'] === id || vector['name'] === id);
  const [step] = delivery.steps;
  if (!first || !step) throw missing('same_event_as', 'the id of another vector in positive');
  const { warnings: _warnings, ...expected } = step.expected;
  return {
    ...delivery,
    steps: [
      { ...step, name: id, request: { ...step.request, body: envelopeBody(first, id) }, expected: TAKEN },
      { ...step, expected: { ...expected, kind: 'duplicate', handled: false } },
    ],
  };
}

const TAKEN: Expectation = { status: 200, code: null };

function errorOf(vector: JsonObject, { codeOf }: ShapeContext): string {
  const error = present(vector, 'expected_error');
  const code = isJsonObject(error) ? error['code'] : error;
  if (typeof code !== 'string') throw missing('expected_error', 'a code');
  return codeOf(code);
}

/** Reads `{positive: [{id, payload}], negative: [{id, payload, expected_error}]}`. */
export function readEnvelopes(json: JsonObject, context: ShapeContext): readonly ReadCase[] {
  return [
    ...readList(json, 'positive', context, (vector, name) => {
      const given = read(POSITIVE, vector, '', context, 'may have others');
      const expected = defined({
        ...TAKEN,
        warnings: given.expected_warnings,
        eventKind: given.expected_event_kind,
        family: given.expected_family,
      });
      const delivery = envelopeCase(vector, name, given.edition, expected, context);
      return given.same_event_as === undefined ? delivery : afterFirst(delivery, given.same_event_as, json);
    }),
    ...readList(json, 'negative', context, (vector, name) => {
      const given = read(NEGATIVE, vector, '', context, 'may have others');
      const expected = defined({ code: errorOf(vector, context), status: given.expected_status });
      return envelopeCase(vector, name, given.edition, expected, context);
    }),
  ];
}
