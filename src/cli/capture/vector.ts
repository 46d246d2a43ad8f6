import type { Jwk } from '../../crypto/engine.ts';
import { UsageError } from '../usage-error.ts';
import type { Capture } from './capture.ts';
import {
  absoluteUrl,
  asRecord,
  bodyBytes,
  headerPairs,
  type JsonObject,
  targetOf,
  textOr,
} from './members.ts';

interface VectorKeys {
  /** Beside those of `keys.json`, or instead of them. */
  readonly keys: readonly Jwk[];
  /** Which of `keys.json` count; all where absent. */
  readonly kids?: readonly string[];
}

/** `jwks_override` has further keys by `kid`, or is a set that stands for all of them. */
function keysOf(json: JsonObject): VectorKeys {
  const override = asRecord(json['jwks_override']) ?? {};
  const set = override['keys'];
  if (Array.isArray(set))
    return { keys: (set as unknown[]).filter((jwk) => asRecord(jwk) !== undefined) as Jwk[], kids: [] };
  const keys = Object.entries(override).flatMap(([kid, value]) => {
    const jwk = asRecord(value);
    return jwk ? [{ kid, ...jwk }] : [];
  });
  const named = json['jwks_ref'];
  return { keys, ...(Array.isArray(named) && { kids: named.map(String) }) };
}

/** A conformance vector: `request`, with `reference_now` in Unix seconds. */
export function readVector(json: JsonObject): Capture {
  const request = asRecord(json['request']);
  if (!request) throw new UsageError('the vector has no request object');
  const url = absoluteUrl(request['url'], 'the vector');
  const now = json['reference_now'];
  const base64 = request['body_base64'];
  if (request['body'] === undefined && base64 === undefined) {
    throw new UsageError('the vector has no request.body (or body_base64)');
  }
  return {
    form: 'vector',
    method: textOr(request['method'], 'POST'),
    url,
    target: targetOf(url),
    headers: headerPairs(request['headers'], 'the vector'),
    body: base64 === undefined ? bodyBytes(request['body']) : bodyBytes(base64, true),
    ...(typeof now === 'number' && { receivedAt: now * 1000 }),
    ...keysOf(json),
    notes: [],
  };
}
