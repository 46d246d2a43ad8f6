import type { VectorResult } from './judge.ts';

/** `formatReport`'s options. */
export interface ReportOptions {
  /** ANSI colours, for terminals. `false`. */
  readonly colour?: boolean;
  /** Failures and the summary only. `false`. */
  readonly failuresOnly?: boolean;
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

/** One line; a failure has what was expected, what came, and the rest of it below. */
function lineOf(
  { passed, kind, name, file, expected, actual, detail }: VectorResult,
  paint: (passed: boolean) => Paint,
): string {
  const head = `${paint(passed)(passed ? 'ok  ' : 'FAIL')} ${kind} ${harmless(name.replace(/\s+/g, ' '))}`;
  if (passed) return head;
  const lines = [
    head,
    indented(`file     ${file}`),
    indented(`expected ${expected}`),
    indented(`actual   ${actual}`),
  ];
  if (detail !== undefined) lines.push(indented(detail));
  return lines.join('\n');
}

/** One vector as text. */
export function formatResult(result: VectorResult, { colour = false }: ReportOptions = {}): string {
  return lineOf(result, (passed) => (colour ? ansi(passed ? 32 : 31) : PLAIN));
}

/** All of them, one line a vector, and at the end `N passed, N failed`. */
export function formatReport(results: readonly VectorResult[], options: ReportOptions = {}): string {
  const shown = results.filter(({ passed }) => !passed || options.failuresOnly !== true);
  const failed = results.filter(({ passed }) => !passed).length;
  const summary = `${results.length - failed} passed, ${failed} failed`;
  return [...shown.map((result) => formatResult(result, options)), summary].join('\n');
}
