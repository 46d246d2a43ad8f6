import type { DiagnosticRow, Diagnostics } from '../../registry/index.ts';
import { inLine } from '../paint.ts';
import type { Paint, Report } from '../shell.ts';

/** Names and values, a line each, without those that are absent. */
export const lines = (facts: readonly (readonly [string, unknown])[]): string =>
  facts
    .filter(([, value]) => value !== undefined && value !== null)
    .map(
      ([name, value]) =>
        `${name.padEnd(14)} ${inLine(typeof value === 'string' ? value : JSON.stringify(value))}`,
    )
    .join('\n');

type Row = DiagnosticRow<string>;

/** Members with what was sent and answered: they may hold account and brand identifiers. */
const isBody = (name: string): boolean => name.endsWith('_jsonb') && name !== 'failed_validations_jsonb';

const withoutBodies = (row: Row): object =>
  Object.fromEntries(Object.entries(row).filter(([name]) => !isBody(name)));

const isAboutWebhooks = ({ storyboard_id, phase_id, step_id, task, error_text }: Row): boolean =>
  [storyboard_id, phase_id, step_id, task, error_text].some((text) =>
    /webhook|push.?notification/i.test(text ?? ''),
  );

/** Characters of a member that is printed on one line. */
const MAX_MEMBER = 2000;

function jsonLine(value: unknown): string | undefined {
  const json = value === undefined || value === null ? undefined : JSON.stringify(value);
  return json !== undefined && json.length > MAX_MEMBER
    ? `${json.slice(0, MAX_MEMBER)} … (--json prints all)`
    : json;
}

function rowText(row: Row, bodies: boolean, paint: Paint): string {
  const passed = row.step_passed === true;
  const where = [row.storyboard_id, row.phase_id, row.step_id].filter((part) => part).join(' / ');
  const took = typeof row.duration_ms === 'number' ? ` after ${row.duration_ms} ms` : '';
  const answered =
    typeof row.response_status === 'number' ? `answered ${row.response_status}${took}` : undefined;
  const facts: (readonly [string, unknown])[] = [
    ['task', row.task],
    ['request', row.request_url],
    ['response', answered],
    ['served by', row.served_by_agent_url],
    ['error', row.error_text],
    ['failed', jsonLine(row.failed_validations_jsonb)],
    ['extraction', [row.extraction_path, row.extraction_note].filter((part) => part).join(': ') || undefined],
    ...(bodies
      ? Object.entries(row)
          .filter(([name]) => isBody(name))
          .map(([name, value]) => [name, jsonLine(value)] as const)
      : []),
    ['see', isAboutWebhooks(row) ? 'proto-webhooks explain: why a captured delivery was refused' : undefined],
  ];
  return `${paint(passed ? 'good' : 'bad', passed ? 'pass' : 'FAIL')}  ${inLine(where === '' ? `row ${row.id ?? ''}` : where)}\n${lines(facts)}`;
}

/**
 * The failing steps of a run.
 * @param bodies whether what was sent and answered is printed too.
 */
export function diagnosticsReport(answer: Diagnostics<string>, bodies: boolean): Report {
  const rows = answer.diagnostics;
  return {
    ok: rows.every(({ step_passed }) => step_passed === true),
    json: bodies ? answer : { ...answer, diagnostics: rows.map(withoutBodies) },
    text: (paint) =>
      [
        `Agent ${inLine(answer.agent_url)}, run ${inLine(answer.run_id)}: ${answer.count} rows`,
        ...rows.map((row) => rowText(row, bodies, paint)),
        ...(rows.length > 0 && !bodies
          ? ['Requests and responses were left out; --bodies prints them.']
          : []),
      ].join('\n\n'),
  };
}
