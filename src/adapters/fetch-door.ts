import type { HeadersInput } from '../delivery.ts';
import type { RequestInfo } from '../options.ts';
import type { Reply } from '../outcome.ts';
import { consumed, FAULT_REPLY, faultReply, isTicket, type DoorReceiver, type DoorTicket } from './door.ts';

/** To its end, or as far as it is wanted. */
async function drain(reader: ReadableStreamDefaultReader<Uint8Array>, ticket: DoorTicket): Promise<void> {
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) break;
      if (!ticket.add(value)) return;
    }
  } catch {
    ticket.abort();
    return;
  }
  // What came of it, `outcome` says.
  await ticket.end().catch(() => undefined);
}

async function readBody({ body }: Request, ticket: DoorTicket): DoorTicket['outcome'] {
  if (!body) return ticket.end();
  const reader: ReadableStreamDefaultReader<Uint8Array> = body.getReader();
  void drain(reader, ticket);
  const outcome = await ticket.outcome;
  // Of a body that was not wanted to its end. Not awaited: whoever sends it may take as long as it likes to notice.
  reader.cancel().catch(() => undefined);
  return outcome;
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
  const opened = await receiver.open(headers, info);
  if (!isTicket(opened)) {
    request.body?.cancel().catch(() => undefined);
    return opened.response;
  }
  if (request.bodyUsed || request.body?.locked) return consumed(receiver, opened, fix);
  const outcome = await readBody(request, opened);
  // Nobody is there to read it, but a `Response` has to be returned.
  return outcome?.response ?? FAULT_REPLY;
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
