import { requestsMayShare } from '../single-flight.ts';

/** What waits for the next turn. One that is settled before leaves again, so that nothing of it is kept till then. */
export interface Waiter {
  begin(self: Waiter): void;
}

/** The next turn of the event loop, for what most runs do not need by then: one timer for all that wait for it. */
export interface NextTurn {
  /** Calls `begin` when this turn is over, unless it leaves before. */
  readonly wait: (waiter: Waiter) => void;
  readonly leave: (waiter: Waiter) => void;
}

/** Where one request's timer may not serve another (`requestsMayShare`), `begin` is called at once. */
export function createNextTurn(): NextTurn {
  if (!requestsMayShare()) return { wait: (waiter) => waiter.begin(waiter), leave() {} };
  let waiting = new Set<Waiter>();
  let timed = false;
  const turn = (): void => {
    const due = waiting;
    waiting = new Set();
    timed = false;
    for (const waiter of due) waiter.begin(waiter);
  };
  return {
    wait(waiter) {
      waiting.add(waiter);
      if (timed) return;
      timed = true;
      setTimeout(turn, 0);
    },
    leave: (waiter) => void waiting.delete(waiter),
  };
}
