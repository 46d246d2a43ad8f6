import type { Json } from './kit.ts';
import { accepted, type Sequence } from './sequence-kit.ts';
import { envelope } from './sign.ts';

const unhandled = (status: number, kind: string, code: string | null): Json => ({
  status,
  kind,
  code,
  handled: false,
});
const stale = unhandled(200, 'stale', null);
const final: Json = { ...unhandled(409, 'refused', 'task_already_final'), www_authenticate: null };

const told = (name: string, status: string, minute: string): Json =>
  envelope(`terminal ${name}`, { status, timestamp: `2026-09-21T14:${minute}:00Z` });

/** The same deliveries, answered by edition. */
function secondTerminal(
  edition: string,
  answers: { readonly other: Json; readonly same: Json; readonly after: Json },
): Sequence {
  return {
    name: `second terminal status, edition ${edition}`,
    description:
      'A second terminal status of a task under another idempotency_key: older, with another content, with the same one, and both again behind a status that is not terminal.',
    edition,
    steps: [
      { name: 'completed', payload: told('first', 'completed', '05'), expected: accepted() },
      { name: 'failed, older', payload: told('older', 'failed', '04'), expected: stale },
      { name: 'completed again', payload: told('same', 'completed', '06'), expected: answers.same },
      { name: 'failed', payload: told('other', 'failed', '07'), expected: answers.other },
      {
        name: 'working',
        payload: told('working', 'working', '08'),
        expected: answers.after,
      },
      { name: 'completed after it', payload: told('later', 'completed', '09'), expected: answers.same },
      { name: 'failed after it', payload: told('last', 'failed', '10'), expected: answers.other },
    ],
  };
}

const second = accepted({ warnings: ['second_terminal_status'] });
const TAKEN = { other: second, same: second, after: accepted({ warnings: ['after_terminal'] }) };

/** verification.md §2.18 and §2.19. */
export const TERMINALS: readonly Sequence[] = [
  secondTerminal('3.0', TAKEN),
  secondTerminal('3.1', TAKEN),
  secondTerminal('3.2', {
    other: final,
    same: unhandled(200, 'duplicate', null),
    after: stale,
  }),
  {
    name: 'an outcome that is refused, edition 3.2',
    description: 'Nothing of it is kept: its bytes get the same answer again, and no replay.',
    edition: '3.2',
    steps: [
      { name: 'completed', payload: told('kept', 'completed', '05'), expected: accepted() },
      { name: 'failed', payload: told('refused', 'failed', '06'), expected: final },
      { name: 'its bytes again', at: 2, again: 'failed', expected: final },
    ],
  },
  {
    name: 'an outcome before the first is safe, edition 3.2',
    description: 'The first was answered 503: another one is not refused for good, it comes again.',
    edition: '3.2',
    steps: [
      {
        name: 'completed',
        payload: told('unsafe', 'completed', '05'),
        handler: 'fails',
        expected: { ...unhandled(503, 'unavailable', 'handler_failed'), handled: true },
      },
      {
        name: 'failed',
        payload: told('waiting', 'failed', '06'),
        expected: unhandled(503, 'unavailable', 'task_busy'),
      },
      { name: 'completed, retried', at: 2, payload: told('unsafe', 'completed', '05'), expected: accepted() },
      { name: 'failed, its bytes again', at: 4, again: 'failed', expected: final },
    ],
  },
];
