// Hooks by which `proto-webhooks/otel` (OpenTelemetry) observes a receiver from inside.
// The receiver calls each hook that is set; without observation no hook is set.

import type { Event } from '../events/event.ts';
import type { Handled } from '../config/receiver-options.ts';
import type { Outcome } from '../shared/outcome.ts';
import type { Lease } from '../stores/store.ts';

/** The callbacks for one delivery, made by `proto-webhooks/otel`. */
export interface DeliveryWatch {
  /**
   * Called when a stage has ended: the header checks 1 to 10 (`headers`), the arrival of the body, the verification, or
   * the event's storing (`admitted`).
   */
  readonly passed: (step: 'headers' | 'body' | 'verified' | 'admitted') => void;
  /** Runs `run`, which processes the delivery once its body has arrived, and returns the result. */
  readonly resumed: <T>(run: () => Promise<T>) => Promise<T>;
  /**
   * The W3C `traceparent` that is stored with the event, so that the handler's trace continues the delivery's trace.
   */
  readonly traceparent: string | undefined;
  readonly ended: (outcome: Outcome, headers: ReadonlyMap<string, readonly string[]> | undefined) => void;
}

/** The facts about one run of a handler, for the hook `handler`. */
export interface HandlerRun {
  readonly deliveryId: string;
  /** The W3C `traceparent` of the delivery that brought the event. Present only if a worker runs the handler. */
  readonly traceparent?: string | undefined;
  readonly lease: Pick<Lease, 'run' | 'chargedAttempts'>;
}

/**
 * Hooks that observe a receiver from inside. Without an observer a hook is absent, so that its arguments need not be
 * made. No hook throws.
 */
export interface Instruments {
  delivery?: <T>(run: (watch: DeliveryWatch) => Promise<T>) => Promise<T>;
  /** Runs `handle`, which calls the handler, and returns its result or throws its error. */
  handler?: (run: HandlerRun, event: Event, handle: () => unknown) => unknown;
  handled?: (handled: Handled) => void;
  /** Called when a fetch of a key document has succeeded, or has failed (then `failure` is set). */
  fetched?: (document: string, failure: 'key_fetch_failing' | 'key_document_invalid' | undefined) => void;
}

/**
 * The symbol under which a receiver holds its internal parts. The symbol is global, because `proto-webhooks/otel` reads
 * the parts and may come from another copy of the package.
 */
export const CONTEXT: unique symbol = Symbol.for('proto-webhooks.parts') as never;
