import { bodyOf, urlOf } from './arguments.ts';
import { badArgument } from './errors.ts';
import { type Answered, exchange } from './exchange.ts';
import type { Settings } from './options.ts';
import type { RegistryMethod, RequestOptions } from './types.ts';

/** What a call brings; `anonymous`: to a public endpoint, which gets no token. */
export type Sent = Omit<RequestOptions, 'schema'> & { readonly anonymous?: boolean };

const METHODS: Readonly<Record<RegistryMethod, true>> = {
  GET: true,
  POST: true,
  PUT: true,
  PATCH: true,
  DELETE: true,
};

/**
 * Sends a call, with the token where there is one.
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
