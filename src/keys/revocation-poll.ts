import { MIN_LIFE_MS } from './freshness.ts';
import type { Schedule } from './schedule.ts';

/** Lists are asked for again when they are due, whether or not deliveries come; see `createPoll`. */
export interface Poll {
  /** Makes sure that the list at `url` is asked for when it is due. */
  keep(url: string): void;
  stop(): void;
}

export interface PollOptions {
  /** Unix ms. */
  readonly now: () => number;
  readonly schedule: Schedule;
  /** When the next copy is due, Unix ms; undefined: the list is no longer needed. */
  readonly dueAt: (url: string) => number | undefined;
  /** Fetches it if it is due. Never rejects. */
  readonly refresh: (url: string) => Promise<void>;
}

/**
 * One timer a list, which never holds the process open. Where the runtime ends timers with the request that made them
 * (workerd) nothing is lost: a list is refreshed on use too.
 */
export function createPoll({ now, schedule, dueAt, refresh }: PollOptions): Poll {
  const waiting = new Map<string, () => void>();
  let stopped = false;
  const keep = (url: string): void => {
    const due = dueAt(url);
    if (stopped || due === undefined || waiting.has(url)) return;
    const ms = due - now();
    // What is overdue has just failed: once a minute, as failures are remembered no longer.
    waiting.set(
      url,
      schedule(() => void run(url), ms > 0 ? ms : MIN_LIFE_MS),
    );
  };
  const run = async (url: string): Promise<void> => {
    if (dueAt(url) !== undefined) await refresh(url);
    waiting.delete(url);
    keep(url);
  };
  return {
    keep,
    stop: () => {
      stopped = true;
      for (const cancel of waiting.values()) cancel();
      waiting.clear();
    },
  };
}
