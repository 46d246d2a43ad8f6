import { pathAndQuery } from '../config/public-url.ts';
import type { RequestInfo } from '../options.ts';
import type { Reply } from '../outcome.ts';
import {
  ABORTED,
  bodyConsumed,
  bodyTooLarge,
  bodyTooSlow,
  collector,
  type BodyLimits,
  type BodyRead,
  type Collector,
} from './body.ts';
import { FAULT_REPLY, faultReply, type DoorReceiver } from './door.ts';

export type { DoorReceiver } from './door.ts';

const CONSUMED =
  'request.json(), .text() or another reader was called before the webhook handler, and the exact bytes of the ' +
  'body are gone. Hand the request over first, or hand over a request.clone() made before it was read.';

type Reader = ReadableStreamDefaultReader<Uint8Array>;

async function drain(reader: Reader, parts: Collector, maxBodyBytes: number): Promise<BodyRead> {
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return parts.whole();
      if (!parts.add(value)) return bodyTooLarge(maxBodyBytes);
    }
  } catch {
    return ABORTED;
  }
}

async function fetchBody(request: Request, limits: BodyLimits): Promise<BodyRead> {
  const { maxBodyBytes, bodyDeadlineMs } = limits;
  if (request.bodyUsed || request.body?.locked) return bodyConsumed(CONSUMED);
  const parts = collector(maxBodyBytes);
  if (!request.body) return parts.whole();
  const reader: Reader = request.body.getReader();
  let deadline: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<BodyRead>((resolve) => {
    deadline = setTimeout(() => resolve(bodyTooSlow(bodyDeadlineMs)), bodyDeadlineMs);
  });
  const result = await Promise.race([drain(reader, parts, maxBodyBytes), late]);
  clearTimeout(deadline);
  // Not awaited: whoever sends the body may take as long as it likes to notice.
  if (result.kind === 'refused') reader.cancel().catch(() => undefined);
  return result;
}

async function answer(receiver: DoorReceiver, request: Request): Promise<Reply> {
  // Path and query only: `Request.url` is made by the framework, and its authority is no part of what was received.
  const info: RequestInfo = {
    url: pathAndQuery(request.url),
    method: request.method,
    signal: request.signal,
  };
  const early = receiver.door.check(request.headers, info);
  if (early) {
    request.body?.cancel().catch(() => undefined);
    return early.response;
  }
  const body = await fetchBody(request, receiver.door);
  switch (body.kind) {
    case 'aborted':
      // Nobody is there to read it, but a `Response` has to be returned.
      return FAULT_REPLY;
    case 'refused':
      return receiver.door.refuse(body.code, body.detail).response;
    case 'whole':
      return (await receiver.verifyAndDispatch(body.bytes, request.headers, info)).response;
  }
}

function toResponse({ status, headers, body }: Reply): Response {
  // Bytes, because a string body would add a Content-Type of its own.
  const bytes = new TextEncoder().encode(body);
  return new Response(bytes.byteLength === 0 ? null : bytes, {
    status,
    headers: { ...headers, 'Content-Length': String(bytes.byteLength) },
  });
}

/**
 * `Request` → `Response`, for Deno, Bun, workers, Next route handlers, Hono and whatever else speaks the Fetch API.
 * It never rejects. The body is counted while it is read, and must not have been read before: one that was is
 * answered 503 `body_consumed`.
 *
 * `Request.url` is a normalised URL: with a `publicUrl` that ends in `/*`, sellers must have been given the URL in
 * that form. With an exact `publicUrl` it makes no difference.
 */
export function webhookHandler(receiver: DoorReceiver): (request: Request) => Promise<Response> {
  return async (request) =>
    toResponse(await answer(receiver, request).catch((error: unknown) => faultReply(receiver, error)));
}
