// Serves a receiver in Hono 3 and 4 on any runtime: the entry `proto-webhooks/hono` (docs/frameworks.md).
// Called by buyers. On Node the adapter reads Node's own request; elsewhere it reads the `Request`, through
// `fetch-adapter.ts`.

import { pathAndQuery } from '../config/public-url.ts';
import { type AdapterReceiver, HONO_FIX, wiringOf } from './shared-adapter.ts';
import { answerFetch, bodyOf, type FetchBody, type FetchExchange } from './fetch-adapter.ts';
import { disconnectSignal, type NodeRequest, type NodeResponse, readStream } from './node-adapter.ts';

export type { AdapterReceiver } from './shared-adapter.ts';

/** Hono's context, version 3 or 4, reduced to the parts that `webhookHandler` uses. */
export interface HonoContext {
  readonly req: { readonly raw: Request };
  /**
   * The environment. `@hono/node-server` passes Node's request as `incoming`, which has details that `Request` hides.
   */
  readonly env?: unknown;
}

/** Request and response of `@hono/node-server`, HTTP/1.1 or HTTP/2. */
interface NodePair {
  readonly incoming: NodeRequest & { readonly rawHeaders: readonly string[]; readonly url: string };
  readonly outgoing: NodeResponse;
}

/**
 * Returns Node's own request and response, if `env` has them. They show repeated header lines and the target as
 * received, which `Request` hides.
 */
function nodePairOf(env: unknown): NodePair | undefined {
  const { incoming, outgoing } = (env ?? {}) as Partial<NodePair>;
  if (!incoming || !outgoing || typeof incoming.url !== 'string') return undefined;
  return Array.isArray(incoming.rawHeaders) && incoming.rawHeaders.length > 0
    ? { incoming, outgoing }
    : undefined;
}

/** True if no other code has read Node's stream or listened to it. */
const isUntouched = (incoming: NodeRequest): boolean =>
  incoming.readableFlowing === null && incoming.readableEncoding === null && !('rawBody' in incoming);

/**
 * Reads the body from Node's own stream. A `Request` and its web stream would cost as much time as the verification.
 */
function nodeBody({ incoming, outgoing }: NodePair): FetchBody {
  return {
    signal: disconnectSignal(outgoing),
    isLost: () => false,
    read: (ticket) => readStream(incoming, ticket),
    // Nothing to do: after the answer, the server itself reads and drops the rest of the body.
    cancel: () => {},
  };
}

/** Collects the facts of a request from Node's request if there is one, else from the platform's `Request`. */
function exchangeOf({ req: { raw }, env }: HonoContext): FetchExchange {
  const pair = nodePairOf(env);
  return {
    fix: HONO_FIX,
    method: raw.method,
    body: pair && isUntouched(pair.incoming) ? nodeBody(pair) : bodyOf(raw),
    headers: pair?.incoming.rawHeaders ?? raw.headers,
    url: pair?.incoming.url ?? pathAndQuery(raw.url),
    urlNormalised: !pair,
  };
}

/**
 * Creates a Hono handler that serves a receiver, for Hono 3 and 4, on any runtime.
 *
 * Register it before middleware that reads the body, because a body that was read is answered with 503 `body_consumed`.
 * On `@hono/node-server` the handler sees header lines and URL as they were received. On other runtimes `Request.url`
 * is normalised, which matters only if `publicUrl` ends in `/*`.
 *
 * @example
 * ```ts
 * import { Hono } from 'hono';
 * import type { Receiver } from 'proto-webhooks';
 * import { webhookHandler } from 'proto-webhooks/hono';
 *
 * export function appOf(receiver: Receiver): Hono {
 *   const app = new Hono();
 *   app.all('/webhooks/proto', webhookHandler(receiver));
 *   return app;
 * }
 * ```
 */
export function webhookHandler(receiver: AdapterReceiver): (context: HonoContext) => Promise<Response> {
  const check = wiringOf('hono', receiver);
  return (context) => {
    check(context);
    return answerFetch(receiver, exchangeOf(context));
  };
}
