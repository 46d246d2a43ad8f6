/** The next turn of the event loop, for what most runs do not need by then: one timer for all that wait for it. */
export interface Turns {
  /** Calls `begin` when this turn is over. It has to see for itself whether it is still wanted. */
  readonly next: (begin: () => void) => void;
}

/** @param shared whether one request's timer may serve another (`requestsMayShare`); else `begin` is called at once. */
export function createTurns(shared: boolean): Turns {
  if (!shared) return { next: (begin) => begin() };
  let waiting: (() => void)[] = [];
  const turn = (): void => {
    const due = waiting;
    waiting = [];
    for (const begin of due) begin();
  };
  return {
    next(begin) {
      if (waiting.push(begin) === 1) setTimeout(turn, 0);
    },
  };
}
