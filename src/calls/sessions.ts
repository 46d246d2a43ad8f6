// Keeps MCP sessions with sellers open from call to call, and ends those that are idle (calls.md §4.12). A poller and a
// reconciler have one set of sessions each, and pass it to the client with each call.
import type { Schedule } from '../shared/time-limits.ts';

/** A session that is kept open for further calls, and the function that ends it. */
export interface Kept<T> {
  readonly session: T;
  /** Ends the session, and never rejects. */
  readonly end: () => Promise<void>;
}

/**
 * The MCP sessions with sellers that a poller keeps from call to call: the option `sessions` with which it calls your
 * `CallSeller`. If your `CallSeller` uses `mcpCaller`, pass the sessions on with the options of the call.
 */
export interface CallSessions {
  /**
   * Returns the session of that name. If there is none, makes one. The session stays open for five minutes after each
   * use.
   */
  readonly use: <T>(name: string, make: () => Kept<T>) => T;
  /** Ends the session, if it is still the one that is kept under that name. */
  readonly drop: (name: string, session: unknown) => void;
  /** Ends all open sessions, and resolves when they have ended. */
  readonly end: () => Promise<void>;
}

/** The time after which an unused session ends. It is longer than the default time between two polls of a task. Ms. */
const IDLE_MS = 300_000;
/** The most sessions of a process. If there are more, the one that was unused for longest ends. */
const MOST = 1000;

export function createSessions(schedule: Schedule): CallSessions {
  interface Entry extends Kept<unknown> {
    stopTimer: () => void;
  }
  const kept = new Map<string, Entry>();
  const ending = new Set<Promise<void>>();
  const end = (name: string, entry: Entry): void => {
    if (kept.get(name) === entry) kept.delete(name);
    entry.stopTimer();
    const done = entry.end().finally(() => ending.delete(done));
    ending.add(done);
  };
  return {
    use: <T>(name: string, make: () => Kept<T>): T => {
      const entry: Entry = kept.get(name) ?? { ...make(), stopTimer: () => undefined };
      entry.stopTimer();
      entry.stopTimer = schedule(() => end(name, entry), IDLE_MS);
      // The entry is moved to the end of the map, because it was used just now.
      kept.delete(name);
      kept.set(name, entry);
      const [oldest] = kept;
      if (kept.size > MOST && oldest) end(...oldest);
      return entry.session as T;
    },
    drop: (name, session) => {
      const entry = kept.get(name);
      if (entry?.session === session) end(name, entry as Entry);
    },
    end: async () => {
      for (const [name, entry] of kept) end(name, entry);
      await Promise.all(ending);
    },
  };
}
