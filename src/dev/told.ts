// Defines a telling of a receiver's hook: the body of `POST /api/told` (dev.md §3.2). `devHooks` writes it and dev
// reads it, so that it imports nothing.

/** The body of `POST /api/told`: a telling of a hook of a receiver (dev.md §3.2). Others' senders are left out. */
export type Told =
  | {
      readonly hook: 'outcome';
      /** The agent URL of the sender. */
      readonly sender?: string;
      /** `accepted`, `duplicate`, `stale`, `challenge`, `refused`, `unavailable`. */
      readonly kind: string;
      /** The state of an accepted delivery, or of a duplicate. */
      readonly state?: string;
      readonly status: number;
      readonly code?: string;
      readonly detail?: string;
      /** The idempotency key. */
      readonly key?: string;
      readonly deliveryId?: string;
      /** The event that the handler gets, as JSON. If it has no JSON, this is text. */
      readonly event?: unknown;
    }
  | {
      readonly hook: 'refused';
      readonly sender?: string;
      readonly status: number;
      readonly code: string;
      readonly detail: string;
      /** The value of the delivery's header `Signature`, or of its HMAC, by which dev finds it. */
      readonly proof?: string;
    }
  | {
      readonly hook: 'handled';
      readonly sender: string;
      readonly key: string;
      readonly deliveryId: string;
      /**
       * The task and its status, like `key` those of the event, if it has them: what a poll brought is in no
       * delivery.
       */
      readonly taskId?: string;
      readonly status?: string;
      /** `applied`, `failed`, `dead`, `stale`. */
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
