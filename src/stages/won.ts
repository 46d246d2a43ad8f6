import type { AcceptDecision, Lease } from '../stores/contract.ts';
import type { Origin } from './read.ts';
import type { Running } from './running.ts';
import type { FirstCopy } from './stored.ts';

/** An event that is leased to this process, whoever leased it: its handler is to run. */
export interface Won {
  readonly kind: 'won';
  readonly origin: Origin;
  readonly key: string;
  /** Of sender and key. */
  readonly deliveryId: string;
  /** Of a delivery: as the store was told. */
  readonly taskId?: string | undefined;
  readonly lease: Lease;
  /** How long a worker's was stored, by the store's clock. Ms. */
  readonly waitedMs?: number;
  /** A worker's: of the delivery that brought it. W3C `traceparent`. */
  readonly traceparent?: string | undefined;
  readonly place: Place;
  /** @throws Fault `misconfigured` where the stored body cannot be read any more. */
  readonly firstCopy: () => FirstCopy;
  /** Nobody would bring it again: if it fails, it is DEAD. */
  readonly once: boolean;
}

/** One that this process may run, and counts as running (admission.md §4.7). */
export interface Started {
  readonly won: Won;
  /** As `Running.begin` gives it. */
  readonly over: () => void;
}

/** Undefined where this process must not start it: its lease is to be given back. */
export function started(won: Won, running: Running): Started | undefined {
  const { origin, key, deliveryId, taskId, lease } = won;
  const suspect = lease.suspect === true;
  const over = running.begin({ deliveryId, sender: origin.agentUrl, key, suspect, taskId });
  return over && { won, over };
}

/** What the store knows of an event beside its body. */
export type Place = Pick<
  Extract<AcceptDecision, { kind: 'won' }>,
  'reemission' | 'afterTerminal' | 'afterFinal'
>;
