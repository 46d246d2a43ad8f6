import { inLines } from '../paint.ts';
import type { Paint, Report, Style } from '../shell.ts';
import type { ProbeResult } from './case.ts';

const MARKS: Readonly<Record<ProbeResult['verdict'], readonly [Style, string]>> = {
  pass: ['good', 'pass'],
  fail: ['bad', 'FAIL'],
  skipped: ['dim', 'skip'],
  undecided: ['warn', '?'],
};

function resultLine(result: ProbeResult, paint: Paint): string {
  const { name, sends, expected, answered, verdict, why, note } = result;
  const [style, mark] = MARKS[verdict];
  const more = verdict === 'pass' ? note : `${why}${verdict === 'fail' ? `; expected ${expected}` : ''}`;
  const detail = more === undefined ? '' : `\n      ${paint(verdict === 'pass' ? 'dim' : style, more)}`;
  return `${paint(style, mark.padEnd(5))} ${name.padEnd(24)} ${sends}  ${paint('dim', `-> ${answered}`)}${detail}`;
}

function countsOf(results: readonly ProbeResult[]): Record<ProbeResult['verdict'], number> {
  const counts = { pass: 0, fail: 0, skipped: 0, undecided: 0 };
  for (const { verdict } of results) counts[verdict] += 1;
  return counts;
}

/** What the verb prints, and whether the receiver passed. */
export function reportOf(url: string, results: readonly ProbeResult[], hint: readonly string[]): Report {
  const counts = countsOf(results);
  const { pass, fail, skipped, undecided } = counts;
  const summary = `${pass} passed, ${fail} failed, ${skipped} skipped${undecided === 0 ? '' : `, ${undecided} undecided`}`;
  return {
    ok: fail === 0 && pass > 0,
    json: {
      url,
      ok: fail === 0 && pass > 0,
      counts,
      results,
      ...(hint.length > 0 && { hint: hint.join('\n') }),
    },
    text: (paint) =>
      [
        ...inLines(results).map((result) => resultLine(result, paint)),
        '',
        ...hint,
        ...(hint.length > 0 ? [''] : []),
        paint(fail === 0 ? 'good' : 'bad', summary),
      ].join('\n'),
  };
}
