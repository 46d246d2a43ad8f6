// The hooks by which `proto-webhooks/otel` watches a receiver from inside.
// The receiver calls them; each is absent when nobody watches.

import type { Event } from '../events/event.ts';
import type { Handled } from '../config/receiver-options.ts';
import type { Outcome } from '../shared/outcome.ts';
import type { Lease } from '../stores/store.ts';

/** One delivery, as `proto-webhooks/otel` watches it. */
export interface DeliveryWatch {
  /**
   * Called when a part is over: checks 1 to 10 (`headers`), the arrival of the body, the verification, the
   * admission.
   */
  readonly passed: (step: 'headers' | 'body' | 'verified' | 'admitted') => void;
  /** Runs the second half, which begins when the body is there. */
  readonly resumed: <T>(run: () => Promise<T>) => Promise<T>;
  /** W3C `traceparent` that is kept with the event, for the process that runs it. */
  readonly traceparent: string | undefined;
  readonly ended: (outcome: Outcome, headers: ReadonlyMap<string, readonly string[]> | undefined) => void;
}

/** One run of a handler. */
export interface HandlerRun {
  readonly deliveryId: string;
  /** W3C `traceparent` of the delivery that brought the event. Only workers have it. */
  readonly traceparent?: string | undefined;
  readonly lease: Pick<Lease, 'run' | 'chargedAttempts'>;
}

/**
 * Hooks that watch a receiver from inside. A member is absent when nobody watches, so that nothing is built
 * for it. None of them throws.
 */
export interface Instruments {
  delivery?: <T>(run: (watch: DeliveryWatch) => Promise<T>) => Promise<T>;
  /** Runs a handler, and returns or throws the result of `handle`. */
  handler?: (run: HandlerRun, event: Event, handle: () => unknown) => unknown;
  handled?: (handled: Handled) => void;
  /** Called when a key document was fetched, or the fetch failed. */
  fetched?: (document: string, failure: 'key_fetch_failing' | 'key_document_invalid' | undefined) => void;
}

/**
 * The member under which a receiver holds its parts, for `proto-webhooks/otel`, which may come from another
 * copy of the package.
 */
export const CONTEXT: unique symbol = Symbol.for('proto-webhooks.parts') as never;
