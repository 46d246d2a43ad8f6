// Limits the operations of one seller that have not ended: the option `maxOpen`. `create` reserves a slot here before
// it writes an operation.
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

/** The number of operations that this process creates for a seller before it counts the seller's rows again. */
const COUNT_EVERY = 100;
/** The most sellers for which the remaining number is remembered. */
const MAX_SELLERS = 10_000;

/**
 * Reserves a slot for one more open operation of a seller. The returned function releases the reservation. Call it once
 * the row is written, or will not be written.
 *
 * Counting reads all rows, so it is not done each time. The store's own counts (admission.md §8.9) cannot be used: they
 * include ended operations, whose rows stay for 70 days. Reservations limit a loop that creates many operations at
 * once: without them any number could be under way together.
 */
export function roomBySeller({
  registrations,
  maxOpen,
}: RoomOptions): (agentUrl: string) => Promise<() => void> {
  /**
   * The slots that are left until the next count, and the operations that have a reservation and are not written yet.
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
    // No slot is left, so the next call counts the rows again.
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
