import type { Readable } from 'node:stream';
import type { DoorTicket } from './door.ts';

/** Marks a connection of HTTP/1.1 on which the last answer was given. */
export const CLOSING: unique symbol = Symbol('proto-webhooks.closing');

/** What is needed of `http.IncomingMessage`, `http2.Http2ServerRequest` and what frameworks make of them. */
export interface NodeRequest extends Readable {
  readonly method?: string | undefined;
  readonly url?: string | undefined;
  /** The target as received, where a framework that mounts handlers cuts its own path from `url`. */
  readonly originalUrl?: string;
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>;
  /** The whole request has arrived (HTTP/1.1). */
  readonly complete?: boolean;
  /** Name, value, name, value, …: repeated lines stay visible. */
  readonly rawHeaders?: readonly string[];
  readonly httpVersionMajor?: number;
  /** One object a connection (HTTP/1.1). */
  readonly socket?: { destroy(): unknown; [CLOSING]?: true } | null;
  /** HTTP/2 only. */
  readonly stream?: {
    respond(headers: Readonly<Record<string, string | number>>, options: { endStream: boolean }): void;
    close(code: number): void;
  };
  /** Where body parsers leave the body. Taken when it is a `Uint8Array`. */
  readonly body?: unknown;
  /** Where Google Cloud Functions, Nest and `express.json({ verify })` leave the bytes. Likewise. */
  readonly rawBody?: unknown;
}

/** RFC 9112 §9.6: what is pipelined behind an answer with `Connection: close` must not be processed; Node would. */
export const isClosing = (req: NodeRequest): boolean => req.socket?.[CLOSING] === true;

const DECODED_FIX = 'req.setEncoding() was called: remove the call.';

/** A body that something else read and kept as bytes. */
export function bytesGiven({ rawBody, body }: NodeRequest): Uint8Array | undefined {
  if (rawBody instanceof Uint8Array) return rawBody;
  return body instanceof Uint8Array ? body : undefined;
}

/**
 * What to change where the stream cannot give the bytes any more.
 * @param fix the line to change where it was read before.
 */
export function lostBytes(req: NodeRequest, fix: string): string | undefined {
  // Not `req.body`: Express 4 sets it to {} without reading anything.
  if (req.readableDidRead) return fix;
  return req.readableEncoding === null ? undefined : DECODED_FIX;
}

/** Reads the stream to its end, or as far as it is wanted. Never rejects. */
export async function readStream(req: NodeRequest, ticket: DoorTicket): DoorTicket['outcome'] {
  if (req.destroyed) {
    ticket.abort();
    return undefined;
  }
  // Whatever is still to come stays in the socket: nothing beyond the cap is read, let alone kept.
  const onData = (chunk: Uint8Array): void => {
    if (!ticket.add(chunk)) req.pause();
  };
  const onEnd = (): void => (isClosing(req) ? ticket.abort() : end());
  const end = (): void => void ticket.end().catch(() => undefined);
  // An upload that breaks off ends with `error`, `close` or both, and without `end`.
  const onGone = (): void => ticket.abort();
  req.on('data', onData).on('end', onEnd).on('error', onGone).on('close', onGone);
  // What paused it (a proxy, a middleware that waits) has handed it over: a listener alone would wait for ever.
  req.resume();
  const outcome = await ticket.outcome;
  req.off('data', onData).off('end', onEnd).off('error', onGone).off('close', onGone);
  if (!req.readableEnded) req.pause();
  return outcome;
}
