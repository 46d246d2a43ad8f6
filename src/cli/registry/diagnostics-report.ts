import type { DiagnosticRow, Diagnostics } from '../../registry/index.ts';
import { inLine } from '../paint.ts';
import type { Paint, Report } from '../shell.ts';

type Fact = readonly [name: string, value: unknown];

const GAP = '  ';

/** Below what it belongs to. */
const indented = (text: string): string => text.replaceAll(/^/gm, GAP);

/** Names and values in two columns, a line each, without those that are absent. */
export function lines(facts: readonly Fact[]): string {
  const shown = facts.filter(([, value]) => value !== undefined && value !== null);
  const width = Math.max(0, ...shown.map(([name]) => inLine(name).length));
  return shown
    .map(([name, value]) => {
      const text = typeof value === 'string' ? value : JSON.stringify(value);
      return `${inLine(name).padEnd(width)}${GAP}${inLine(text)}`;
    })
    .join('\n');
}

type Row = DiagnosticRow<string>;

/** Members with what was sent and answered: they may hold account and brand identifiers. */
const isBody = (name: string): boolean => name.endsWith('_jsonb') && name !== 'failed_validations_jsonb';

const withoutBodies = (row: Row): object =>
  Object.fromEntries(Object.entries(row).filter(([name]) => !isBody(name)));

const isAboutWebhooks = ({ storyboard_id, phase_id, step_id, task, error_text }: Row): boolean =>
  [storyboard_id, phase_id, step_id, task, error_text].some((text) =>
    /webhook|push.?notification/i.test(text ?? ''),
  );

/** Characters of a member that is printed, and of one that fits beside its name. */
const MAX_MEMBER = 4000;
const MAX_BESIDE = 80;

const isShort = ([, value]: Fact): boolean => JSON.stringify(value).length <= MAX_BESIDE;

/** A member's JSON below its name. */
function block([name, value]: Fact): string {
  const json = JSON.stringify(value, undefined, 2);
  const shown = json.slice(0, MAX_MEMBER).split('\n').map(inLine).join('\n');
  const rest = json.length > MAX_MEMBER ? ' … (--json prints all)' : '';
  return `${inLine(name)}\n${indented(`${shown}${rest}`)}`;
}

function responseOf({ response_status, duration_ms }: Row): string | undefined {
  if (typeof response_status !== 'number') return undefined;
  return `${response_status}${typeof duration_ms === 'number' ? ` after ${duration_ms} ms` : ''}`;
}

function rowText(row: Row, bodies: boolean, paint: Paint): string {
  const passed = row.step_passed === true;
  const step = [row.storyboard_id, row.phase_id, row.step_id].filter((part) => part).join(' / ');
  const facts: readonly Fact[] = [
    ['task', row.task],
    ['captured', row.captured_at],
    ['request', row.request_url],
    ['response', responseOf(row)],
    ['served by', row.served_by_agent_url],
    ['error', row.error_text],
    ['extraction', [row.extraction_path, row.extraction_note].filter((part) => part).join(': ') || undefined],
    ['see', isAboutWebhooks(row) ? 'proto-webhooks explain: why a captured delivery was refused' : undefined],
  ];
  const members = [
    ['failed', row.failed_validations_jsonb] as const,
    ...(bodies ? Object.entries(row).filter(([name]) => isBody(name)) : []),
  ].filter(([, value]) => value !== undefined && value !== null);
  const short = members.filter(isShort).map(([name, value]): Fact => [name, JSON.stringify(value)]);
  const below = [
    lines([...facts, ...short]),
    ...members.filter((member) => !isShort(member)).map(block),
  ].filter((part) => part !== '');
  const what = inLine(step === '' ? `row ${row.id ?? ''}` : step);
  return [
    `${paint(passed ? 'good' : 'bad', passed ? 'pass' : 'FAIL')}  ${what}`,
    ...below.map(indented),
  ].join('\n');
}

/** What the rows are, and how many. */
function heading({ agent_url, run_id, count, diagnostics }: Diagnostics<string>): string {
  const shown = diagnostics.length === count ? '' : `, ${diagnostics.length} of them here`;
  const steps = count === 0 ? 'no failing step' : `${count} failing ${count === 1 ? 'step' : 'steps'}`;
  return `Agent ${inLine(agent_url)}\nRun ${inLine(run_id)}: ${steps}${shown}`;
}

/**
 * The failing steps of a run.
 * @param bodies whether what was sent and answered is printed too.
 */
export function diagnosticsReport(answer: Diagnostics<string>, bodies: boolean): Report {
  const rows = answer.diagnostics;
  const hint = 'Requests and responses were left out; --bodies prints them.';
  return {
    ok: rows.every(({ step_passed }) => step_passed === true),
    json: bodies ? answer : { ...answer, diagnostics: rows.map(withoutBodies) },
    text: (paint) =>
      [
        heading(answer),
        ...rows.map((row) => rowText(row, bodies, paint)),
        ...(rows.length > 0 && !bodies ? [hint] : []),
      ].join('\n\n'),
  };
}
