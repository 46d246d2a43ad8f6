import { pathAndQuery } from '../config/public-url.ts';
import { HONO_FIX } from './consumed.ts';
import type { DoorReceiver } from './door.ts';
import { answerFetch, type FetchVisit } from './fetch-door.ts';
import { wiringOf } from './wiring.ts';

export type { DoorReceiver } from './door.ts';

/** What is needed of Hono's context, 3 or 4. */
export interface HonoContext {
  readonly req: { readonly raw: Request };
  /** `@hono/node-server` gives Node's request as `incoming`, which shows what `Request` hides. */
  readonly env?: unknown;
}

/** What `Request` hides and Node's request shows: repeated header lines, and the target as received. */
interface Incoming {
  readonly rawHeaders: readonly string[];
  readonly url: string;
}

function incomingOf(env: unknown): Incoming | undefined {
  const { incoming } = (env ?? {}) as { readonly incoming?: Partial<Incoming> | null };
  const { rawHeaders, url } = incoming ?? {};
  if (!Array.isArray(rawHeaders) || rawHeaders.length === 0 || typeof url !== 'string') return undefined;
  return { rawHeaders, url };
}

/** Node's, where there is one; else what the platform made of it. */
function visitOf({ req: { raw }, env }: HonoContext): FetchVisit {
  const incoming = incomingOf(env);
  return {
    fix: HONO_FIX,
    request: raw,
    headers: incoming?.rawHeaders ?? raw.headers,
    url: incoming?.url ?? pathAndQuery(raw.url),
  };
}

/**
 * A handler for Hono 3 and 4, on any runtime: `app.all('/webhooks/proto', webhookHandler(receiver))`.
 *
 * Register it before middleware that reads the body: one that was read is answered 503 `body_consumed`. On
 * `@hono/node-server` it sees header lines and URL as they were received; elsewhere `Request.url` is a normalised URL,
 * which only matters where `publicUrl` ends in `/*`.
 */
export function webhookHandler(receiver: DoorReceiver): (context: HonoContext) => Promise<Response> {
  const check = wiringOf('hono', receiver);
  return (context) => {
    check(context);
    return answerFetch(receiver, visitOf(context));
  };
}
