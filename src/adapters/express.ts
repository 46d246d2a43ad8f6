// Serves a receiver in Express 4 and 5: the entry `proto-webhooks/express` (docs/frameworks.md).
// Called by buyers; `node-adapter.ts` reads the request and writes the answer.

import { type NodeRequest, type NodeResponse, serveSafely } from './node-adapter.ts';
import { type AdapterReceiver, EXPRESS_FIX, wiringOf } from './shared-adapter.ts';

export type { NodeRequest } from './node-adapter.ts';
export type { AdapterReceiver } from './shared-adapter.ts';
export type { NodeResponse } from './node-adapter.ts';

/** An Express 4 or 5 request, reduced to the parts that `webhookHandler` uses. */
export type ExpressRequest = NodeRequest;

/** Express's function `next`. Absent if another framework calls the handler. */
type Next = (error?: unknown) => void;

/**
 * Creates an Express handler that serves a receiver, for Express 4 and 5.
 *
 * It needs the exact bytes of the body, so mount it before `app.use(express.json())`. If that is impossible, use one
 * of these for its path:
 *
 * - `express.raw({ type: '*\/*', limit: '1mb' })`
 * - `express.json({ limit: '1mb', verify: (req, _res, bytes) => { req.rawBody = bytes; } })`
 *
 * Both limits must be at least `maxBodyBytes`, because the parser answers 413 above its limit. A parsed body is
 * answered with 503 `body_consumed`, and the log names these fixes.
 *
 * Every error is answered with 503 here, because an error handler may answer 4xx. Only a `ConfigError` goes to
 * `next`, if another framework calls the handler.
 *
 * @example
 * ```ts
 * import express from 'express';
 * import type { Receiver } from 'proto-webhooks';
 * import { webhookHandler } from 'proto-webhooks/express';
 *
 * export function appOf(receiver: Receiver): express.Express {
 *   const app = express();
 *   app.all('/webhooks/proto', webhookHandler(receiver));
 *   app.use(express.json());
 *   return app;
 * }
 * ```
 */
export function webhookHandler(
  receiver: AdapterReceiver,
): (req: ExpressRequest, res: NodeResponse, next?: Next) => void {
  const check = wiringOf('express', receiver);
  return (req, res, next) => {
    try {
      check(req);
    } catch (error) {
      if (!next) throw error;
      next(error);
      return;
    }
    serveSafely(receiver, { fix: EXPRESS_FIX, req, res, url: req.originalUrl ?? req.url });
  };
}
