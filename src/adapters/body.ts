import type { Door } from '../options.ts';

/** How reading a body ended. `aborted`: the sender is gone, and there is nobody to answer. */
export type BodyRead =
  | { readonly kind: 'whole'; readonly bytes: Uint8Array }
  | {
      readonly kind: 'refused';
      readonly code: Parameters<Door['refuse']>[0];
      /** For the owner's log: what happened and, where there is one, the fix. */
      readonly detail: string;
    }
  | { readonly kind: 'aborted' };

/** `Door` has them: the cap in bytes and the total deadline in ms. */
export type BodyLimits = Pick<Door, 'maxBodyBytes' | 'bodyDeadlineMs'>;

export const ABORTED: BodyRead = { kind: 'aborted' };

export const bodyConsumed = (detail: string): BodyRead => ({
  kind: 'refused',
  code: 'body_consumed',
  detail,
});

export const bodyTooLarge = (maxBodyBytes: number): BodyRead => ({
  kind: 'refused',
  code: 'payload_too_large',
  detail: `the body is over ${maxBodyBytes} bytes; reading stopped there`,
});

/** 503 and not 408: sellers stop for good on a 4xx, and a slow network is not their last word. */
export const bodyTooSlow = (bodyDeadlineMs: number): BodyRead => ({
  kind: 'refused',
  code: 'body_timeout',
  detail: `the body was not complete after ${bodyDeadlineMs} ms`,
});

/** A body that something else read and kept as bytes. */
export const bodyGiven = (bytes: Uint8Array, { maxBodyBytes }: BodyLimits): BodyRead =>
  bytes.byteLength > maxBodyBytes ? bodyTooLarge(maxBodyBytes) : { kind: 'whole', bytes };

/** Collects chunks up to the cap; what would go over it is not kept. */
export interface Collector {
  /** False: the chunk goes over the cap; stop reading. */
  add(chunk: Uint8Array): boolean;
  whole(): BodyRead;
}

/** Counts while reading: `Content-Length` alone is not trusted (verification.md, section 7). */
export function collector(maxBodyBytes: number): Collector {
  const chunks: Uint8Array[] = [];
  let size = 0;
  return {
    add(chunk) {
      size += chunk.byteLength;
      if (size > maxBodyBytes) return false;
      chunks.push(chunk);
      return true;
    },
    whole: () => ({ kind: 'whole', bytes: joined(chunks, size) }),
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
