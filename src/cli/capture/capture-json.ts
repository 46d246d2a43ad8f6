// Reads captured deliveries in JSON: an entry of an HTTP Archive (HAR), or a conformance vector (test case).
// `readCapture` calls these functions for input that begins with `{`.
import type { JsonObject } from '../../codec/members.ts';
import { isInstant, UsageError } from '../shell.ts';
import {
  absoluteUrl,
  asRecord,
  bodyBytes,
  type Capture,
  contentLengths,
  headerPairs,
  requireWhole,
  targetOf,
  textOr,
} from './capture.ts';

/** True for a whole HAR file, one entry of it, or the entry's request alone with its `postData`. */
export function isHar(json: JsonObject): boolean {
  const request = asRecord(json['request']);
  return (
    asRecord(json['log']) !== undefined ||
    'startedDateTime' in json ||
    (request !== undefined && ('postData' in request || 'httpVersion' in request))
  );
}

function isSigned(entry: unknown): boolean {
  const headers = asRecord(asRecord(entry)?.['request'])?.['headers'];
  if (!Array.isArray(headers)) return false;
  return headers.some((header) =>
    /^(?:signature|x-[a-z0-9-]+-signature)$/i.test(textOr(asRecord(header)?.['name'], '')),
  );
}

function entryOf(json: JsonObject, index: number | undefined): JsonObject {
  const log = asRecord(json['log']);
  if (!log) return json;
  const entries: unknown[] = Array.isArray(log['entries']) ? (log['entries'] as unknown[]) : [];
  const signed = entries.filter(isSigned);
  if (index === undefined && signed.length > 1) {
    throw new UsageError(
      `the HAR has ${signed.length} signed requests: choose one by --entry, from 0 to ${entries.length - 1}`,
    );
  }
  const entry = asRecord(index === undefined ? (signed[0] ?? entries[0]) : entries[index]);
  if (!entry) throw new UsageError(`the HAR has ${entries.length} entries; --entry names none of them`);
  return entry;
}

/**
 * Returns the body sizes that a HAR entry declares, in its headers and as `bodySize`. In HAR 1.2, a `bodySize` of -1
 * means unknown, and 0 means no body.
 */
function declaredSizes(request: JsonObject, headers: readonly (readonly [string, string])[]): number[] {
  const size = request['bodySize'];
  return [...contentLengths(headers), ...(typeof size === 'number' && size >= 0 ? [size] : [])];
}

/** Returns the request body of a HAR entry. @throws UsageError if the body is missing or cut short. */
function bodyOf(
  request: JsonObject,
  method: string,
  headers: readonly (readonly [string, string])[],
): Uint8Array {
  const data = asRecord(request['postData']);
  const body = bodyBytes(data?.['text'], data?.['encoding'] === 'base64');
  const declared = declaredSizes(request, headers);
  const most = Math.max(0, ...declared);
  if (body.length === 0 && (most > 0 || (declared.length === 0 && !/^(?:GET|HEAD)$/i.test(method)))) {
    const told = most > 0 ? ` though it says ${most} bytes, which are missing` : '';
    throw new UsageError(`the HAR entry has no body (request.postData)${told}: export it with content`);
  }
  requireWhole(body, declared);
  return body;
}

/** Reads an entry of an HTTP Archive 1.2. */
export function readHar(json: JsonObject, index?: number): Capture {
  const entry = entryOf(json, index);
  const request = asRecord(entry['request']);
  if (!request) throw new UsageError('the HAR entry has no request');
  const url = absoluteUrl(request['url'], 'the HAR entry');
  const method = textOr(request['method'], 'POST');
  const headers = headerPairs(request['headers'], 'the HAR entry');
  const body = bodyOf(request, method, headers);
  const started = Date.parse(textOr(entry['startedDateTime'], ''));
  return {
    form: 'HAR entry',
    method,
    url,
    target: targetOf(url),
    // Removes the pseudo-headers of HTTP/2 exports. `:authority` is kept, because the host check reads it like `Host`.
    headers: headers.filter(([name]) => !/^:(?!authority$)/.test(name)),
    body,
    ...(!Number.isNaN(started) && { receivedAt: started }),
    notes: [],
  };
}

/** Reads the `request` of a conformance vector (test case). `reference_now`, Unix seconds, is the time of receipt. */
export function readVector(json: JsonObject): Capture {
  const request = asRecord(json['request']);
  if (!request) throw new UsageError('the vector has no request object');
  const url = absoluteUrl(request['url'], 'the vector');
  const now = json['reference_now'];
  if (typeof now === 'number' && !isInstant(now * 1000)) {
    throw new UsageError('the vector has a reference_now that is not an instant: expected Unix seconds');
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
