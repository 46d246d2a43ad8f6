// Defines a hook report: what `devHooks` in a receiver posts to `POST /api/told` of dev (dev.md §3.2). Both sides
// import this file, so it imports nothing.

/**
 * A hook report, the body of `POST /api/told` (dev.md §3.2). `devHooks` does not report about senders other than dev's
 * sellers.
 */
export type Told =
  | {
      readonly hook: 'outcome';
      /** The agent URL of the sender. */
      readonly sender?: string;
      /** The outcome of the delivery: `accepted`, `duplicate`, `stale`, `challenge`, `refused`, `unavailable`. */
      readonly kind: string;
      /** The state of the event, if the delivery was accepted or a duplicate. */
      readonly state?: string;
      readonly status: number;
      readonly code?: string;
      readonly detail?: string;
      /** The idempotency key of the event. */
      readonly key?: string;
      readonly deliveryId?: string;
      /** The event that the handler gets, as JSON. If the event is too large or has no JSON form, a text says so. */
      readonly event?: unknown;
    }
  | {
      readonly hook: 'refused';
      readonly sender?: string;
      readonly status: number;
      readonly code: string;
      readonly detail: string;
      /**
       * The value of the delivery's header `Signature`, or of its HMAC header. Dev finds the delivery by this value.
       */
      readonly proof?: string;
    }
  | {
      readonly hook: 'handled';
      readonly sender: string;
      readonly key: string;
      readonly deliveryId: string;
      /**
       * The id of the event's task, if there is one, and in `status` the task's status. They are needed for an event
       * that came by a poll, because no delivery has it.
       */
      readonly taskId?: string;
      readonly status?: string;
      /** The result of the run: `applied`, `failed`, `dead`, `stale`. */
      readonly state: string;
      readonly run: number;
      readonly durationMs: number;
      readonly waitedMs: number;
      readonly error?: string;
    }
  | {
      readonly hook: 'alarm';
      readonly sender?: string;
      readonly code: string;
      readonly message: string;
    };
