import { hasReportType, isBareReport } from './delivery-report.ts';
import type { Transport } from './event.ts';
import { familyOf } from './families.ts';
import { detectFormat } from './format.ts';
import { type JsonObject, present, textMember } from '../codec/members.ts';
import { familyName, namesOf } from './names.ts';
import { isMediaBuyWord } from './status.ts';

/**
 * What a body is that is none of the agent transport's (verification.md §7.7, §7.8): a task envelope, whole or broken; a
 * delivery report that lost its envelope; else a webhook of another family, which needs its key alone.
 */
export type ToolShape = 'envelope' | 'bare-report' | 'other';

/** How a body is read. */
export type Form =
  | { readonly transport: 'agent' }
  | {
      readonly transport: 'tool';
      readonly shape: ToolShape;
      /** What it calls itself, a task envelope too. */
      readonly family: string | undefined;
    };

const AGENT: Form = { transport: 'agent' };

export function formOf(payload: JsonObject, known: Transport | undefined): Form {
  const shown = detectFormat(payload);
  if (shown === 'agent') return AGENT;
  const names = namesOf(payload);
  const whole = names.length === 0 ? hasTask(payload) : isTaskEnvelope(payload);
  const family = familyOf(payload, names, whole);
  if (family !== undefined) return { transport: 'tool', shape: 'other', family };
  const name = names.find((one) => one !== '') ?? names[0];
  const shape = name === undefined ? shapeOfNameless(payload) : shapeOfNamed(payload, whole);
  if (known === 'agent' && name === undefined && shown === undefined && isBrokenTask(payload, shape))
    return AGENT;
  return { transport: 'tool', shape, family: familyName(name) };
}

/** Of what names itself nothing: it is a task's, whether or not its members have the right types. */
function hasTask(payload: JsonObject): boolean {
  return present(payload, 'task_id') !== undefined && present(payload, 'status') !== undefined;
}

/** Of what names itself. */
function isTaskEnvelope(payload: JsonObject): boolean {
  const status = textMember(payload, 'status');
  const taskId = textMember(payload, 'task_id');
  return !!taskId && status !== undefined && !isMediaBuyWord(status);
}

/** What names itself is no broken envelope: its `task_id`, `status` and `result` may be its own. */
function shapeOfNamed(payload: JsonObject, whole: boolean): ToolShape {
  if (whole) return 'envelope';
  return hasReportType(payload) ? 'bare-report' : 'other';
}

const TASK_MEMBERS = ['task_id', 'status', 'result'] as const;

function shapeOfNameless(payload: JsonObject): ToolShape {
  if (present(payload, 'task_id') !== undefined && Object.hasOwn(payload, 'status')) return 'envelope';
  if (isBareReport(payload)) return 'bare-report';
  return TASK_MEMBERS.some((name) => present(payload, name) !== undefined) ? 'envelope' : 'other';
}

/** Of a sender of the agent transport: its payloads may lack the key, and then a Task that lost its status does too. */
function isBrokenTask(payload: JsonObject, shape: ToolShape): boolean {
  if (shape === 'envelope') return true;
  return shape === 'other' && present(payload, 'idempotency_key') === undefined;
}
