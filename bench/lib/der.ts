/** Writes one INTEGER of DER: no leading zeros, and one where the first bit would be a sign. @returns its end. */
function integer(source: Uint8Array, from: number, target: Uint8Array, to: number): number {
  let first = from;
  while (first < from + 31 && source[first] === 0) first += 1;
  const sign = (source[first] ?? 0) >= 0x80 ? 1 : 0;
  const digits = from + 32 - first;
  target[to] = 0x02;
  target[to + 1] = digits + sign;
  target.set(source.subarray(first, from + 32), to + 2 + sign);
  return to + 2 + sign + digits;
}

/** r‖s of P-256 as OpenSSL reads it: the benchmarks' own, so that no contestant is measured against itself. */
export function derSignature(signature: Uint8Array): Uint8Array {
  const der = new Uint8Array(72);
  const end = integer(signature, 32, der, integer(signature, 0, der, 2));
  der[0] = 0x30;
  der[1] = end - 2;
  return der.subarray(0, end);
}
