// Sends the requests of `mcpCaller` and `a2aCaller`: adds the bearer token, follows redirects, and turns refusals by
// HTTP status into errors (calls.md §4).
import { isJsonObject } from '../codec/members.ts';
import { retryAfterMs } from '../codec/retry-after.ts';
import { requireUrl } from '../config/public-url.ts';
import { flag, MAX_TIMER_MS, oneOf, onlyKnown, requireSet, wholeNumber } from '../config/validate.ts';
import { ConfigError } from '../shared/errors.ts';
import { errorsIn } from '../events/error-object.ts';
import { decoded, wholeBody } from '../calls/answer-body.ts';
import { errorJson, MAX_ANSWER_BYTES, mostValues } from '../calls/bounds.ts';
import { hostsOf, type Reach, reachOf } from '../calls/reach.ts';
import { followed, type Moved } from '../calls/redirects.ts';
import type { AnyFetchInit, NameLookUp } from '../keys/key-resolver.ts';
import { orAborted, untilRejected } from '../shared/time-limits.ts';
import { SellerBusyError, SellerError, TOO_MANY_REQUESTS } from './answer.ts';

/**
 * The bearer token with which you call sellers, or a function that returns it for each seller: the option `auth` of
 * `mcpCaller` and `a2aCaller`.
 */
export interface SellerAuth {
  readonly type: 'bearer';
  /**
   * The token, or a function that returns the token for a seller. The function is called before each call, and may
   * return undefined if there is no token. If neither is given, e.g. because an environment variable is unset, that is
   * a ConfigError.
   */
  readonly token:
    | string
    | undefined
    | ((agentUrl: string, call: TokenCall) => string | undefined | Promise<string | undefined>);
}

/**
 * The call for which a token is needed, passed to the function `token` of the option `auth` of `mcpCaller` and
 * `a2aCaller`. Use it if you have several accounts with one seller.
 */
export interface TokenCall {
  /** The operation: a task type, the operation that requests a task's status, `tools/list` or `agent-card`. */
  readonly operation: string;
  /**
   * The `ref` with which the operation was registered. For a request about a task, it is the `ref` of the task's
   * operation.
   */
  readonly ref?: string;
}

export const tokenCall = (operation: string, ref: string | undefined): TokenCall => ({
  operation,
  ...(ref !== undefined && { ref }),
});

/** Options of `mcpCaller` and `a2aCaller`: your credentials, time limits, and the connections to sellers. */
export interface CallerOptions {
  /** The credentials. Absent: only public operations can be called. */
  readonly auth?: SellerAuth | undefined;
  /** The time limit of a request, until its answer has been read, ms. Default: 60 000. */
  readonly timeoutMs?: number | undefined;
  /** If true, allows sellers on this machine, also over http, for development. Default: false. */
  readonly allowLoopback?: boolean | undefined;
  /** Host names whose addresses may be private, e.g. of your own network. Default: none. */
  readonly allowHosts?: readonly string[] | undefined;
  /**
   * The way in which Node looks up host names, as in `createReceiver`. Hosts of `allowHosts` always use the
   * operating system. Default: `direct`.
   */
  readonly dns?: NameLookUp | undefined;
  /** The largest answer after decoding, bytes. A larger one is refused. Default: 16 MiB. */
  readonly maxAnswerBytes?: number | undefined;
  /**
   * Replaces the package's own connections, e.g. for an egress proxy. It must respect `redirect: 'manual'` and
   * `signal`. The addresses to which it connects are not checked, and `allowHosts` and `dns` have no effect.
   */
  readonly fetch?: ((url: string, init: RequestInit) => Promise<Response>) | undefined;
}

export const CALLER_OPTIONS: Readonly<Record<keyof CallerOptions, true>> = {
  auth: true,
  timeoutMs: true,
  allowLoopback: true,
  allowHosts: true,
  dns: true,
  maxAnswerBytes: true,
  fetch: true,
};

/**
 * The property by which `mcpCaller` and `a2aCaller` carry their names. If such a function itself is given as the option
 * `call`, without being called, the error can name it.
 */
export const CALLER_MAKER: unique symbol = Symbol.for('proto-webhooks.caller-maker') as never;

/** A function that makes the function for the option `call`, e.g. `mcpCaller`. */
export interface CallerMaker {
  readonly [CALLER_MAKER]: string;
}

/** One HTTP request to a seller. */
export interface SellerRequest {
  readonly method: 'GET' | 'POST' | 'DELETE';
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: Uint8Array<ArrayBuffer>;
  /**
   * Maps each URL that the seller has redirected in this session to its new URL, so that later requests go straight
   * there.
   */
  readonly moved: Moved;
  /** Aborts the request, at any time until its whole answer has been read. */
  readonly signal: AbortSignal;
}

/** Sends a request. It resolves with the answer, whose body is decoded but not read yet (calls.md §4.1). */
export type SellerFetch = (url: string, request: SellerRequest) => Promise<Response>;

/** The settings and functions that `mcpCaller` and `a2aCaller` share. */
export interface Caller {
  readonly timeoutMs: number;
  /** The largest answer after decoding, bytes. */
  readonly maxAnswerBytes: number;
  /** The largest number of members and items in an answer. */
  readonly maxValues: number;
  /** Returns the reason why a URL may not be called; undefined if it may. See `Reach.refusedReason`. */
  readonly refusedReason: Reach['refusedReason'];
  /**
   * Gets the token for one call, and makes a `fetch` that sends the token.
   * @throws ConfigError if the URL may not be called.
   */
  readonly callFor: (agentUrl: string, call: TokenCall) => Promise<SellerCall>;
}

/** The `fetch` function and the token for one call. */
export interface SellerCall {
  /**
   * Sends the token to the origin of `agentUrl` only. It rejects with SellerError if the transport refuses the
   * credentials, and with SellerBusyError if the seller asks to call later.
   */
  readonly fetch: SellerFetch;
  /** The bearer token for this call; undefined if there is none. */
  readonly token: string | undefined;
}

/**
 * Checks the options of `mcpCaller` or `a2aCaller`, and makes the parts that both share.
 * @param now the current time, Unix ms, from which a `Retry-After` that is a date is counted.
 * @throws ConfigError if an option is wrong.
 */
export function callerOf(
  name: string,
  options: CallerOptions,
  known: object,
  now: () => number = Date.now,
): Caller {
  if (typeof options === 'string') {
    throw new ConfigError(`${name}: was called as the caller. Pass what it returns: ${name}({ auth }).`);
  }
  onlyKnown(name, options, known);
  const tokenOf = tokenSource(options.auth);
  const allowLoopback = flag('allowLoopback', options.allowLoopback);
  const allowHosts = hostsOf('allowHosts', options.allowHosts);
  const dns = oneOf('dns', options.dns, ['direct', 'system']) ?? 'direct';
  const maxAnswerBytes = wholeNumber('maxAnswerBytes', options.maxAnswerBytes, MAX_ANSWER_BYTES);
  const reach = reachOf({ allowLoopback, allowHosts, dns });
  const send = sendBy(options.fetch, reach);
  return {
    timeoutMs: wholeNumber('timeoutMs', options.timeoutMs, 60_000, 1, MAX_TIMER_MS),
    maxAnswerBytes,
    maxValues: mostValues(maxAnswerBytes),
    refusedReason: send.refusedReason,
    callFor: async (agentUrl, call) => {
      requireUrl('agentUrl', agentUrl, true);
      const reason = send.refusedReason(agentUrl, agentUrl);
      if (reason !== undefined) throw new ConfigError(`agentUrl: ${JSON.stringify(agentUrl)} is ${reason}.`);
      const token = await tokenOf(agentUrl, call);
      const { origin } = new URL(agentUrl);
      const fetch: SellerFetch = async (url, { signal, body, method, headers, moved }) => {
        const hasToken = token !== undefined && new URL(url).origin === origin;
        const init = {
          method,
          headers: {
            ...headers,
            // Compression is refused, because a small compressed answer could fill the memory when it is decoded.
            'accept-encoding': 'identity',
            'user-agent': 'proto-webhooks',
            ...(hasToken && { authorization: `Bearer ${token}` }),
          },
          redirect: 'manual' as const,
          signal,
          maxBytes: maxAnswerBytes,
          seller: agentUrl,
          ...(body && { body }),
        };
        const response = await followed(url, moved, (to) => orAborted(send.by(to, init), signal));
        const refusal = refusalOf(response, { url, token: tokenUse(token, hasToken) }, now());
        const read = send.isRaw() ? decoded : (as: Response) => as;
        if (!refusal) return read(response);
        if (refusal instanceof SellerBusyError) {
          const body = await wholeBody(read(response), maxAnswerBytes, signal).catch(() => undefined);
          throw longerOf(refusal, body && errorJson(body, mostValues(maxAnswerBytes)));
        }
        await response.body?.cancel().catch(() => undefined);
        throw refusal;
      };
      return { fetch, token };
    },
  };
}

/** Sends a request by the option `fetch`, or by the package's own connections. */
interface Send extends Pick<Reach, 'refusedReason' | 'isRaw'> {
  readonly by: (url: string, init: AnyFetchInit) => Promise<Response>;
}

/**
 * Chooses the option `fetch`, which checks URLs and decodes answers by itself, or the package's own connections.
 * @throws ConfigError
 */
function sendBy(given: CallerOptions['fetch'], { refusedReason, transport, isRaw }: Reach): Send {
  if (given === undefined) {
    const by: Send['by'] = async (url, init) => {
      // The configured URL was checked as text. This check is for each URL that is really called, e.g. after a
      // redirect.
      const reason = refusedReason(url, url);
      if (reason !== undefined) throw new Error(`${url} is ${reason}.`);
      return transport(url, init);
    };
    return { refusedReason, isRaw, by };
  }
  if (typeof given !== 'function')
    throw new ConfigError('fetch: is not a function. Give (url, init) => Promise<Response>.');
  return {
    refusedReason: () => undefined,
    isRaw: () => false,
    by: (url, { seller: _seller, maxBytes: _maxBytes, ...init }) =>
      untilRejected(init.signal, async (signal) => given(url, { ...init, signal })),
  };
}

type TokenSource = (agentUrl: string, call: TokenCall) => Promise<string | undefined>;

function tokenSource(auth: SellerAuth | undefined): TokenSource {
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
  return async (agentUrl, call) => {
    const given: unknown = await token(agentUrl, call);
    if (given === undefined) return undefined;
    if (typeof given === 'string' && !isBlank(given)) return requireToken(given);
    const what = given === null ? 'null' : typeof given === 'string' ? 'an empty text' : `a ${typeof given}`;
    throw new ConfigError(
      `auth.token: the function returned ${what}. Return the token, or undefined if there is none.`,
    );
  };
}

const isBlank = (token: unknown): boolean => typeof token === 'string' && token.trim() === '';

/** Checks the token. Error messages never contain it. @throws ConfigError if it cannot be sent as a bearer token. */
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

/**
 * Tells if a request carried the token. `withheld`: a token exists, but the request goes to another origin than
 * `agentUrl`.
 */
type TokenUse = 'none' | 'sent' | 'withheld';

const tokenUse = (token: string | undefined, isSent: boolean): TokenUse =>
  token === undefined ? 'none' : isSent ? 'sent' : 'withheld';

/**
 * Returns the error for an HTTP status that refuses a call: 401, 403, 429, or 503 with `Retry-After`. Otherwise
 * undefined. A seller sends such a status before it reads the call.
 */
function refusalOf(
  { status, headers }: Response,
  { url, token }: { readonly url: string; readonly token: TokenUse },
  now: number,
): Error | undefined {
  const detail = `HTTP ${status}`;
  if (status === UNAUTHORIZED) {
    const why = token === 'withheld' ? ` from ${url}: the token goes only to the origin of agentUrl` : '';
    return new SellerError(token === 'sent' ? 'AUTH_INVALID' : 'AUTH_REQUIRED', `${detail}${why}`);
  }
  if (status === FORBIDDEN) return new SellerError('INSUFFICIENT_PERMISSIONS', detail);
  const retryAfter = headers.get('retry-after');
  const isBusy = status === TOO_MANY_REQUESTS || (status === UNAVAILABLE && retryAfter !== null);
  return isBusy ? new SellerBusyError(status, retryAfterMs(retryAfter, now)) : undefined;
}

/**
 * The largest number of a seller's operation names that are cached. `MAX_NAME` is the greatest length of a name: no
 * task type is longer.
 */
export const MOST_NAMES = 1000;
const MAX_NAME = 255;

/**
 * Returns the names in a list of objects that a seller sent. The names are cached for a long time, so their number and
 * length are limited.
 */
export function namesIn(list: unknown, member: 'name' | 'id', most: number = MOST_NAMES): readonly string[] {
  const names: string[] = [];
  for (const item of Array.isArray(list) ? (list as readonly unknown[]) : []) {
    if (names.length >= most) break;
    const name = isJsonObject(item) ? item[member] : undefined;
    if (typeof name === 'string' && name.length <= MAX_NAME) names.push(name);
  }
  return names;
}

/** Returns the error with the longest pause that the header or the body asks for (calls.md §2.4). */
function longerOf(busy: SellerBusyError, body: unknown): SellerBusyError {
  const errors = isJsonObject(body) ? errorsIn(body) : [];
  const said = Math.max(busy.retryAfterMs ?? 0, ...errors.map(({ retryAfterMs: ms = 0 }) => ms));
  return said === 0 ? busy : new SellerBusyError(busy.status, said);
}

const NOT_FOUND = 404;
const SERVER_ERROR = 500;

/**
 * Returns the error for an answer that a web server gave in place of an agent; undefined for any other answer. The
 * error leaves out the server's page, which would be useless in a message.
 */
export function noAgentOf(url: string, { ok, status, headers }: Response): Error | undefined {
  const type = headers.get('content-type') ?? '';
  const isPage = type.startsWith('text/html');
  if (ok || type.includes('json') || !(isPage || status === NOT_FOUND)) return undefined;
  const hint = status < SERVER_ERROR ? ' Is agentUrl right?' : '';
  return new Error(`${url} answers HTTP ${status}${isPage ? ' with a web page' : ''}.${hint}`);
}
