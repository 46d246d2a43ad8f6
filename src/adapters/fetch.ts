// Serves a receiver in any framework with the Fetch API: the entry `proto-webhooks/fetch`
// (docs/frameworks.md).
// Called by buyers; `fetch-adapter.ts` reads the request and makes the answer.

import { pathAndQuery } from '../config/public-url.ts';
import { type AdapterReceiver, FETCH_FIX, wiringOf } from './shared-adapter.ts';
import { answerFetch, bodyOf } from './fetch-adapter.ts';

export type { AdapterReceiver } from './shared-adapter.ts';

/**
 * Creates a function from `Request` to `Response` that serves a receiver. It is for Deno, Bun, workers, Next
 * route handlers, and every other framework with the Fetch API.
 *
 * The body's size is checked while it is read. A body that was read before is answered with 503 `body_consumed`.
 *
 * `Request.url` is a normalised URL. If `publicUrl` ends in `/*`, give sellers the URL in normalised form;
 * deliveries to another form are answered with 503 and the alarm `public_url_mismatch`. An exact `publicUrl`
 * is not affected.
 * @throws ConfigError (rejects), from the handler, if its argument is not a `Request`. It rejects with
 *   nothing else.
 * @example
 * ```ts
 * import type { Receiver } from 'proto-webhooks';
 * import { webhookHandler } from 'proto-webhooks/fetch';
 *
 * export function routeOf(receiver: Receiver) {
 *   return { POST: webhookHandler(receiver) };
 * }
 * ```
 */
export function webhookHandler(receiver: AdapterReceiver): (request: Request) => Promise<Response> {
  const check = wiringOf('fetch', receiver);
  return (request) => {
    check(request);
    // Path and query only: the framework sets the authority in `Request.url`, so it may differ from the received one.
    const url = pathAndQuery(request.url);
    const { method, headers } = request;
    const exchange = { fix: FETCH_FIX, method, body: bodyOf(request), headers, url, urlNormalised: true };
    return answerFetch(receiver, exchange);
  };
}
