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

/** Where a function that makes callers has its name: given in the place of a caller, it is found before a seller is called. */
export const CALLER_MAKER: unique symbol = Symbol.for('proto-webhooks.caller-maker') as never;

/** A function that makes callers. */
export interface CallerMaker {
  readonly [CALLER_MAKER]: string;
}

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
        const refusal =
          refusalOf(response, token !== undefined, now()) ??
          (init?.method === 'POST' ? noAgentOf(url, response) : undefined);
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
  if (type === 'bearer') requireSet('auth.token', isBlank(token) ? '' : token);
  if (type !== 'bearer' || (typeof token !== 'function' && typeof token !== 'string')) {
    throw new ConfigError("auth: must be { type: 'bearer', token }, where token is a string or a function.");
  }
  if (typeof token === 'string') {
    requireToken(token);
    return async () => token;
  }
  return async (agentUrl) => {
    const given: unknown = await token(agentUrl);
    if (given === undefined) return undefined;
    if (typeof given === 'string' && !isBlank(given)) return requireToken(given);
    const what = given === null ? 'null' : typeof given === 'string' ? 'an empty text' : `a ${typeof given}`;
    throw new ConfigError(
      `auth.token: the function gave ${what}. Give the token, or undefined where there is none.`,
    );
  };
}

const isBlank = (token: unknown): boolean => typeof token === 'string' && token.trim() === '';

/** The token, which no message repeats. @throws ConfigError for what cannot be sent as one. */
function requireToken(token: string): string {
  if (/^\s*bearer\s/i.test(token)) {
    throw new ConfigError('auth.token: begins with "Bearer ". Give the token alone.');
  }
  try {
    new Headers().set('authorization', token);
  } catch {
    throw new ConfigError(
      'auth.token: has a character that no HTTP header can have. Give the token as the seller gave it.',
    );
  }
  return token;
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

const NOT_FOUND = 404;
const SERVER_ERROR = 500;

/** An answer of a web server in the place of an agent: its page would fill the message of an error. */
function noAgentOf(url: string | URL, { ok, status, headers }: Response): Error | undefined {
  const type = headers.get('content-type') ?? '';
  const isPage = type.startsWith('text/html');
  if (ok || type.includes('json') || !(isPage || status === NOT_FOUND)) return undefined;
  const hint = status < SERVER_ERROR ? ' Is agentUrl right?' : '';
  return new Error(`${String(url)} answers HTTP ${status}${isPage ? ' with a web page' : ''}.${hint}`);
}
