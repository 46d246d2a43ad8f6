import type { CallSessions } from '../calls/sessions.ts';
import type { Transport } from '../events/event.ts';
import type { JsonObject } from './answer-json.ts';

/** Calls an operation of a seller: the caller's own client. */
export interface CallSeller {
  (
    agentUrl: string,
    operation: string,
    args: JsonObject,
    options: {
      readonly signal: AbortSignal;
      /** The operation's `ref`, where it has one. */
      readonly ref?: string;
      /** Of a poller, to be passed on to another caller: its sessions outlive the call. */
      readonly sessions?: CallSessions;
    },
  ): Promise<unknown>;
  /** By which transport each seller is called; the tool transport unless it says. A poller asks accordingly. */
  readonly transport?: Transport | ((agentUrl: string) => Transport | undefined);
  /**
   * Names of the operations that a seller has: tools, or skills of its agent card; undefined where it has no list. A poller asks
   * for a task by one of them; absent: by the names that it knows, one after the other.
   */
  readonly operations?: (
    agentUrl: string,
    options: { readonly signal: AbortSignal; readonly ref?: string; readonly sessions?: CallSessions },
  ) => Promise<readonly string[] | undefined>;
}

/** A seller that is asked what it declares. */
export interface AskedSeller {
  readonly agentUrl: string;
  /** Of the operation or the task on whose occasion it is asked. */
  readonly ref?: string | undefined;
  /** Of a poller. */
  readonly sessions?: CallSessions;
  /** What it lists, where somebody has that; else the caller is asked. */
  readonly names?: () => Promise<readonly string[] | undefined>;
}
