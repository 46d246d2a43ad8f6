import { putBounded } from '../bounded.ts';
import type { SenderEntry } from '../senders.ts';
import type { Allowance } from './allowance.ts';

/**
 * Who is asked first where one delivery may not have everybody's documents fetched: whoever was fetched for longest ago.
 * In one order for ever, the last of more senders than that would never be asked, and a key of theirs never be found.
 */
export interface Turns {
  /** `senders`, those that were never fetched first, then by when they last were. */
  order(senders: readonly SenderEntry[]): readonly SenderEntry[];
  /** Leave to fetch that counts as the sender's turn once it is used. */
  noting(sender: SenderEntry, leave: Allowance['leave']): Allowance['leave'];
}

/** As many as documents are; one that is forgotten is asked first. */
const MAX_NOTED = 10_000;

export function createTurns(): Turns {
  // By agent URL, from configuration alone: a `senders` function may give other objects each time.
  const turns = new Map<string, number>();
  let turn = 0;
  const note = ({ agentUrl }: SenderEntry): void => {
    turn += 1;
    putBounded(turns, agentUrl, turn, MAX_NOTED);
  };
  const last = ({ agentUrl }: SenderEntry): number => turns.get(agentUrl) ?? 0;
  return {
    order: (senders) => [...senders].sort((a, b) => last(a) - last(b)),
    noting: (sender, leave) => (seller) => {
      const given = leave(seller);
      return {
        ...given,
        mayFetch: () => {
          const granted = given.mayFetch();
          if (granted) note(sender);
          return granted;
        },
      };
    },
  };
}
