import { type NodeRequest, type NodeResponse, serveSafely } from './node-adapter.ts';
import { type AdapterReceiver, EXPRESS_FIX, wiringOf } from './shared-adapter.ts';

export type { NodeRequest } from './node-adapter.ts';
export type { AdapterReceiver } from './shared-adapter.ts';
export type { NodeResponse } from './node-adapter.ts';

/** What is needed of a request of Express 4 or 5. */
export type ExpressRequest = NodeRequest;

/** `next` of Express. Absent where somebody else calls the handler. */
type Next = (error?: unknown) => void;

/**
 * A handler for Express 4 and 5: `app.all('/webhooks/proto', webhookHandler(receiver))`.
 *
 * It needs the exact bytes of the body. Mount it before `app.use(express.json())`; where that cannot be, give its
 * path `express.raw({ type: '*\/*', limit: '1mb' })`, or keep the bytes with
 * `express.json({ limit: '1mb', verify: (req, _res, bytes) => { req.rawBody = bytes; } })`. Both limits must be
 * `maxBodyBytes` or more: over it the parser answers 413. A body that was parsed is answered 503 `body_consumed`, and
 * the log names these fixes. Whatever goes wrong is answered 503 here, because an error handler may answer 4xx; only a
 * `ConfigError` of another framework's call goes to `next`.
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
