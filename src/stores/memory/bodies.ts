/** Room for bodies: most are small and gone at once, and an `ArrayBuffer` of its own for each is memory of the system's. */
export interface Slab {
  bytes: Uint8Array;
  used: number;
}

/** Where a body is kept. */
export interface KeptBody {
  readonly bytes: Uint8Array;
  readonly start: number;
  readonly end: number;
}

/** What one body that is kept for long keeps with it, at most. */
const SLAB_BYTES = 16_384;
/** Longer ones have bytes of their own. */
const SHARED_MOST = 4096;

export function newSlab(): Slab {
  return { bytes: new Uint8Array(0), used: 0 };
}

/** A copy: the caller's bytes may be a view into a pooled buffer, or change. */
export function keepBody(slab: Slab, body: Uint8Array): KeptBody {
  const { length } = body;
  if (length > SHARED_MOST) return { bytes: new Uint8Array(body), start: 0, end: length };
  if (slab.used + length > slab.bytes.length) {
    slab.bytes = new Uint8Array(SLAB_BYTES);
    slab.used = 0;
  }
  const { bytes, used: start } = slab;
  bytes.set(body, start);
  slab.used = start + length;
  return { bytes, start, end: slab.used };
}

/** A copy again: whoever gets it may change it. */
export function bodyOf({ bytes, start, end }: KeptBody): Uint8Array {
  return bytes.slice(start, end);
}
