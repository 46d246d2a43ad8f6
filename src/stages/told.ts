import type { RaiseAlarm } from '../alarms.ts';
import type { Event } from '../events/event.ts';
import { eventWarning } from '../events/warnings.ts';
import type { Verdict } from '../outcome.ts';
import type { AcceptDecision } from '../stores/contract.ts';
import type { ReadEvent } from './read.ts';

type First = NonNullable<Extract<AcceptDecision, { kind: 'done' }>['first']>;

/** Of an event of a task whose end another channel has told before: never a second run, whatever it says. */
export function toldBefore(
  { source, hash }: First,
  { reading, claim }: Pick<ReadEvent, 'reading' | 'claim'>,
  raiseAlarm: RaiseAlarm,
): Extract<Verdict, { kind: 'duplicate' }> {
  const { event } = reading;
  const { sender, idempotencyKey: key } = event;
  const after = event.source === 'webhook' && source === 'response';
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
      message: `a terminal status told by ${event.source} says something else than the one that ${source} told first: the first is kept. Ask the seller which is right`,
    });
  }
  const told: Event = warning ? { ...event, warnings: [...event.warnings, warning] } : event;
  return { kind: 'duplicate', state: 'stale', event: told, changed: false };
}

const idsIn = ({ taskId, operationId }: Event): object => ({
  ...(taskId !== undefined && taskId !== '' && { taskId }),
  ...(operationId !== undefined && { operationId }),
});
