// Checks the client's options and a call's arguments, and builds the request (contract.md §2).
// The client's methods in `index.ts` call it; `exchange.ts` sends the request.

import { MAX_ANSWER_BYTES } from '../calls/bounds.ts';
import { isJsonObject } from '../codec/members.ts';
import { flag, MAX_TIMER_MS, onlyKnown, text, wholeNumber } from '../config/validate.ts';
import { textOf, ConfigError } from '../shared/errors.ts';
import { urlRefusedReason } from '../keys/net/addresses.ts';
import { defaultFetch } from '../keys/net/document-fetch.ts';
import { type Protocols, protocolsFor } from '../shared/wire-names.ts';
import { sleep } from '../shared/time-limits.ts';
import { type Answered, exchange, type RegistryConnection, tokenOf } from './exchange.ts';
import { badArgument } from './registry-errors.ts';
import type {
  CallOptions,
  DiagnosticsQuery,
  RegistryMethod,
  RequestOptions,
  RegistryOptions,
  TokenSource,
} from './types.ts';
import { isAbortSignal } from '../shared/realms.ts';

/** The checked options of `createRegistry`, with defaults. */
export interface Settings extends RegistryConnection {
  readonly baseUrl: URL;
  readonly protocols: Protocols;
  readonly rowCapParameter: string;
  readonly token: TokenSource | undefined;
}

const KNOWN: Readonly<Record<keyof RegistryOptions, true>> = {
  baseUrl: true,
  token: true,
  protocol: true,
  rowCapParameter: true,
  deadlineMs: true,
  maxAnswerBytes: true,
  attempts: true,
  maxWaitMs: true,
  allowLoopback: true,
  fetch: true,
  now: true,
  random: true,
  sleep: true,
};

/** The largest `maxWaitMs` that is allowed: one day. Ms. */
const MAX_WAIT_MS = 86_400_000;

/**
 * Checks the options of `createRegistry`, and fills in the defaults.
 * @throws ConfigError if an option is missing or wrong; the message says what to change.
 */
export function settingsOf(options: RegistryOptions<string>): Settings {
  onlyKnown('createRegistry', options, KNOWN);
  const allowLoopback = flag('allowLoopback', options.allowLoopback);
  const baseUrl = baseUrlOf(options.baseUrl, allowLoopback);
  const functions = {
    fetch: options.fetch,
    now: options.now,
    random: options.random,
    sleep: options.sleep,
  };
  for (const [name, value] of Object.entries(functions)) {
    if (value !== undefined && typeof value !== 'function')
      throw new ConfigError(`${name}: is not a function.`);
  }
  return {
    baseUrl,
    protocols: protocolsFor(options.protocol),
    rowCapParameter: text('rowCapParameter', options.rowCapParameter ?? 'limit'),
    token: tokenOf(options.token, baseUrl),
    deadlineMs: wholeNumber('deadlineMs', options.deadlineMs, 30_000, 1, MAX_TIMER_MS),
    maxAnswerBytes: wholeNumber('maxAnswerBytes', options.maxAnswerBytes, MAX_ANSWER_BYTES),
    attempts: wholeNumber('attempts', options.attempts, 3),
    maxWaitMs: wholeNumber('maxWaitMs', options.maxWaitMs, 30_000, 0, MAX_WAIT_MS),
    fetch: options.fetch ?? defaultFetch(allowLoopback, 'system'),
    now: options.now ?? Date.now,
    random: options.random ?? Math.random,
    sleep: options.sleep ?? sleep,
  };
}

function baseUrlOf(value: unknown, allowLoopback: boolean): URL {
  const url = text('baseUrl', value);
  const refused = urlRefusedReason(url, allowLoopback);
  if (refused !== undefined) {
    throw new ConfigError(`baseUrl: ${refused}. Give the registry's URL, e.g. 'https://registry.example'.`);
  }
  const parsed = new URL(url);
  if (parsed.search !== '' || parsed.hash !== '') {
    throw new ConfigError('baseUrl: has a query or a fragment. Give the URL to which paths are appended.');
  }
  return parsed;
}

/**
 * Checks the options of a call and returns them. An unknown name is refused, because a misspelt option would have no
 * effect.
 * @throws RegistryError for an unknown name, or a `signal` that is no AbortSignal.
 */
export function optionsOf<T extends CallOptions>(
  where: string,
  options: T | undefined,
  known: Readonly<Record<keyof T, true>>,
): Partial<T> {
  if (options === undefined) return {};
  if (!isJsonObject(options)) throw badArgument(`${where}: the options are not an object`);
  const other = Object.keys(options).find((name) => !Object.hasOwn(known, name));
  if (other !== undefined) {
    throw badArgument(`${where}: ${other} is not known; known: ${Object.keys(known).join(', ')}`);
  }
  if (options.signal !== undefined && !isAbortSignal(options.signal)) {
    throw badArgument(`${where}: signal is not an AbortSignal`);
  }
  return options;
}

/**
 * Returns a text as one segment of a URL path, percent-encoded.
 * @throws RegistryError if the value cannot be a segment.
 */
export function segment(name: string, value: unknown): string {
  if (typeof value !== 'string' || value === '' || value === '.' || value === '..' || !value.isWellFormed()) {
    throw badArgument(`${name}: is not a string that a path segment can hold`);
  }
  return encodeURIComponent(value);
}

/**
 * Returns the agent URL as one segment of a URL path, exactly as it is registered (not normalized). An agent URL that
 * is already percent-encoded is refused, because it is not an absolute URL.
 * @throws RegistryError
 */
export function agentSegment(agentUrl: unknown): string {
  if (typeof agentUrl === 'string' && URL.canParse(agentUrl) && /^https?:\/\//i.test(agentUrl)) {
    return segment('agentUrl', agentUrl);
  }
  throw badArgument("agentUrl: is not an absolute URL, e.g. 'https://seller.example/mcp'");
}

/**
 * Returns the path segment for a protocol release, e.g. `3.0/`. Empty without a version, because the legacy endpoint
 * has no such segment.
 * @throws RegistryError
 */
export function versionPath(version: unknown): string {
  if (version === undefined) return '';
  if (typeof version === 'string' && /^(?:0|[1-9]\d*)\.(?:0|[1-9]\d*)$/.test(version)) return `${version}/`;
  throw badArgument("version: is not MAJOR.MINOR, e.g. '3.0'");
}

/** `DEFAULT_ROWS` and `MAX_ROWS`: the default and the largest number of rows in an answer (contract.md §2.4). */
const DEFAULT_ROWS = 500;
const MAX_ROWS = 1000;

/** Returns the query parameters for one compliance run and the number of its rows. @throws RegistryError */
export function runQuery(
  { runId, maxRows = DEFAULT_ROWS }: DiagnosticsQuery,
  rowCapParameter: string,
): Readonly<Record<string, string | number | undefined>> {
  if (runId !== undefined && (typeof runId !== 'string' || runId === '')) {
    throw badArgument('runId: is not a non-empty string');
  }
  if (!Number.isInteger(maxRows) || maxRows < 1 || maxRows > MAX_ROWS) {
    throw badArgument(`maxRows: is not a whole number from 1 to ${MAX_ROWS}`);
  }
  return { run_id: runId, [rowCapParameter]: maxRows };
}

/**
 * Returns the URL of `path` below the base URL. A path that leads outside the base URL is refused, because the token
 * may only be sent below it.
 * @throws RegistryError
 */
function urlOf(baseUrl: URL, path: unknown, query: RequestOptions['query'] = {}): string {
  const base = baseUrl.pathname.replace(/\/$/, '');
  if (typeof path !== 'string' || !path.startsWith('/') || path.includes('#')) {
    throw badArgument('path: has to begin with / and to have no fragment');
  }
  const written = `${baseUrl.origin}${base}${path}`;
  const url = URL.canParse(written) ? new URL(written) : undefined;
  // The URL parser changes dot segments, a backslash or a second slash. Such a path is refused, as it would lead
  // elsewhere.
  if (url?.origin !== baseUrl.origin || `${url.pathname}${url.search}` !== `${base}${path}`) {
    throw badArgument('path: has dot segments, or characters that have to be percent-encoded');
  }
  addQuery(url, query);
  return url.href;
}

function addQuery(url: URL, query: NonNullable<RequestOptions['query']>): void {
  if (!isJsonObject(query)) throw badArgument('query: is not an object');
  for (const [name, values] of Object.entries(query)) {
    for (const value of [values].flat()) {
      if (value === undefined) continue;
      if (!['string', 'number', 'boolean'].includes(typeof value)) {
        throw badArgument(`query: ${name} is not a string, a number, true or false`);
      }
      url.searchParams.append(name, String(value));
    }
  }
}

/** Returns the body as JSON in UTF-8. @throws RegistryError if it is no JSON, or if the method is GET. */
function bodyOf(method: RegistryMethod, body: unknown): Uint8Array<ArrayBuffer> | undefined {
  if (body === undefined) return undefined;
  if (method === 'GET') throw badArgument('body: a GET has none');
  let json: string | undefined;
  try {
    json = JSON.stringify(body);
  } catch (error) {
    throw badArgument(`body: cannot be written as JSON (${textOf(error)})`);
  }
  if (json === undefined) throw badArgument('body: cannot be written as JSON');
  return new TextEncoder().encode(json);
}

/** The query, body and signal of a call. `anonymous` marks a public endpoint, to which no token is sent. */
type Sent = Omit<RequestOptions, 'schema'> & { readonly anonymous?: boolean };

const METHODS: Readonly<Record<RegistryMethod, true>> = {
  GET: true,
  POST: true,
  PUT: true,
  PATCH: true,
  DELETE: true,
};

/**
 * Checks the arguments of a call, and sends it. The token is sent if there is one, and if the call is not `anonymous`.
 * @throws RegistryError
 */
export async function send(
  settings: Settings,
  method: RegistryMethod,
  path: string,
  { query, body, signal, anonymous = false }: Sent,
): Promise<Answered> {
  if (typeof method !== 'string' || !Object.hasOwn(METHODS, method)) {
    throw badArgument(`method: is not one of ${Object.keys(METHODS).join(', ')}`);
  }
  return await exchange(settings, {
    method,
    url: urlOf(settings.baseUrl, path, query),
    body: bodyOf(method, body),
    token: anonymous ? undefined : settings.token,
    signal: signal ?? new AbortController().signal,
  });
}
