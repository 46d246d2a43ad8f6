import type { Readable } from 'node:stream';

/** Long enough for an answer to cross the world and for the sender to hang up. Ms. */
const LINGER_MS = 1_000;

/** What a sender may have written before it reads, by and large. */
const LINGER_BYTES = 65_536;

/**
 * Waits, after an answer was written, for the sender to read it. RFC 9112 §9.6: closing while a body still arrives
 * resets the connection, and the reset can overtake the answer; a seller that never sees its 413 keeps trying.
 * What arrives is forgotten, at most 64 KiB of it; beyond that it is not even read. Ends when the body does, when
 * the sender hangs up, and after a second in any case.
 */
export function linger(body: Readable): Promise<void> {
  return new Promise((resolve) => {
    let left = LINGER_BYTES;
    const forget = (chunk: Uint8Array | string): void => {
      left -= chunk.length;
      if (left < 0) body.pause();
    };
    const done = (): void => {
      clearTimeout(deadline);
      body.off('data', forget).off('end', done).off('error', done).off('close', done);
      resolve();
    };
    const deadline = setTimeout(done, LINGER_MS);
    deadline.unref();
    body.on('data', forget).on('end', done).on('error', done).on('close', done);
    body.resume();
    if (body.destroyed || body.readableEnded) done();
  });
}
