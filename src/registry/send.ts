import { textOf } from '../errors.ts';
import { RegistryError } from './errors.ts';
import { type Call, exchange } from './exchange.ts';
import { askToken, type Settings } from './options.ts';
import type { RegistryMethod, RequestOptions } from './types.ts';

/** Nothing was sent: an argument of the caller's is wrong. */
export const badArgument = (message: string, options?: ErrorOptions): RegistryError =>
  new RegistryError('bad_request', message, options);

/** What a call brings; `anonymous`: to a public endpoint, which gets no token. */
export type Sent = RequestOptions & { readonly anonymous?: boolean };

const METHODS: Readonly<Record<RegistryMethod, true>> = {
  GET: true,
  POST: true,
  PUT: true,
  PATCH: true,
  DELETE: true,
};

/**
 * Sends a call with the token, where there is one; a function that gives tokens is asked once more for another one
 * where its first was answered 401, which means that nothing was done.
 * @throws RegistryError
 */
export async function send(
  settings: Settings,
  method: RegistryMethod,
  path: string,
  sent: Sent,
): Promise<unknown> {
  if (!Object.hasOwn(METHODS, method)) {
    throw badArgument(`method: is not one of ${Object.keys(METHODS).join(', ')}`);
  }
  const url = urlOf(settings.baseUrl, path, sent.query);
  const call: Call = { method, url, body: bodyOf(method, sent.body), signal: sent.signal };
  const { token: source } = settings;
  if (source === undefined || sent.anonymous === true) return await exchange(settings, call, undefined);
  const token = await askToken(source);
  try {
    return await exchange(settings, call, token);
  } catch (error) {
    const rejected = error instanceof RegistryError && error.status === 401;
    const other = rejected ? await askToken(source, token) : token;
    if (other === token) throw error;
    return await exchange(settings, call, other);
  }
}

/** `path` behind the base URL, which it cannot leave: the token goes where the owner said, and nowhere else. */
function urlOf(baseUrl: URL, path: unknown, query: RequestOptions['query']): string {
  const base = baseUrl.pathname.replace(/\/$/, '');
  if (typeof path !== 'string' || !path.startsWith('/') || path.includes('#')) {
    throw badArgument('path: has to begin with / and to have no fragment');
  }
  const written = `${baseUrl.origin}${base}${path}`;
  const url = URL.canParse(written) ? new URL(written) : undefined;
  // Dot segments, a backslash or a second slash that the parser takes for something else.
  if (url?.origin !== baseUrl.origin || `${url.pathname}${url.search}` !== `${base}${path}`) {
    throw badArgument('path: has dot segments, or characters that have to be percent-encoded');
  }
  for (const [name, values] of Object.entries(query ?? {})) {
    for (const value of [values].flat())
      if (value !== undefined) url.searchParams.append(name, String(value));
  }
  return url.href;
}

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
