// Reports that a task has ended a second time: by another channel, or under another idempotency key
// (verification.md §2.19, admission.md §5.4a). Also reports that the end of a task was dropped, because its idempotency
// key was used before for something else.
// Called by `admit` and `observe`, after the store decided.

import type { Alarm, RaiseAlarm } from '../shared/alarms.ts';
import type { WarningCode } from '../shared/codes.ts';
import type { Event } from '../events/event.ts';
import { withMembers } from '../events/event-members.ts';
import type { Verdict } from '../shared/outcome.ts';
import type { AcceptDecision, AcceptResult } from '../stores/store.ts';
import type { ReadEvent } from './read.ts';

type First = NonNullable<Extract<AcceptDecision, { kind: 'done' }>['first']>;

/**
 * Answers an event of a task whose end another channel reported first. The event's handler does not run, whatever the
 * event says.
 */
export async function toldBefore(
  { source, hash }: First,
  { reading, claim }: Pick<ReadEvent, 'reading' | 'claim'>,
  raiseAlarm: RaiseAlarm,
): Promise<Extract<Verdict, { kind: 'duplicate' }>> {
  const { event } = reading;
  const { sender, idempotencyKey: key } = event;
  const after = event.source === 'webhook' && source === 'response';
  const { eventWarning } = await import('../events/reading.ts');
  const warning = after ? eventWarning('webhook_after_terminal_response') : undefined;
  if (warning) {
    const { code, message } = warning;
    raiseAlarm({ code: 'nonconforming_sender', sender, key, warning: code, message });
  }
  if (hash !== undefined) {
    raiseAlarm({
      code: 'terminal_differs',
      sender,
      key,
      ...idsIn(event),
      source: event.source,
      firstSource: source,
      hash: claim.task?.told?.hash,
      firstHash: hash,
      message: `a terminal status from ${event.source} differs from the one that ${source} reported first: the first is kept. Ask the seller which is right`,
    });
  }
  const told: Event = warning ? withMembers(event, { warnings: [...event.warnings, warning] }) : event;
  return { kind: 'duplicate', state: 'stale', event: told, changed: false };
}

const idsIn = ({ taskId, operationId }: Event): object => ({
  ...(taskId !== undefined && taskId !== '' && { taskId }),
  ...(operationId !== undefined && { operationId }),
});

/**
 * For each decision of the store about a second end of a task, the effect as the alarm tells it. After other decisions
 * no alarm is raised (verification.md §2.19).
 */
const SECOND: Partial<Record<AcceptDecision['kind'], string>> = {
  won: 'its handler runs',
  queued: 'its handler will run',
  'task-busy': 'its handler will run when the task is free',
  done: 'it says the same in edition 3.2, and is a duplicate',
  stale: 'it is older than what was applied, and is not handled',
  'already-final': 'it says something else in edition 3.2: 409, the first is kept',
};

const ABOUT_KEYS =
  'The seller makes a new key for each attempt, changed its result, or sends one change over two channels';

const HOW_TO_LEARN =
  'Its handler does not run. Poll the task (docs/poll.md), or ask for it by get_task_status. Ask the seller to use a key for one event only';

/**
 * Raises alarms if a call of `Store.accept` revealed a second end of a task, or dropped the end of a task (admission.md
 * §5.4a).
 * @returns the warnings for the event.
 */
export function tellEnds(result: AcceptResult, event: Event, raiseAlarm: RaiseAlarm): readonly WarningCode[] {
  const of = { sender: event.sender, key: event.idempotencyKey, taskId: event.taskId };
  const told: Alarm[] = [];
  const came = SECOND[result.kind];
  if (result.secondEnd && came !== undefined) {
    const message = `a second terminal status of one task came under another idempotency_key: ${came}. ${ABOUT_KEYS}`;
    const refused = result.kind === 'already-final' && { option: 'edition' };
    told.push({ ...of, ...refused, code: 'second_terminal_status', message });
  }
  if (result.endDropped) {
    const message = `the end of a task was dropped: its idempotency_key was used before for something else, and the first copy is kept. ${HOW_TO_LEARN}`;
    told.push({ ...of, code: 'end_dropped', message });
  }
  for (const alarm of told) raiseAlarm(alarm);
  return told.map(({ code }) => code as WarningCode);
}

/**
 * Adds the warnings to the event in a verdict. An event that will be handled gets its warnings later, from the store's
 * flags.
 */
export async function withWarnings(verdict: Verdict, codes: readonly WarningCode[]): Promise<Verdict> {
  if (!('event' in verdict)) return verdict;
  const { eventWarning } = await import('../events/reading.ts');
  const { event } = verdict;
  const warnings = [...event.warnings, ...codes.map((code) => eventWarning(code))];
  return { ...verdict, event: withMembers(event, { warnings }) };
}
