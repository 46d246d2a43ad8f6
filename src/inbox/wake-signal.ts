// A sleep that can be ended early, so that an event queued in this process does not wait for the next poll.
// Each receiver has one: its worker sleeps, and code that queues an event or ends a handler wakes the worker.

/**
 * A sleep that can be ended early. A notification that comes before a sleep makes the next sleep end immediately, so
 * that no notification is lost.
 */
export interface WakeSignal {
  readonly notify: () => void;
  /** True once a worker of this process was started. */
  listened: boolean;
  /** Resolves after `ms` or at `notify`. Only one caller may wait at a time. */
  readonly wait: (ms: number) => Promise<void>;
}

export function createWakeSignal(): WakeSignal {
  let notified = false;
  let wake = (): void => {};
  return {
    listened: false,
    notify() {
      notified = true;
      wake();
    },
    async wait(ms) {
      if (!notified) {
        await new Promise<void>((resolve) => {
          const timer = setTimeout(resolve, ms);
          wake = () => {
            clearTimeout(timer);
            resolve();
          };
        });
      }
      notified = false;
    },
  };
}
