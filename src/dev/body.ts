// Reads request bodies up to a size limit, and answers with JSON. Called by the API and by the tools of dev's sellers.
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { JsonObject } from '../codec/members.ts';
import { parseStrictObject } from '../codec/strict-json.ts';
import { ApiError, badRequest } from './api-error.ts';

/**
 * Reads the body of a request.
 * @throws ApiError `body_too_large` if the body, or already its announced length, is over `most`. `bad_request` if the
 * connection breaks off.
 */
export async function readBytes(request: IncomingMessage, most: number): Promise<Uint8Array> {
  const tooLarge = new ApiError('body_too_large', `The body is over ${most} bytes.`);
  if (Number(request.headers['content-length']) > most) throw tooLarge;
  const chunks: Uint8Array[] = [];
  let length = 0;
  try {
    for await (const chunk of request as AsyncIterable<Uint8Array>) {
      length += chunk.byteLength;
      if (length > most) throw tooLarge;
      chunks.push(chunk);
    }
  } catch (error) {
    throw error === tooLarge ? tooLarge : badRequest('The body broke off.');
  }
  return Buffer.concat(chunks);
}

/** Reads the body as a JSON object of at most `most` bytes. @throws ApiError for any other body or media type */
export async function readJsonBody(request: IncomingMessage, most: number): Promise<JsonObject> {
  if (!/^application\/json\s*(?:;|$)/i.test(request.headers['content-type'] ?? '')) {
    throw new ApiError('unsupported_media_type', 'Expected Content-Type: application/json.');
  }
  const json = parseStrictObject(await readBytes(request, most));
  if (!json.ok) throw badRequest(`The body is not a JSON object (${json.detail}).`);
  return json.value;
}

export function sendJson(
  response: ServerResponse,
  status: number,
  value: unknown,
  headers: Readonly<Record<string, string>> = {},
): void {
  response.writeHead(status, {
    'Content-Type': 'application/json',
    'Cache-Control': 'no-store',
    'X-Content-Type-Options': 'nosniff',
    ...headers,
  });
  response.end(JSON.stringify(value));
}
