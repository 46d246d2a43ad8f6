import { pathAndQuery } from '../config/public-url.ts';
import { type AdapterReceiver, FETCH_FIX, wiringOf } from './shared-adapter.ts';
import { answerFetch, bodyOf } from './fetch-adapter.ts';

export type { AdapterReceiver } from './shared-adapter.ts';

/**
 * `Request` → `Response`, for Deno, Bun, workers, Next route handlers, Hono and whatever else speaks the Fetch API.
 * It rejects only with a `ConfigError` where it is given no `Request`. The body is counted while it is read, and must not have been read before: one that was is
 * answered 503 `body_consumed`.
 *
 * `Request.url` is a normalised URL: with a `publicUrl` that ends in `/*`, sellers must have been given the URL in
 * that form; where one was not, its deliveries are answered 503 with the alarm `public_url_mismatch`. With an exact `publicUrl` it
 * makes no difference.
 */
export function webhookHandler(receiver: AdapterReceiver): (request: Request) => Promise<Response> {
  const check = wiringOf('fetch', receiver);
  return (request) => {
    check(request);
    // Path and query only: `Request.url` is made by the framework, and its authority is not part of what was received.
    const url = pathAndQuery(request.url);
    const { method, headers } = request;
    const exchange = { fix: FETCH_FIX, method, body: bodyOf(request), headers, url, urlNormalised: true };
    return answerFetch(receiver, exchange);
  };
}
