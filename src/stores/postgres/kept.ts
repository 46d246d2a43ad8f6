import { Fault } from '../../errors.ts';
import type { Durability } from '../contract.ts';
import { isLess } from '../durability.ts';
import type { Kept } from './settings.ts';
import { levelOf } from './settings.ts';

/** What answers have to survive, and who is told where they survive less than they did. */
export interface Keeping {
  readonly keep: (required: Durability, lowered: (message: string) => void) => void;
  /** What the server's settings were found to keep. */
  readonly found: (level: Durability) => void;
  /** By what a commit says of itself. @throws Fault `not_durable` where that is less than is required. */
  readonly judge: (kept: Kept) => void;
}

export function keepingOf(): Keeping {
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
    judge: (kept) => {
      const level = levelOf(kept);
      if (!isLess(level, found) && !isLess(level, required)) return;
      const message = messageOf(kept, level);
      if (isLess(level, required)) throw new Fault('not_durable', `Postgres: ${message}`);
      for (const lowered of listeners) lowered(`Postgres: ${message}`);
    },
  };
}

function messageOf({ standbyNames, synchronousCommit, fsync }: Kept, level: Durability): string {
  return `a commit keeps '${level}' and no more: synchronous_standby_names = '${standbyNames}', synchronous_commit = ${synchronousCommit}, fsync = ${fsync}. Set them back.`;
}
