import type { Arg } from './client.ts';
import type { Script } from './scripts.ts';

/** One run of a script. */
export interface Call {
  readonly script: Script;
  readonly keys: readonly string[];
  readonly args: readonly Arg[];
}

export interface LaneOptions {
  /** From the call to its answer, tries and waits included. Ms. */
  readonly timeoutMs: number;
  readonly waitTimeoutMs: number;
  /** Replicas that must have what an answer rests on; 0: none, and no WAIT is sent. */
  readonly replicas: () => number;
}

/** A call on its way. */
export interface Job {
  readonly call: Call;
  readonly deadline: number;
  /** Also when its time ran out under it. */
  readonly isSettled: () => boolean;
  readonly resolve: (reply: unknown) => void;
  readonly reject: (error: unknown) => void;
}
