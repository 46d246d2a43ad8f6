import { retryAfterMs } from '../codec/retry-after.ts';
import { requireUrl } from '../config/public-url.ts';
import { flag, MAX_TIMER_MS, onlyKnown, requireSet, wholeNumber } from '../config/validate.ts';
import { ConfigError } from '../errors.ts';
import { SellerBusyError, SellerError, TOO_MANY_REQUESTS } from './answer.ts';

/** How the buyer proves who it is: credentials are each seller's own. */
export interface SellerAuth {
  readonly type: 'bearer';
  /**
   * The token, or a function that gives the one for a seller: asked before each call, undefined where there is none. A token
   * that is undefined itself, of an unset environment variable, is a ConfigError.
   */
  readonly token:
    string | undefined | ((agentUrl: string) => string | undefined | Promise<string | undefined>);
}

/** Options of the callers of both transports. */
export interface CallerOptions {
  /** Absent: operations that are public alone. */
  readonly auth?: SellerAuth | undefined;
  /** For the answer to a request, ms. 60 000. */
  readonly timeoutMs?: number | undefined;
  /** http, for development. */
  readonly allowLoopback?: boolean | undefined;
}

export const CALLER_OPTIONS: Readonly<Record<keyof CallerOptions, true>> = {
  auth: true,
  timeoutMs: true,
  allowLoopback: true,
};

/** The form of `fetch` that the transports use. */
export type SellerFetch = (url: string | URL, init?: RequestInit) => Promise<Response>;

/** What both callers do alike. */
export interface Caller {
  readonly timeoutMs: number;
  readonly allowLoopback: boolean;
  /**
   * `fetch` for one call of a seller: it sends the token, and rejects with SellerError where the transport refuses the
   * credentials, with SellerBusyError where it is to be called later.
   * @throws ConfigError where the URL cannot be called.
   */
  readonly fetchFor: (agentUrl: string) => Promise<SellerFetch>;
}

/**
 * @param now Unix ms, for a `Retry-After` that is a date.
 * @throws ConfigError where an option is wrong.
 */
export function callerOf(
  name: string,
  options: CallerOptions,
  known: object,
  now: () => number = Date.now,
): Caller {
  if (typeof options === 'string') {
    throw new ConfigError(
      `${name}: was called as if it were the caller. Give what it returns: ${name}({ auth }).`,
    );
  }
  onlyKnown(name, options, known);
  const tokenOf = tokenSource(options.auth);
  const allowLoopback = flag('allowLoopback', options.allowLoopback);
  return {
    timeoutMs: wholeNumber('timeoutMs', options.timeoutMs, 60_000, 1, MAX_TIMER_MS),
    allowLoopback,
    fetchFor: async (agentUrl) => {
      requireUrl('agentUrl', agentUrl, allowLoopback);
      const token = await tokenOf(agentUrl);
      return async (url, init) => {
        const headers = new Headers(init?.headers);
        if (token !== undefined) headers.set('authorization', `Bearer ${token}`);
        const response = await fetch(url, { ...init, headers });
        const refusal = refusalOf(response, token !== undefined, now());
        if (!refusal) return response;
        await response.body?.cancel().catch(() => undefined);
        throw refusal;
      };
    },
  };
}

function tokenSource(auth: SellerAuth | undefined): (agentUrl: string) => Promise<string | undefined> {
  if (auth === undefined) return async () => undefined;
  const { type, token } = auth;
  if (type === 'bearer') requireSet('auth.token', token);
  if (type !== 'bearer' || (typeof token !== 'function' && typeof token !== 'string')) {
    throw new ConfigError("auth: must be { type: 'bearer', token }, where token is a string or a function.");
  }
  return async (agentUrl) => (typeof token === 'function' ? token(agentUrl) : token);
}

const UNAUTHORIZED = 401;
const FORBIDDEN = 403;
const UNAVAILABLE = 503;

/** The refusal in an HTTP status, before the seller has looked at the call. */
function refusalOf({ status, headers }: Response, hasToken: boolean, now: number): Error | undefined {
  const detail = `HTTP ${status}`;
  if (status === UNAUTHORIZED) return new SellerError(hasToken ? 'AUTH_INVALID' : 'AUTH_REQUIRED', detail);
  if (status === FORBIDDEN) return new SellerError('INSUFFICIENT_PERMISSIONS', detail);
  const retryAfter = headers.get('retry-after');
  const isBusy = status === TOO_MANY_REQUESTS || (status === UNAVAILABLE && retryAfter !== null);
  return isBusy ? new SellerBusyError(status, retryAfterMs(retryAfter, now)) : undefined;
}
