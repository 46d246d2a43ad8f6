import type { Event } from '../events/event.ts';
import type { Handled } from '../config/receiver-options.ts';
import type { Outcome } from '../shared/outcome.ts';
import type { Lease } from '../stores/store.ts';

/** One delivery, as `proto-webhooks/otel` watches it. */
export interface DeliveryWatch {
  /** A part of it is over. `headers`: checks 1 to 10; `body`: it is there; `verified`; `admitted`. */
  readonly passed: (step: 'headers' | 'body' | 'verified' | 'admitted') => void;
  /** Runs its second half, which comes when its body is there. */
  readonly resumed: <T>(run: () => Promise<T>) => Promise<T>;
  /** What is kept with the event, for the process that runs it: W3C `traceparent`. */
  readonly traceparent: string | undefined;
  readonly ended: (outcome: Outcome, headers: ReadonlyMap<string, readonly string[]> | undefined) => void;
}

/** One run of a handler. */
export interface HandlerRun {
  readonly deliveryId: string;
  /** A worker's: of the delivery that brought the event. W3C `traceparent`. */
  readonly traceparent?: string | undefined;
  readonly lease: Pick<Lease, 'run' | 'chargedAttempts'>;
}

/**
 * What watches a receiver from inside. Each member is absent where nobody does, and then nothing is made for it. None of
 * them throws.
 */
export interface Instruments {
  delivery?: <T>(run: (watch: DeliveryWatch) => Promise<T>) => Promise<T>;
  /** Runs a handler: what it gives or throws is what `handle` does. */
  handler?: (run: HandlerRun, event: Event, handle: () => unknown) => unknown;
  handled?: (handled: Handled) => void;
  /** A key document was fetched, or could not be. */
  fetched?: (document: string, failure: 'key_fetch_failing' | 'key_document_invalid' | undefined) => void;
}

/** Where a receiver has its parts, for `proto-webhooks/otel`, which may be another copy of the package. */
export const CONTEXT: unique symbol = Symbol.for('proto-webhooks.parts') as never;
