import type { HeadersInput } from '../delivery.ts';
import type { RequestInfo } from '../options.ts';
import type { Reply } from '../outcome.ts';
import {
  ABORTED,
  bodyConsumed,
  bodyTooSlow,
  collector,
  withRoom,
  type BodyLimits,
  type BodyRead,
  type Collector,
} from './body.ts';
import { FAULT_REPLY, faultReply, type DoorReceiver } from './door.ts';

type Reader = ReadableStreamDefaultReader<Uint8Array>;

async function drain(reader: Reader, parts: Collector): Promise<BodyRead> {
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return parts.whole();
      const refused = parts.add(value);
      if (refused) return refused;
    }
  } catch {
    return ABORTED;
  }
}

async function fetchBody(request: Request, limits: BodyLimits, fix: string): Promise<BodyRead> {
  const { bodyDeadlineMs } = limits;
  if (request.bodyUsed || request.body?.locked) return bodyConsumed(fix);
  const parts = collector(limits);
  if (!request.body) return parts.whole();
  const reader: Reader = request.body.getReader();
  let deadline: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<BodyRead>((resolve) => {
    deadline = setTimeout(() => resolve(bodyTooSlow(bodyDeadlineMs)), bodyDeadlineMs);
  });
  const result = await Promise.race([drain(reader, parts), late]);
  clearTimeout(deadline);
  // Not awaited: whoever sends the body may take as long as it likes to notice.
  if (result.kind === 'refused') reader.cancel().catch(() => undefined);
  return result;
}

/** One `Request` on its way through a door, with what the platform knows of it beside. */
export interface FetchVisit {
  /** The line to change where the body was read before: one of `consumed.ts`. */
  readonly fix: string;
  readonly request: Request;
  /** With repeated lines where the platform shows them. */
  readonly headers: HeadersInput;
  /** The request target, as received where the platform shows it. */
  readonly url: string;
}

async function answer(receiver: DoorReceiver, { fix, request, headers, url }: FetchVisit): Promise<Reply> {
  const info: RequestInfo = { url, method: request.method, signal: request.signal };
  const early = receiver.door.check(headers, info);
  if (early) {
    request.body?.cancel().catch(() => undefined);
    return early.response;
  }
  return withRoom(receiver, async (limits) => {
    const body = await fetchBody(request, limits, fix);
    switch (body.kind) {
      case 'aborted':
        // Nobody is there to read it, but a `Response` has to be returned.
        return FAULT_REPLY;
      case 'refused':
        return receiver.door.refuse(body.code, body.detail).response;
      case 'whole':
        return (await receiver.verifyAndDispatch(body.bytes, headers, info)).response;
    }
  });
}

function toResponse({ status, headers, body }: Reply): Response {
  // Bytes, because a string body would add a Content-Type of its own.
  const bytes = new TextEncoder().encode(body);
  return new Response(bytes.byteLength === 0 ? null : bytes, {
    status,
    headers: { ...headers, 'Content-Length': String(bytes.byteLength) },
  });
}

/** Reads, hands over, answers. An exception is answered with 503; it never rejects. */
export async function answerFetch(receiver: DoorReceiver, visit: FetchVisit): Promise<Response> {
  return toResponse(await answer(receiver, visit).catch((error: unknown) => faultReply(receiver, error)));
}
