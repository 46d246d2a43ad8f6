// A sleep that can be ended early, so that an event queued in this process does not wait for the next poll.
// Made once per receiver: the worker waits, and whatever queues an event or frees a handler notifies.

/**
 * A sleep that can be ended early. A notification before the sleep ends the next sleep at once, so that none is
 * lost.
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
