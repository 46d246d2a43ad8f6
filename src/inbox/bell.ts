/** A sleep that can be ended early; a ring that comes before the sleep ends it too, so that none is lost. */
export interface Bell {
  readonly ring: () => void;
  /** Whether a worker of this process was started. */
  listened: boolean;
  /** Resolves after `ms`, or when it rings. For one who waits. */
  readonly wait: (ms: number) => Promise<void>;
}

export function createBell(): Bell {
  let rung = false;
  let wake = (): void => {};
  return {
    listened: false,
    ring() {
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
