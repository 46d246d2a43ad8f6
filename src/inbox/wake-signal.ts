/** A sleep that can be ended early; a ring that comes before the sleep ends it too, so that none is lost. */
export interface WakeSignal {
  readonly notify: () => void;
  /** Whether a worker of this process was started. */
  listened: boolean;
  /** Resolves after `ms`, or when it rings. For one who waits. */
  readonly wait: (ms: number) => Promise<void>;
}

export function createWakeSignal(): WakeSignal {
  let rung = false;
  let wake = (): void => {};
  return {
    listened: false,
    notify() {
      rung = true;
      wake();
    },
    async wait(ms) {
      if (!rung) {
        await new Promise<void>((resolve) => {
          const timer = setTimeout(resolve, ms);
          wake = () => {
            clearTimeout(timer);
            resolve();
          };
        });
      }
      rung = false;
    },
  };
}
