// Shows one delivery in full, with bodies as text or base64 (dev.md §3.1). The API calls it.
import { isUtf8 } from 'node:buffer';
import type { Entry } from './delivery-log.ts';
import { baseOf, linesOf, wireLines } from './explaining.ts';
import type { DeliveryFull, ShownAnswer, ShownBytes } from './wire.ts';

/** Drops an incomplete UTF-8 character from the end of a cut body. */
function withoutPart(bytes: Uint8Array): Uint8Array {
  for (let left = 0; left < 4; left += 1) {
    const whole = bytes.subarray(0, bytes.byteLength - left);
    if (isUtf8(whole)) return whole;
  }
  return bytes;
}

function shownBytes(bytes: Uint8Array, length: number): ShownBytes {
  const cut = length > bytes.byteLength;
  const whole = cut ? withoutPart(bytes) : bytes;
  const buffer = Buffer.from(whole.buffer, whole.byteOffset, whole.byteLength);
  const encoding = isUtf8(whole) ? 'utf8' : 'base64';
  return { encoding, text: buffer.toString(encoding), bytes: length, cut };
}

function shownAnswer({ outcome, status, headers, body, cut }: NonNullable<Entry['answer']>): ShownAnswer {
  return {
    outcome,
    ...(status !== undefined && { status }),
    headers: Object.entries(headers),
    body: { encoding: 'utf8', text: body, bytes: Buffer.byteLength(body), cut },
  };
}

/** Returns a delivery in full, as the API answers it (dev.md §3.1). */
export function fullOf(entry: Entry, protocol: string): DeliveryFull {
  const { row, posted, to, bytes, answer, explanation, explainError, tellings } = entry;
  const base = baseOf(posted, posted.url, protocol);
  return {
    ...row,
    request: {
      method: posted.method,
      url: posted.url,
      ...(to !== undefined && { to }),
      headers: to === undefined ? linesOf(posted) : wireLines(posted, bytes),
      body: shownBytes(posted.body, bytes),
    },
    ...(base !== undefined && { signatureBase: base }),
    ...(answer && { answer: shownAnswer(answer) }),
    ...(explanation && { explanation }),
    ...(explainError !== undefined && { explainError }),
    tellings,
  };
}
