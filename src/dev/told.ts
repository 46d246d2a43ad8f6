/** The body of `POST /api/told`: what a hook of a receiver tells (dev.md §3.2). Others' senders are left out. */
export type Told =
  | {
      readonly hook: 'outcome';
      /** The agent URL. */
      readonly sender?: string;
      /** `accepted`, `duplicate`, `stale`, `challenge`, `refused`, `unavailable`. */
      readonly kind: string;
      /** Of an accepted or a duplicate one. */
      readonly state?: string;
      readonly status: number;
      readonly code?: string;
      readonly detail?: string;
      /** The idempotency key. */
      readonly key?: string;
      readonly deliveryId?: string;
      /** What the handler gets, as JSON: what has no JSON is text. */
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
      /** Of the event, as `key`, if it has them: what a poll brought is in no delivery. */
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
