import type { JsonObject } from '../../codec/members.ts';
import { isInstant } from '../numbers.ts';
import { UsageError } from '../usage-error.ts';
import type { Capture } from './capture.ts';
import { absoluteUrl, asRecord, bodyBytes, headerPairs, targetOf, textOr } from './members.ts';

/** A conformance vector: `request`, with `reference_now` in Unix seconds. */
export function readVector(json: JsonObject): Capture {
  const request = asRecord(json['request']);
  if (!request) throw new UsageError('the vector has no request object');
  const url = absoluteUrl(request['url'], 'the vector');
  const now = json['reference_now'];
  if (typeof now === 'number' && !isInstant(now * 1000)) {
    throw new UsageError('the vector has a reference_now that is no instant: expected Unix seconds');
  }
  const base64 = request['body_base64'];
  if (request['body'] === undefined && base64 === undefined) {
    throw new UsageError('the vector has no request.body (or body_base64)');
  }
  return {
    form: 'vector',
    method: textOr(request['method'], 'POST').toUpperCase(),
    url,
    target: targetOf(url),
    headers: headerPairs(request['headers'], 'the vector'),
    body: base64 === undefined ? bodyBytes(request['body']) : bodyBytes(base64, true),
    ...(typeof now === 'number' && { receivedAt: now * 1000 }),
    vector: json,
    notes: [],
  };
}
