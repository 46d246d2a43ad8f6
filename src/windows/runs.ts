// Sets of window numbers, kept as runs of consecutive numbers (owed.md §2.1). Pure.
// Called by stream.ts and terms.ts, and by the reconciler.

/** Consecutive numbers: the first number, and the number after the last. */
export type Run = readonly [first: number, end: number];

/** Runs in ascending order, with a gap between any two. */
export type Runs = readonly Run[];

export function has(runs: Runs, number: number): boolean {
  return runs.some(([first, end]) => first <= number && number < end);
}

export function count(runs: Runs): number {
  return runs.reduce((sum, [first, end]) => sum + end - first, 0);
}

/** Returns the numbers that are in `a` or in `b`. */
export function union(a: Runs, b: Runs): Runs {
  const joined: [number, number][] = [];
  for (const [first, end] of [...a, ...b].toSorted((one, other) => one[0] - other[0])) {
    const last = joined.at(-1);
    if (first >= end) continue;
    if (last && first <= last[1]) last[1] = Math.max(last[1], end);
    else joined.push([first, end]);
  }
  return joined;
}

/** Returns the numbers of `a` that are not in `b`. */
export function without(a: Runs, b: Runs): Runs {
  const left: Run[] = [];
  let at = 0;
  for (const [first, end] of a) {
    let from = first;
    while ((b[at]?.[1] ?? Infinity) <= from) at += 1;
    for (const [goneFrom, goneEnd] of overlapping(b, at, end)) {
      if (from < goneFrom) left.push([from, goneFrom]);
      from = Math.max(from, goneEnd);
    }
    if (from < end) left.push([from, end]);
  }
  return left;
}

/** Yields the runs from index `at` on that begin before the number `end`. */
function* overlapping(runs: Runs, at: number, end: number): Generator<Run> {
  for (let next = at; next < runs.length; next += 1) {
    const run = runs[next];
    if (!run || run[0] >= end) return;
    yield run;
  }
}

/** Returns the numbers that are in both `a` and `b`. */
export function common(a: Runs, b: Runs): Runs {
  return without(a, without(a, b));
}

/**
 * The stored form of `Runs`: the first run as two numbers, and the numbers after that run as bits of hexadecimal
 * digits. A year of hours takes at most 2.2 KB.
 */
export type PackedRuns = readonly [first: number, end: number, bits?: string];

export function packRuns(runs: Runs): PackedRuns {
  const [head, ...rest] = runs;
  const end = rest.at(-1)?.[1];
  if (!head) return [0, 0];
  if (end === undefined) return head;
  const digits = Array.from({ length: Math.ceil((end - head[1]) / 4) }, () => 0);
  for (const [first, stop] of rest) {
    for (let bit = first - head[1]; bit < stop - head[1]; bit += 1) {
      digits[bit >> 2] = (digits[bit >> 2] ?? 0) | (1 << (bit & 3));
    }
  }
  return [...head, digits.map((digit) => digit.toString(16)).join('')];
}

export function unpackRuns([first, end, bits = '']: PackedRuns): Runs {
  const runs: [number, number][] = first < end ? [[first, end]] : [];
  for (let bit = 0; bit < bits.length * 4; bit += 1) {
    const isSet = (Number.parseInt(bits[bit >> 2] ?? '0', 16) & (1 << (bit & 3))) !== 0;
    const last = runs.at(-1);
    if (!isSet) continue;
    if (last && last[1] === end + bit) last[1] += 1;
    else runs.push([end + bit, end + bit + 1]);
  }
  return runs;
}
