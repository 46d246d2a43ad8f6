import type { DoorReceiver } from './door.ts';
import { createPieces } from './pieces.ts';

/** How reading a body ended. `aborted`: the sender is gone, and there is nobody to answer. */
export type BodyRead =
  { readonly kind: 'whole'; readonly bytes: Uint8Array } | BodyRefused | { readonly kind: 'aborted' };

interface BodyRefused {
  readonly kind: 'refused';
  readonly code: Parameters<DoorReceiver['door']['refuse']>[0];
  /** For the owner's log: what happened and, where there is one, the fix. */
  readonly detail: string;
}

/** What bounds one body: the cap in bytes, the total deadline in ms, and the room that all bodies share. */
export interface BodyLimits {
  readonly maxBodyBytes: number;
  readonly bodyDeadlineMs: number;
  /** False: no room for that many bytes more; nothing was counted. */
  readonly hold: (bytes: number) => boolean;
}

export const ABORTED: BodyRead = { kind: 'aborted' };

/** @param fix the line to change. */
export const bodyConsumed = (fix: string): BodyRead => ({
  kind: 'refused',
  code: 'body_consumed',
  detail: `the body was read or decoded before the webhook handler, and its exact bytes are gone. ${fix}`,
});

const bodyTooLarge = (maxBodyBytes: number): BodyRefused => ({
  kind: 'refused',
  code: 'payload_too_large',
  detail: `the body is over ${maxBodyBytes} bytes; reading stopped there`,
});

const NO_ROOM: BodyRefused = {
  kind: 'refused',
  code: 'overloaded',
  detail: 'the bodies of deliveries under way fill maxBufferedBytes; raise it, or add processes',
};

const NOT_BYTES: BodyRefused = {
  kind: 'refused',
  code: 'body_consumed',
  detail:
    "the stream of the body gives something else than bytes (Uint8Array), and the bytes that were signed are gone. Hand over the platform's own request, or a stream of its bytes.",
};

/** 503 and not 408: sellers stop for good on a 4xx, and a slow network is not their last word. */
export const bodyTooSlow = (bodyDeadlineMs: number): BodyRead => ({
  kind: 'refused',
  code: 'body_timeout',
  detail: `the body was not complete after ${bodyDeadlineMs} ms`,
});

/** A body that something else read and kept as bytes. */
export function bodyGiven(bytes: Uint8Array, { maxBodyBytes, hold }: BodyLimits): BodyRead {
  if (bytes.byteLength > maxBodyBytes) return bodyTooLarge(maxBodyBytes);
  return hold(bytes.byteLength) ? { kind: 'whole', bytes } : NO_ROOM;
}

/** Collects chunks up to the cap; what would go over it is not kept. */
export interface Collector {
  /** A refusal: the chunk was not kept; stop reading. */
  add(chunk: unknown): BodyRefused | undefined;
  /** Once. */
  whole(): BodyRead;
}

/** Counts while reading: `Content-Length` alone is not trusted (verification.md §7.28). */
export function collector({ maxBodyBytes, hold }: BodyLimits): Collector {
  const pieces = createPieces();
  let size = 0;
  return {
    add(chunk) {
      if (!(chunk instanceof Uint8Array)) return NOT_BYTES;
      size += chunk.byteLength;
      if (size > maxBodyBytes) return bodyTooLarge(maxBodyBytes);
      if (!hold(chunk.byteLength)) return NO_ROOM;
      pieces.add(chunk);
      return undefined;
    },
    whole: () => ({ kind: 'whole', bytes: joined(pieces.take(), size) }),
  };
}

function joined(chunks: readonly Uint8Array[], size: number): Uint8Array {
  const [first] = chunks;
  if (first && chunks.length === 1) return first;
  const bytes = new Uint8Array(size);
  let offset = 0;
  for (const chunk of chunks) {
    bytes.set(chunk, offset);
    offset += chunk.byteLength;
  }
  return bytes;
}

/**
 * Runs `use` with the limits of one delivery, and gives back what it held once it is over: the body is kept until its
 * answer is known.
 */
export async function withRoom<T>(
  { door }: DoorReceiver,
  use: (limits: BodyLimits) => Promise<T>,
): Promise<T> {
  const { maxBodyBytes, bodyDeadlineMs } = door;
  let held = 0;
  const hold = (bytes: number): boolean => {
    if (!door.hold(bytes)) return false;
    held += bytes;
    return true;
  };
  try {
    return await use({ maxBodyBytes, bodyDeadlineMs, hold });
  } finally {
    door.release(held);
  }
}
