import type { AcceptDecision, EventClaim } from '../contract.ts';
import type { FirstTerminal, RecordRow, TaskRow } from './rows.ts';
import type { Accepting } from './park.ts';
import { endApplied, toldTerminal } from './told.ts';

/**
 * Rule 3, behind what is stale: a second terminal status of a task (verification.md §2.19). Undefined: it is taken, as
 * every one is that has no `terminalHash`. The answer 409 ends the event at its sender, so the status that it loses to has
 * to be safe: a 503 brings it again until that is so.
 */
export function secondTerminal(
  step: Accepting,
  event: EventClaim,
  task: TaskRow | undefined,
): AcceptDecision | undefined {
  const first = task?.terminal;
  if (event.terminalHash === undefined || !first) return undefined;
  if (first.state === 'open') {
    const record = step.rows.record(step.request.sender, first.key, step.now);
    // Forgotten, or over without a run: the task has no terminal status.
    if (record?.task?.id !== task.id || record.state === 'stale') return undefined;
    if (!record.acked) return { kind: 'final-unsafe' };
  }
  if (differs(first, event.terminalHash)) return { kind: 'already-final' };
  if (first.state === 'followed') return undefined;
  return { kind: 'done', changed: false, state: 'stale', died: false };
}

/** What another channel told first has no such hash. */
const differs = ({ hash }: FirstTerminal, other: string): boolean => hash !== '' && hash !== other;

/**
 * Of the task's row, when an event is inserted that `secondTerminal` let pass; undefined: it stays.
 * @param isFirst no channel has told of another one.
 */
export function terminalAtInsert(
  { key, task: claim, terminalHash }: EventClaim,
  task: TaskRow | undefined,
  isFirst: boolean,
): FirstTerminal | undefined {
  const told = claim && toldTerminal(claim);
  if (terminalHash === undefined && !(told && isFirst)) return undefined;
  const state = task?.terminal?.state === 'followed' ? 'followed' : 'open';
  return { key, hash: terminalHash ?? '', state, ...(told && { told }) };
}

/** Of the task's row, when one of its events is applied; undefined: it stays. */
export function terminalAtEnd(record: RecordRow, task: TaskRow | undefined): FirstTerminal | undefined {
  const first = task?.terminal ?? null;
  const isFollowed = first?.state === 'applied' && first.key !== record.key;
  return isFollowed ? { ...first, state: 'followed' } : endApplied(record, first);
}
