// Reads a Fetch API `Request` for a receiver, and makes a `Response` of its answer (admission.md §2.8).
// Called by `fetch.ts` and `hono.ts`, which say where the headers, the target and the body come from.

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

/** Passes the body to the ticket, to its end or until the ticket accepts no more. */
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
  // The result is read from `ticket.outcome`, so the promise's result and errors are ignored here.
  await ticket.end().catch(() => undefined);
}

async function readBody({ body }: Request, ticket: AdapterTicket): AdapterTicket['outcome'] {
  if (!body) return ticket.end();
  const reader: ReadableStreamDefaultReader<Uint8Array> = body.getReader();
  void drain(reader, ticket);
  const outcome = await ticket.outcome;
  // Cancels a body that was not read to its end. The promise is not awaited, because the sender may take any time to
  // notice.
  reader.cancel().catch(() => undefined);
  return outcome;
}

/** The body of a request, from any kind of stream. */
export interface FetchBody {
  /** Aborts when the sender has disconnected. */
  readonly signal: AbortSignal;
  /** Returns true if other code has read the body, or is reading it. */
  readonly isLost: () => boolean;
  /** Passes the body to the ticket, to its end or until the ticket accepts no more. Never rejects. */
  readonly read: (ticket: AdapterTicket) => AdapterTicket['outcome'];
  /** Drops the body unread, because the headers decided the answer. */
  readonly cancel: () => void;
}

/** Returns the `Request`'s own body. */
export function bodyOf(request: Request): FetchBody {
  return {
    signal: request.signal,
    isLost: () => request.bodyUsed || request.body?.locked === true,
    read: (ticket) => readBody(request, ticket),
    cancel: () => void request.body?.cancel().catch(() => undefined),
  };
}

/** One `Request` that an adapter processes, with further facts from the platform. */
export interface FetchExchange {
  /** The advice for the error if other code has already read the body; each adapter has its own text. */
  readonly fix: string;
  readonly method: string;
  readonly body: FetchBody;
  /** The header fields. Repeated lines are kept if the platform gives them. */
  readonly headers: HeadersInput;
  /** The request target, as received if the platform gives it. */
  readonly url: string;
  /** True if `url` comes from the normalised `Request.url`, and is not as received. */
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
  // Without an outcome the sender has disconnected, but the platform still needs a `Response`.
  return outcome?.response ?? FAULT_REPLY;
}

function toResponse({ status, headers, body }: Reply): Response {
  // The body is passed as bytes, because `Response` would add a Content-Type to a string.
  const bytes = new TextEncoder().encode(body);
  return new Response(bytes.byteLength === 0 ? null : bytes, {
    status,
    headers: { ...headers, 'Content-Length': String(bytes.byteLength) },
  });
}

/** Answers one request. An exception is answered with 503. Never rejects. */
export async function answerFetch(receiver: AdapterReceiver, exchange: FetchExchange): Promise<Response> {
  try {
    return toResponse(await answer(receiver, exchange));
  } catch (error) {
    return toResponse(faultReply(receiver, error));
  }
}
