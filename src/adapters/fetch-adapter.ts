import type { HeadersInput } from '../shared/delivery.ts';
import type { Reply } from '../shared/outcome.ts';
import {
  consumed,
  FAULT_REPLY,
  faultReply,
  isTicket,
  type AdapterReceiver,
  type AdapterTicket,
} from './shared-adapter.ts';

/** To its end, or as far as it is wanted. */
async function drain(reader: ReadableStreamDefaultReader<Uint8Array>, ticket: AdapterTicket): Promise<void> {
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

async function readBody({ body }: Request, ticket: AdapterTicket): AdapterTicket['outcome'] {
  if (!body) return ticket.end();
  const reader: ReadableStreamDefaultReader<Uint8Array> = body.getReader();
  void drain(reader, ticket);
  const outcome = await ticket.outcome;
  // Of a body that was not wanted to its end. Not awaited: the sender may take as long as it likes to notice.
  reader.cancel().catch(() => undefined);
  return outcome;
}

/** Where the bytes of a request come from. */
export interface FetchBody {
  /** Aborts when the sender has gone. */
  readonly signal: AbortSignal;
  /** It was read before. */
  readonly isLost: () => boolean;
  /** To its end, or as far as the ticket wants it. Never rejects. */
  readonly read: (ticket: AdapterTicket) => AdapterTicket['outcome'];
  /** It is not wanted. */
  readonly cancel: () => void;
}

/** A `Request`'s own. */
export function bodyOf(request: Request): FetchBody {
  return {
    signal: request.signal,
    isLost: () => request.bodyUsed || request.body?.locked === true,
    read: (ticket) => readBody(request, ticket),
    cancel: () => void request.body?.cancel().catch(() => undefined),
  };
}

/** One `Request` on its way through a door, with what the platform knows of it beside. */
export interface FetchExchange {
  /** The line of the user's to change where the body was read before: a text of the door's own. */
  readonly fix: string;
  readonly method: string;
  readonly body: FetchBody;
  /** With repeated lines where the platform shows them. */
  readonly headers: HeadersInput;
  /** The request target, as received where the platform shows it. */
  readonly url: string;
  /** It does not: the target is that of a `Request.url`. */
  readonly urlNormalised: boolean;
}

async function answer(
  receiver: AdapterReceiver,
  { fix, method, body, headers, url, urlNormalised }: FetchExchange,
): Promise<Reply> {
  const opened = await receiver.open(headers, { url, urlNormalised, method, signal: body.signal });
  if (!isTicket(opened)) {
    body.cancel();
    return opened.response;
  }
  if (body.isLost()) return consumed(receiver, opened, fix);
  const outcome = await body.read(opened);
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
export async function answerFetch(receiver: AdapterReceiver, exchange: FetchExchange): Promise<Response> {
  try {
    return toResponse(await answer(receiver, exchange));
  } catch (error) {
    return toResponse(faultReply(receiver, error));
  }
}
