/** Runs `task` once after `ms`; what it gives back cancels that. */
export type Schedule = (task: () => void, ms: number) => () => void;

/** A timer that does not hold the process open, where the runtime has such timers. */
export const backgroundTimer: Schedule = (task, ms) => {
  const timer: unknown = setTimeout(task, ms);
  (timer as { readonly unref?: () => unknown }).unref?.();
  return () => {
    clearTimeout(timer as ReturnType<typeof setTimeout>);
  };
};

/** Where a request owns its I/O (workerd) a timer dies with it, or wakes where nothing may be fetched: none is set. */
export const noTimer: Schedule = () => () => undefined;
