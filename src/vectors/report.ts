import type { VectorResult } from './judge.ts';
import type { Skipped } from './case.ts';

/** `formatReport`'s options. */
export interface ReportOptions {
  /** ANSI colours, for terminals. `false`. */
  readonly colour?: boolean;
  /** Failures, what was skipped, and the summary only. `false`. */
  readonly failuresOnly?: boolean;
  /** What `onSkipped` was told of. */
  readonly skipped?: readonly Skipped[];
}

type Paint = (text: string) => string;

const PLAIN: Paint = (text) => text;
const ansi =
  (code: number): Paint =>
  (text) =>
    `\u001B[${code}m${text}\u001B[0m`;

/** Vectors come from others: nothing in them may steer a terminal. */
const harmless = (text: string): string => text.replace(/[^\P{Cc}\n]/gu, '?');
const indented = (text: string): string => harmless(text).replace(/^/gm, '    ');

/** One line; below it notes, and of a failure what was expected, what came, and the rest of it. */
function lineOf(
  { passed, kind, name, file, expected, actual, detail, notes = [] }: VectorResult,
  paint: (passed: boolean) => Paint,
): string {
  const head = `${paint(passed)(passed ? 'ok  ' : 'FAIL')} ${kind} ${harmless(name.replace(/\s+/g, ' '))}`;
  const lines = notes.map((note) => `note     ${note}`);
  if (!passed) {
    lines.unshift(`file     ${file}`, `expected ${expected}`, `actual   ${actual}`);
    if (detail !== undefined) lines.splice(3, 0, detail);
  }
  return [head, ...lines.map(indented)].join('\n');
}

/** One vector as text. */
export function formatResult(result: VectorResult, { colour = false }: ReportOptions = {}): string {
  return lineOf(result, (passed) => (colour ? ansi(passed ? 32 : 31) : PLAIN));
}

/** A line for all that were skipped alike: vectors for one reason, members of one name, each file by itself. */
function skippedLines(skipped: readonly Skipped[]): readonly string[] {
  const counts = new Map<string, number>();
  for (const { what, name, why } of skipped) {
    const alike = `${what === 'vector' ? '' : ` ${name}`}: ${why}`;
    const line = `${what}\n${alike}`;
    counts.set(line, (counts.get(line) ?? 0) + 1);
  }
  return [...counts].map(([line, count]) => {
    const [what = '', alike = ''] = line.split('\n');
    return `skipped ${count} ${what}${count === 1 ? '' : 's'}${alike}`;
  });
}

/** `N passed, N failed`, and what else there is to say. */
function summaryOf(results: readonly VectorResult[], skipped: readonly Skipped[]): string {
  const failed = results.filter(({ passed }) => !passed).length;
  const noted = results.filter(({ notes }) => notes !== undefined).length;
  // Members are no vectors: their lines count them.
  const left = skipped.filter(({ what }) => what !== 'member').length;
  return [
    `${results.length - failed} passed`,
    `${failed} failed`,
    ...(left > 0 ? [`${left} skipped`] : []),
    ...(noted > 0 ? [`${noted} with a note`] : []),
  ].join(', ');
}

/** What follows the vectors: what was skipped, and the summary. */
export function formatEnd(results: readonly VectorResult[], skipped: readonly Skipped[] = []): string {
  return [...skippedLines(skipped).map((line) => harmless(line)), summaryOf(results, skipped)].join('\n');
}

/** All of them, one line a vector, then what was skipped, and at the end `N passed, N failed`. */
export function formatReport(results: readonly VectorResult[], options: ReportOptions = {}): string {
  const shown = results.filter(({ passed }) => !passed || options.failuresOnly !== true);
  return [...shown.map((result) => formatResult(result, options)), formatEnd(results, options.skipped)].join(
    '\n',
  );
}
