import type { Readable } from 'node:stream';
import {
  ABORTED,
  bodyConsumed,
  bodyGiven,
  bodyTooSlow,
  collector,
  type BodyLimits,
  type BodyRead,
} from './body.ts';

/** Marks a connection of HTTP/1.1 on which the last answer was given. */
export const CLOSING: unique symbol = Symbol('proto-webhooks.closing');

/** What is needed of `http.IncomingMessage`, `http2.Http2ServerRequest` and what frameworks make of them. */
export interface NodeRequest extends Readable {
  readonly method?: string | undefined;
  readonly url?: string | undefined;
  /** The target as received, where a framework that mounts handlers cuts its own path from `url`. */
  readonly originalUrl?: string;
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>;
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

const DECODED_FIX = 'req.setEncoding() was called: remove the call.';

/**
 * The body as bytes, from the request's stream or from where a parser kept it. Never rejects.
 * @param fix the line to change where it was read before.
 */
export async function nodeBody(req: NodeRequest, limits: BodyLimits, fix: string): Promise<BodyRead> {
  if (req.rawBody instanceof Uint8Array) return bodyGiven(req.rawBody, limits);
  if (req.body instanceof Uint8Array) return bodyGiven(req.body, limits);
  // Not `req.body`: Express 4 sets it to {} without reading anything.
  if (req.readableDidRead) return bodyConsumed(fix);
  if (req.readableEncoding !== null) return bodyConsumed(DECODED_FIX);
  if (req.destroyed) return ABORTED;
  return fromStream(req, limits);
}

function fromStream(req: Readable, limits: BodyLimits): Promise<BodyRead> {
  const { bodyDeadlineMs } = limits;
  return new Promise((resolve) => {
    const parts = collector(limits);
    const settle = (result: BodyRead): void => {
      clearTimeout(deadline);
      req.off('data', onData).off('end', onEnd).off('error', onGone).off('close', onGone);
      // Whatever is still to come stays in the socket: nothing beyond the cap is read, let alone kept.
      if (result.kind === 'refused') req.pause();
      resolve(result);
    };
    const onData = (chunk: unknown): void => {
      const refused = parts.add(chunk);
      if (refused) settle(refused);
    };
    const onEnd = (): void => settle(parts.whole());
    // An upload that breaks off ends with `error`, `close` or both, and without `end`.
    const onGone = (): void => settle(ABORTED);
    // One deadline for all of it: an idle timeout does not stop a drip.
    const deadline = setTimeout(() => settle(bodyTooSlow(bodyDeadlineMs)), bodyDeadlineMs);
    deadline.unref();
    req.on('data', onData).on('end', onEnd).on('error', onGone).on('close', onGone);
    // What paused it (a proxy, a middleware that waits) has handed it over: a listener alone would wait for ever.
    req.resume();
  });
}
