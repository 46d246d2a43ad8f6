// The hooks with which `proto-webhooks/otel` observes a receiver from inside.
// The receiver calls them; each is absent if nothing observes it.

import type { Event } from '../events/event.ts';
import type { Handled } from '../config/receiver-options.ts';
import type { Outcome } from '../shared/outcome.ts';
import type { Lease } from '../stores/store.ts';

/** One delivery, observed by `proto-webhooks/otel`. */
export interface DeliveryWatch {
  /** Called when a step has ended: checks 1 to 10 (`headers`), the arrival of the body, verification, admission. */
  readonly passed: (step: 'headers' | 'body' | 'verified' | 'admitted') => void;
  /** Runs the part of the processing that begins when the body has arrived. */
  readonly resumed: <T>(run: () => Promise<T>) => Promise<T>;
  /** W3C `traceparent` that is stored with the event, for the process that runs its handler. */
  readonly traceparent: string | undefined;
  readonly ended: (outcome: Outcome, headers: ReadonlyMap<string, readonly string[]> | undefined) => void;
}

/** One run of a handler. */
export interface HandlerRun {
  readonly deliveryId: string;
  /** W3C `traceparent` of the delivery that brought the event. Present for workers only. */
  readonly traceparent?: string | undefined;
  readonly lease: Pick<Lease, 'run' | 'chargedAttempts'>;
}

/**
 * Hooks that observe a receiver from inside. A hook is absent if nothing observes, so that nothing is built for it.
 * None of them throws.
 */
export interface Instruments {
  delivery?: <T>(run: (watch: DeliveryWatch) => Promise<T>) => Promise<T>;
  /** Runs `handle`, which calls the handler, and returns its result or throws its error. */
  handler?: (run: HandlerRun, event: Event, handle: () => unknown) => unknown;
  handled?: (handled: Handled) => void;
  /** Called when a fetch of a key document has succeeded or failed. */
  fetched?: (document: string, failure: 'key_fetch_failing' | 'key_document_invalid' | undefined) => void;
}

/**
 * The name of the member in which a receiver has its parts. `proto-webhooks/otel` reads it, and may come from
 * another copy of the package.
 */
export const CONTEXT: unique symbol = Symbol.for('proto-webhooks.parts') as never;
