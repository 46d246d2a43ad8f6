// Reads the decoded body of a seller's answer, up to a limit of bytes (calls.md §4.5). Used by `mcpCaller` and
// `a2aCaller`.
import { readCapped } from '../keys/safe-fetch.ts';
import { orAborted } from '../shared/time-limits.ts';
import { AnswerRefusedError } from './refused-answer.ts';

/** The runtime's decoder for each `Content-Encoding` that HTTP clients commonly request. */
const DECODERS = { gzip: 'gzip', 'x-gzip': 'gzip', deflate: 'deflate' } as const;

/**
 * Returns the answer with its body decoded once. No encoding is requested, but some servers encode anyway (calls.md
 * §4.5). The body is decoded only as far as it is read.
 * @throws AnswerRefusedError for any encoding but gzip and deflate.
 */
export function decoded(response: Response): Response {
  const encoding = response.headers.get('content-encoding')?.trim().toLowerCase() ?? '';
  if (encoding === '' || encoding === 'identity' || response.body === null) return response;
  if (!Object.hasOwn(DECODERS, encoding)) {
    response.body.cancel().catch(() => undefined);
    throw new AnswerRefusedError('it has an encoding that was not requested');
  }
  const { status } = response;
  const headers = new Headers(response.headers);
  headers.delete('content-encoding');
  headers.delete('content-length');
  return new Response(decodedStream(response.body, encoding as keyof typeof DECODERS), { status, headers });
}

function decodedStream(
  body: ReadableStream<Uint8Array<ArrayBuffer>>,
  encoding: keyof typeof DECODERS,
): ReadableStream<Uint8Array<ArrayBuffer>> {
  const source = body.getReader();
  let lost: { readonly error: unknown } | undefined;
  const encoded = new ReadableStream<Uint8Array<ArrayBuffer>>(
    {
      pull: async (controller) => {
        try {
          const { done, value } = await source.read();
          if (done) controller.close();
          else controller.enqueue(value);
        } catch (error) {
          lost = { error };
          controller.error(error);
        }
      },
      cancel: (reason) => source.cancel(reason),
    },
    { highWaterMark: 0 },
  );
  const reader = encoded.pipeThrough(new DecompressionStream(DECODERS[encoding])).getReader();
  return new ReadableStream<Uint8Array<ArrayBuffer>>(
    {
      pull: async (controller) => {
        try {
          const { done, value } = await reader.read();
          if (done) controller.close();
          else controller.enqueue(value as Uint8Array<ArrayBuffer>);
        } catch (cause) {
          // If the connection failed, its error is passed on, because the answer itself is not at fault.
          controller.error(
            lost ? lost.error : new AnswerRefusedError(`its ${encoding} cannot be decoded`, { cause }),
          );
        }
      },
      cancel: (reason) => reader.cancel(reason),
    },
    { highWaterMark: 0 },
  );
}

/** The most bytes that are read of an answer with a status of 400 or more, which is an error in any case. */
const MAX_ERROR_BYTES = 65_536;

/**
 * Returns the whole body, decoded.
 * @returns only the first 64 KiB if the answer is an error.
 * @throws AnswerRefusedError as soon as the body is known to be longer than `maxBytes`.
 */
export async function wholeBody(
  response: Response,
  maxBytes: number,
  signal: AbortSignal,
): Promise<Uint8Array> {
  if (response.status >= 400) return firstBytes(response, Math.min(maxBytes, MAX_ERROR_BYTES), signal);
  const bytes = await readCapped(response, maxBytes, signal);
  if (bytes === undefined) throw tooLong(maxBytes);
  return bytes;
}

export const tooLong = (maxBytes: number): AnswerRefusedError =>
  new AnswerRefusedError(`it has more than ${maxBytes} bytes`);

async function firstBytes(response: Response, most: number, signal: AbortSignal): Promise<Uint8Array> {
  const kept: Uint8Array[] = [];
  let left = most;
  for await (const chunk of chunksOf(response, signal)) {
    kept.push(chunk.subarray(0, left));
    left -= chunk.byteLength;
    if (left <= 0) break;
  }
  const whole = new Uint8Array(kept.reduce((sum, { byteLength }) => sum + byteLength, 0));
  let at = 0;
  for (const chunk of kept) {
    whole.set(chunk, at);
    at += chunk.byteLength;
  }
  return whole;
}

/**
 * Returns the chunks of a body as they arrive, until the signal fires. If the caller stops early, the remaining chunks
 * are discarded.
 */
export async function* chunksOf(response: Response, signal: AbortSignal): AsyncGenerator<Uint8Array> {
  if (response.body === null) return;
  const reader = (response.body as ReadableStream<Uint8Array>).getReader();
  try {
    for (;;) {
      // oxlint-disable-next-line no-await-in-loop -- one chunk after the other
      const { done, value } = await orAborted(reader.read(), signal);
      if (done) return;
      yield value;
    }
  } finally {
    reader.cancel().catch(() => undefined);
  }
}
