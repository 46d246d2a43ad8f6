import type { DeliveryCase, VectorCase } from '../case.ts';
import { actionExpectation } from './action.ts';
import { readEach } from './each.ts';
import {
  DEFAULT_AGENT,
  DEFAULT_NOW_MS,
  DEFAULT_URL,
  type JsonObject,
  type ShapeContext,
  bodyOf,
  isJsonObject,
} from './members.ts';
import { objectOf, objectsOf, optionalText, plainSetup, present, textOf } from './members.ts';
import { stepExpectation } from './expectation.ts';
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

/** `{secret, vectors: [{id, timestamp, raw_body, expected_signature, …}]}`. */
export function readHmac(json: JsonObject, context: ShapeContext): readonly VectorCase[] {
  const { hmacSignatureHeader, hmacTimestampHeader } = protocolFor(context.protocol);
  return readEach(objectsOf(json, 'vectors'), 'vector', context, (vector, name): DeliveryCase => {
    const { text, ms } = timestampOf(vector);
    const headers = {
      'Content-Type': 'application/json',
      [hmacTimestampHeader]: text,
      [hmacSignatureHeader]: textOf(vector, 'expected_signature'),
    };
    const setup = setupOf(json, 'hmac', ms, context);
    const request = {
      method: 'POST',
      url: setup.url,
      headers: headersWith(headers, vector),
      body: bodyOf(vector, 'raw_body'),
    };
    const expected = isJsonObject(vector['expected'])
      ? stepExpectation(vector['expected'])
      : actionExpectation(vector);
    const steps = [{ request, nowMs: ms, handlerFails: false, expected }];
    return { kind: 'hmac', name, file: context.file, setup, steps };
  });
}

/** `{token, vectors: [{id, headers, raw_body, expected}]}`. */
export function readBearer(json: JsonObject, context: ShapeContext): readonly VectorCase[] {
  const nowMs = DEFAULT_NOW_MS;
  return readEach(objectsOf(json, 'vectors'), 'vector', context, (vector, name): DeliveryCase => {
    const setup = setupOf(json, 'bearer', nowMs, context);
    const own = { 'Content-Type': 'application/json', Authorization: `Bearer ${textOf(json, 'token')}` };
    const request = {
      method: 'POST',
      url: setup.url,
      headers: headersWith(own, vector),
      body: bodyOf(vector, 'raw_body'),
    };
    const expected = stepExpectation(objectOf(vector, 'expected'));
    const steps = [{ request, nowMs, handlerFails: false, expected }];
    return { kind: 'bearer', name, file: context.file, setup, steps };
  });
}
