/** A sleep that can be ended early; a notification that comes before the sleep ends it too, so that none is lost. */
export interface WakeSignal {
  readonly notify: () => void;
  /** Whether a worker of this process was started. */
  listened: boolean;
  /** Resolves after `ms`, or at `notify`. For one that waits. */
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
