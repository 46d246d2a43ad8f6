import { type NodeRequest, type NodeResponse, serveSafely } from './node-door.ts';
import { type DoorReceiver, NODE_FIX, wiringOf } from './door.ts';

export { type CaptureOptions, captureRefused } from './capture-refused.ts';
export type { NodeRequest } from './node-door.ts';
export type { DoorReceiver } from './door.ts';
export type { NodeResponse } from './node-door.ts';

/**
 * A request listener for `http.createServer`, `https.createServer` and `http2.createServer` (compatibility API).
 * It answers every request that it is given, whatever the path: 405 and 415 from the headers alone, 413 while
 * reading, 503 for a body slower than `bodyDeadlineMs`, else what the receiver decides. An upload that breaks off
 * is answered with nothing and leaves no state. Nothing escapes it but a `ConfigError` where something else than
 * Node's http calls it.
 *
 * Node's own time-outs answer 408, which sellers take as final: leave `server.requestTimeout` (300 s) well above
 * `bodyDeadlineMs`.
 */
export function webhookHandler(receiver: DoorReceiver): (req: NodeRequest, res: NodeResponse) => void {
  const check = wiringOf('node', receiver);
  return (req, res) => {
    check(req);
    serveSafely(receiver, { fix: NODE_FIX, req, res, url: req.originalUrl ?? req.url });
  };
}
