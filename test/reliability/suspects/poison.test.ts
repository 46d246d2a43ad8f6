import { describe, expect, inject, it } from 'vitest';
import { LONG } from '../form.ts';
import { onGround } from '../processes/ground.ts';
import type { Kind } from '../processes/stores.ts';
import type { Mode, Role } from '../processes/wire.ts';
import { outcomeOf, report, sell, type Outcome } from './events.ts';
import { tell } from '../../support/tell.ts';

/** How often the poison is charged before it is DEAD. A second time is a minute later: the long form has it. */
const CRASHES = LONG ? 2 : 1;
const KINDS: readonly Kind[] = LONG ? ['SQLite', 'Postgres', 'MySQL', 'Redis'] : ['SQLite', 'Redis'];
const ROLES: Readonly<Record<Mode, readonly Role[]>> = { inline: ['door'], inbox: ['door', 'worker'] };

/**
 * The poison runs past the first renewal, so that its process's row is alive when it dies; the others run longer than
 * it does, so that what runs beside it dies with it.
 */
const TIMES = { leaseMs: 800, waitMs: 200, timeoutMs: 5_000 } as const;
const POISON = report('poison', { takesMs: 300, isPoison: true });
const EVENTS = ['1', '2', '3', '4', POISON, '5', '6', '7', '8'].map((event) =>
  typeof event === 'string' ? report(event, { takesMs: 600 }) : event,
);

function poison(kind: Kind, mode: Mode): Promise<Outcome> {
  const retry = { attempts: 12, crashes: CRASHES };
  const options = { kind, mode, retry, roles: ROLES[mode], seed: 20_260_105, deadlineMs: 240_000 };
  return onGround({ ...options, ...TIMES, shared: inject('shared') }, async (ground) => {
    const acknowledged = await sell(ground, EVENTS);
    return outcomeOf(ground, EVENTS, acknowledged);
  });
}

describe.each(KINDS)('an event whose handler kills its process, among eight others, %s', (kind) => {
  it.each<Mode>(['inline', 'inbox'])(
    '%s: it ends DEAD, after its crashes, and takes nobody along',
    async (mode) => {
      const outcome = await poison(kind, mode);
      if (LONG) tell(outcome);
      const kept = { lost: [], twice: [], dead: [POISON.key], besideItself: [] };
      expect(outcome).toMatchObject({ ...kept, acknowledged: EVENTS.length, unexpected: [] });
      // Beside others it is not charged.
      expect(outcome.faults).toBeGreaterThan(CRASHES);
    },
    300_000,
  );
});
