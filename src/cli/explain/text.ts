import type { Paint, Style } from '../shell.ts';
import type { Step } from './checklist.ts';
import type { Explanation } from './explain.ts';
import type { Finding } from './finding.ts';

const VERDICTS: Readonly<Record<Step['verdict'], readonly [Style, string]>> = {
  pass: ['good', 'pass'],
  fail: ['bad', 'FAIL'],
  open: ['dim', '-'],
};

function stepLine(step: Step, paint: Paint): string {
  const [style, word] = VERDICTS[step.verdict];
  const why = [step.code, step.detail].filter((part) => part !== undefined && part !== '').join(': ');
  const detail = why === '' ? '' : paint('dim', `  ${why}`);
  return `${paint(style, word.padEnd(5))} ${step.id.padEnd(9)} ${step.title}${detail}`;
}

/** One fix may mend several: it is said once, behind the last of them. */
function findingLines(finding: Finding, next: Finding | undefined, paint: Paint): string[] {
  const word = finding.proved ? 'Cause' : 'Likely';
  const head = `${paint('bold', `${word} (${finding.cause}, step ${finding.step}):`)} ${finding.says}`;
  return next?.fix === finding.fix ? [head] : [head, `${paint('bold', 'Fix:')} ${finding.fix}`, ''];
}

/** What has to be so besides, where a step that could be judged was left open. */
function acceptance(steps: readonly Step[]): string {
  const revocation = steps.find(({ id, verdict }) => id === '9' && verdict === 'open');
  const condition = revocation ? ', and its key is not revoked' : '';
  const digest = steps.find(({ id, verdict }) => id === '11' && verdict === 'open');
  const body = digest ? ', its body is as it was signed' : '';
  return `A receiver would accept this delivery, if it has not had it before${body}${condition}.`;
}

/** The checklist, then each cause with its fix. */
export function explanationText(
  { ok, steps, findings }: Explanation,
  intro: readonly string[],
  paint: Paint,
): string {
  const end = ok ? ['', paint('good', acceptance(steps))] : [];
  return [
    ...intro,
    '',
    ...steps.map((step) => stepLine(step, paint)),
    ...(findings.length > 0 ? [''] : []),
    ...findings.flatMap((finding, i) => findingLines(finding, findings[i + 1], paint)),
    ...end,
  ]
    .join('\n')
    .trimEnd();
}
