import { putBounded } from '../bounded.ts';
import { singleFlight } from '../single-flight.ts';
import type { StoreRegistrations } from '../stores/contract.ts';
import { RegistrationError } from './errors.ts';
import { allRows } from './rows.ts';

interface RoomOptions {
  readonly registrations: StoreRegistrations;
  /** Operations of one seller that have not ended. */
  readonly maxOpen: number;
}

/** Operations of a seller are counted again after so many that were created here. */
const COUNT_EVERY = 100;
/** Sellers whose room is remembered. */
const MAX_SELLERS = 10_000;

/**
 * Takes room for one more open operation of a seller; what it gives is called when its row is written, or is not to be.
 * Counting each time would read them all.
 */
export function roomBySeller({
  registrations,
  maxOpen,
}: RoomOptions): (agentUrl: string) => Promise<() => void> {
  /** Room that is left until they are counted again; and operations that have taken theirs and are not written yet. */
  const left = new Map<string, number>();
  const unwritten = new Map<string, number>();
  const counting = new Map<string, Promise<void>>();
  const count = async (agentUrl: string): Promise<void> => {
    let open = 0;
    for (const list of ['calling', 'open'] as const) {
      const rows = allRows(registrations, { kind: 'operation', sender: agentUrl, list });
      while (!(await rows.next()).done) open += 1;
    }
    const room = maxOpen - open - (unwritten.get(agentUrl) ?? 0);
    putBounded(left, agentUrl, Math.min(COUNT_EVERY, room), MAX_SELLERS);
  };
  return async (agentUrl) => {
    let room = left.get(agentUrl);
    for (; room === undefined; room = left.get(agentUrl)) {
      await singleFlight(counting, agentUrl, () => count(agentUrl));
    }
    // Where none is left the next one counts anew.
    if (room <= 1) left.delete(agentUrl);
    else left.set(agentUrl, room - 1);
    if (room <= 0) {
      throw new RegistrationError(
        'too_many_open',
        `${maxOpen} operations of ${agentUrl} have not ended. Look at them by list({ agentUrl, state: 'open', limit: 100 }), or raise maxOpen.`,
      );
    }
    unwritten.set(agentUrl, (unwritten.get(agentUrl) ?? 0) + 1);
    return () => {
      const others = (unwritten.get(agentUrl) ?? 1) - 1;
      if (others > 0) unwritten.set(agentUrl, others);
      else unwritten.delete(agentUrl);
    };
  };
}
