import { Fault } from '../../errors.ts';
import type { Durability } from '../contract.ts';
import { isLess } from '../durability.ts';

/** What answers have to survive, and who is told where they survive less than they did. */
export interface Keeping {
  readonly keep: (required: Durability, lowered: (message: string) => void) => void;
  /** What the server's settings were found to keep. */
  readonly found: (level: Durability) => void;
  /**
   * By what a commit says of itself; `settings`: what it found.
   * @throws Fault `not_durable` where that is less than is required.
   */
  readonly judge: (level: Durability, settings: () => string) => void;
}

/** @param who e.g. `Postgres`: for messages. */
export function keepingOf(who: string): Keeping {
  const listeners = new Set<(message: string) => void>();
  let required: Durability = 'process';
  let found: Durability = 'process';
  return {
    keep: (level, lowered) => {
      if (isLess(required, level)) required = level;
      listeners.add(lowered);
    },
    found: (level) => {
      found = level;
    },
    judge: (level, settings) => {
      if (!isLess(level, found) && !isLess(level, required)) return;
      const message = `${who}: a commit keeps '${level}' and no more: ${settings()}. Set them back.`;
      if (isLess(level, required)) throw new Fault('not_durable', message);
      for (const lowered of listeners) lowered(message);
    },
  };
}
