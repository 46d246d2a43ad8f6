import type { DeliveryCase, Expectation, VectorCase } from '../case.ts';
import { actionExpectation } from './action.ts';
import { readEach } from './each.ts';
import {
  DEFAULT_AGENT,
  DEFAULT_NOW_MS,
  DEFAULT_URL,
  type JsonObject,
  type ShapeContext,
  aliasOf,
  bodyOf,
} from './members.ts';
import { objectOf, objectsOf, optionalText, plainSetup, present, textOf } from './members.ts';
import { someExpectation } from './expectation.ts';
import { mostMembers } from './known.ts';
import { protocolFor } from '../../protocol.ts';
import { VectorError } from '../errors.ts';

/** A secret of a file, as its sender is registered. */
function setupOf(
  json: JsonObject,
  scheme: 'hmac' | 'bearer',
  nowMs: number,
  context: ShapeContext,
): DeliveryCase['setup'] {
  const name = scheme === 'hmac' ? 'secret' : 'token';
  const previousSecret = optionalText(json, `previous_${name}`);
  const legacy = {
    scheme,
    secret: textOf(json, name),
    ...(previousSecret !== undefined && { previousSecret }),
  };
  const sender = { agentUrl: DEFAULT_AGENT, keys: [], edition: context.edition, legacy };
  return plainSetup(context, { url: optionalText(json, 'url') ?? DEFAULT_URL, nowMs, senders: [sender] });
}

/** Seconds as a number or as text. What is neither needs a `reference_now` of its own. */
function timestampOf(vector: JsonObject): { readonly text: string; readonly ms: number } {
  const value = present(vector, 'timestamp');
  if (typeof value !== 'number' && typeof value !== 'string') {
    throw new VectorError('timestamp is missing or wrong: expected Unix seconds');
  }
  const reference = present(vector, 'reference_now') ?? value;
  const ms = Number(reference) * 1000;
  if (!Number.isFinite(ms)) throw new VectorError('reference_now is missing: expected Unix seconds');
  return { text: String(value), ms };
}

/** `headers` stand for those of the scheme; a null takes one away. */
function headersWith(
  own: Readonly<Record<string, string>>,
  vector: JsonObject,
): Record<string, string | string[]> {
  const more = present(vector, 'headers') === undefined ? {} : objectOf(vector, 'headers');
  const names = new Set(Object.keys(more).map((name) => name.toLowerCase()));
  const kept = Object.entries(own).filter(([name]) => !names.has(name.toLowerCase()));
  const given = Object.entries(more).filter(
    (entry): entry is [string, string | string[]] => entry[1] !== null,
  );
  return Object.fromEntries([...kept, ...given]);
}

/** What either scheme's vectors have. */
const DELIVERY = ['headers', 'raw_body', 'raw_body_base64', 'expected'] as const;
const SIGNATURE = ['expected_signature', 'signature'] as const;
const HMAC = [...DELIVERY, ...SIGNATURE, 'timestamp', 'reference_now', 'expected_verifier_action'] as const;

/** `expected_verifier_action`, `expected`, or both; where neither is there, what its list says, else the digest counts. */
function hmacExpectation(vector: JsonObject, refused: boolean, context: ShapeContext): Expectation {
  const said = ['expected_verifier_action', 'expected'].filter((name) => present(vector, name) !== undefined);
  if (said.length === 0) return refused ? { authentic: false } : actionExpectation(vector);
  return {
    ...(said.includes('expected_verifier_action') && actionExpectation(vector)),
    ...(said.includes('expected') && someExpectation(vector['expected'], 'expected', context)),
  };
}

function hmacCase(
  file: JsonObject,
  vector: JsonObject,
  name: string,
  refused: boolean,
  context: ShapeContext,
): DeliveryCase {
  mostMembers(vector, '', HMAC, context);
  const { hmacSignatureHeader, hmacTimestampHeader } = protocolFor(context.protocol);
  const { text, ms } = timestampOf(vector);
  const headers = {
    'Content-Type': 'application/json',
    [hmacTimestampHeader]: text,
    [hmacSignatureHeader]: textOf(vector, aliasOf(vector, name, SIGNATURE) ?? SIGNATURE[0]),
  };
  const setup = setupOf(file, 'hmac', ms, context);
  const request = {
    method: 'POST',
    url: setup.url,
    headers: headersWith(headers, vector),
    body: bodyOf(vector, 'raw_body'),
  };
  const expected = hmacExpectation(vector, refused, context);
  const steps = [{ request, nowMs: ms, handlerFails: false, expected }];
  return { kind: 'hmac', name, file: context.file, setup, steps };
}

/** Lists of an HMAC file: `rejection_vectors` are refused, where they do not say something else. */
export const HMAC_LISTS: readonly string[] = ['vectors', 'rejection_vectors'];

/** `{secret, vectors: [{id, timestamp, raw_body, expected_signature, …}], rejection_vectors: […]}`. */
export function readHmac(json: JsonObject, context: ShapeContext): readonly VectorCase[] {
  return HMAC_LISTS.flatMap((list) =>
    readEach(objectsOf(json, list), list.slice(0, -1), context, (vector, name) =>
      hmacCase(json, vector, name, list !== 'vectors', context),
    ),
  );
}

/** `{token, vectors: [{id, headers, raw_body, expected}]}`. */
export function readBearer(json: JsonObject, context: ShapeContext): readonly VectorCase[] {
  const nowMs = DEFAULT_NOW_MS;
  return readEach(objectsOf(json, 'vectors'), 'vector', context, (vector, name): DeliveryCase => {
    mostMembers(vector, '', DELIVERY, context);
    const setup = setupOf(json, 'bearer', nowMs, context);
    const own = { 'Content-Type': 'application/json', Authorization: `Bearer ${textOf(json, 'token')}` };
    const request = {
      method: 'POST',
      url: setup.url,
      headers: headersWith(own, vector),
      body: bodyOf(vector, 'raw_body'),
    };
    const expected = someExpectation(vector['expected'], 'expected', context);
    const steps = [{ request, nowMs, handlerFails: false, expected }];
    return { kind: 'bearer', name, file: context.file, setup, steps };
  });
}
