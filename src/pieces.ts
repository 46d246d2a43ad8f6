/** Chunks under this size are copied into blocks of it. Bytes. */
const BLOCK_BYTES = 4096;

/** A body in the order of its bytes, in no more pieces than its size accounts for. */
export interface Pieces {
  add(chunk: Uint8Array): void;
  /** What there is, once. */
  take(): readonly Uint8Array[];
}

/**
 * Keeps chunks. A `Uint8Array` weighs hundreds of bytes beside what it holds, and whoever uploads chooses how much that
 * is: an upload of single bytes, each kept as it came, would take many times what is counted. So small chunks are
 * copied. The first is not: most bodies are one chunk.
 */
export function createPieces(): Pieces {
  const pieces: Uint8Array[] = [];
  let block = new Uint8Array(0);
  let start = 0;
  let end = 0;
  const seal = (): void => {
    if (end > start) pieces.push(block.subarray(start, end));
    start = end;
  };
  const copy = (chunk: Uint8Array): void => {
    for (let from = 0; from < chunk.byteLength;) {
      if (end === block.byteLength) {
        seal();
        block = new Uint8Array(BLOCK_BYTES);
        start = end = 0;
      }
      const part = chunk.subarray(from, from + block.byteLength - end);
      block.set(part, end);
      end += part.byteLength;
      from += part.byteLength;
    }
  };
  return {
    add(chunk) {
      const first = pieces.length === 0 && end === 0;
      if (chunk.byteLength < BLOCK_BYTES && !first) {
        copy(chunk);
      } else if (chunk.byteLength > 0) {
        seal();
        pieces.push(chunk);
      }
    },
    take() {
      seal();
      return pieces.splice(0);
    },
  };
}
