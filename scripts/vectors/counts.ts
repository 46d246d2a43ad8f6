import { formatEnd } from '../../src/vectors/for-tests.ts';
import type { VectorResult } from '../../src/vectors/index.ts';

type Results = readonly VectorResult[];

/** @throws Error where one has failed: what is counted is what passes. */
function requirePassed(results: Results): void {
  const end = formatEnd(results);
  if (!/^\d+ passed, 0 failed$/.test(end)) throw new Error(`the package's own vectors: ${end}`);
}

/** Where documents say how many vectors there are: what stands there, with the number to be written. */
const PLACES: readonly (readonly [file: string, pattern: RegExp, text: (results: Results) => string])[] = [
  ['README.md', /(?<= by )\d+(?= vectors )/g, (results) => String(results.length)],
  ['vectors/README.md', /(?<=These are )\d+(?= vectors\.)/g, (results) => String(results.length)],
  [
    'docs/conformance.md',
    /(?<=This runs the package's )\d+(?= \[vectors\])/g,
    (results) => String(results.length),
  ],
];

/** Documents that have a count. */
export const COUNTED: readonly string[] = PLACES.map(([file]) => file);

/** A document with the counts of a run. @throws where a vector failed, or it does not have its place, exactly once. */
export function withCounts(file: string, document: string, results: Results): string {
  requirePassed(results);
  return PLACES.filter(([name]) => name === file).reduce((before, [, pattern, text]) => {
    const found = [...before.matchAll(pattern)].length;
    if (found !== 1) throw new Error(`${file}: ${pattern.source} is there ${found} times, expected once`);
    return before.replace(pattern, text(results));
  }, document);
}
