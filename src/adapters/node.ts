import type { NodeRequest } from './node-body.ts';
import type { DoorReceiver } from './door.ts';
import { breakOff, serve, writeFault, type NodeResponse } from './node-door.ts';

export type { NodeRequest } from './node-body.ts';
export type { DoorReceiver } from './door.ts';
export type { NodeResponse } from './node-door.ts';

/**
 * A request listener for `http.createServer`, `https.createServer` and `http2.createServer` (compatibility API).
 * It answers every request that it is given, whatever the path: 405 and 415 from the headers alone, 413 while
 * reading, 503 for a body slower than `bodyDeadlineMs`, else what the receiver decides. An upload that breaks off
 * is answered with nothing and leaves no state. Nothing escapes it.
 *
 * Node's own time-outs answer 408, which sellers take as final: leave `server.requestTimeout` (300 s) well above
 * `bodyDeadlineMs`.
 */
export function webhookHandler(receiver: DoorReceiver): (req: NodeRequest, res: NodeResponse) => void {
  return (req, res) => {
    serve(receiver, req, res, req.url)
      .catch((error: unknown) => writeFault(receiver, req, res, error))
      .catch(() => breakOff(req));
  };
}
