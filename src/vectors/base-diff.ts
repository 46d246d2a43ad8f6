const encoder = new TextEncoder();

/** Index of the first byte in which two texts differ; their length where one is the start of the other. */
function firstDifference(a: Uint8Array, b: Uint8Array): number {
  const at = a.findIndex((byte, i) => byte !== b[i]);
  return at < 0 ? a.length : at;
}

/** The line of a text that holds a byte, counted from 0, and the column in characters. */
function placeOf(text: string, byte: number): { readonly line: number; readonly column: number } {
  const before = new TextDecoder().decode(encoder.encode(text).subarray(0, byte));
  const lines = before.split('\n');
  return { line: lines.length - 1, column: lines.at(-1)?.length ?? 0 };
}

const line = (label: string, text: string | undefined): string => `  ${label} | ${text ?? '(no such line)'}`;

/**
 * Two signature bases line by line, with a mark under the first byte that differs.
 * @param actual undefined where none could be built.
 * @returns undefined where they are the same.
 */
export function compareBases(expected: string, actual: string | undefined): string | undefined {
  if (expected === actual) return undefined;
  if (actual === undefined)
    return [
      'signature base: none could be built',
      ...expected.split('\n').map((text) => line('expected', text)),
    ].join('\n');
  const at = firstDifference(encoder.encode(expected), encoder.encode(actual));
  const { line: marked, column } = placeOf(expected, at);
  const [wanted, got] = [expected.split('\n'), actual.split('\n')];
  const rows = Array.from({ length: Math.max(wanted.length, got.length) }, (_, i) => {
    if (wanted[i] === got[i] && i !== marked) return line('        ', wanted[i]);
    const mark = i === marked ? [`${' '.repeat('  expected | '.length + column)}^`] : [];
    return [line('expected', wanted[i]), line('actual  ', got[i]), ...mark].join('\n');
  });
  return [
    `signature base: first difference at byte ${at} (line ${marked + 1}, column ${column + 1})`,
    ...rows,
  ].join('\n');
}
