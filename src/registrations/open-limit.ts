// Limits the operations (registered calls) of one seller that have not ended: the option `maxOpen`. `create` reserves
// room here before it writes an operation.
import { putBounded } from '../shared/bounded.ts';
import { singleFlight } from '../shared/single-flight.ts';
import type { StoreRegistrations } from '../stores/store.ts';
import { RegistrationError } from './registrations-errors.ts';
import { allRows } from './operation-rows.ts';

interface RoomOptions {
  readonly registrations: StoreRegistrations;
  /** The largest number of operations of one seller that have not ended. */
  readonly maxOpen: number;
}

/** After this many new operations of a seller, this process counts the seller's rows again. */
const COUNT_EVERY = 100;
/** The largest number of sellers for which this process remembers how many operations may still be created (`left`). */
const MAX_SELLERS = 10_000;

/**
 * Returns a function that reserves room for one more open operation of a seller. It resolves with a function that
 * releases the reservation: call it once the row was written, or will not be written. It rejects with RegistrationError
 * `too_many_open` if there is no room.
 *
 * Counting reads all rows of a seller, so it is not done for each operation. The store's own counts (admission.md §8.9)
 * cannot be used: they include ended operations, whose rows stay for 70 days. Operations that are not written yet count
 * by their reservations. Otherwise a loop that creates many together could exceed the limit by any number.
 */
export function roomBySeller({
  registrations,
  maxOpen,
}: RoomOptions): (agentUrl: string) => Promise<() => void> {
  /**
   * `left`: how many operations may be created until the next count. `unwritten`: how many operations have a
   * reservation and are not written yet. Both are by agent URL.
   */
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
    // This operation takes the last room, so the next one has the rows counted again.
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
