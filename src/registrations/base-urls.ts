// Reads the option `baseUrl`: the base URLs below which the URLs for sellers are made, and which the receiver serves.
// `createRegistrations` and its routes use it.
import { MOST_BASES } from '../config/public-url.ts';
import { ConfigError } from '../shared/errors.ts';
import type { RegistrationsOptions } from './registrations-options.ts';

/** Base URLs without a `/` at the end. New URLs for sellers are made below the first. */
export type BaseUrls = readonly [string, ...string[]];

/** Checks `baseUrl`. @throws ConfigError for a wrong URL, an empty list, more than eight URLs, or a duplicate. */
export function baseUrlsOf({ baseUrl, allowLoopback = false }: RegistrationsOptions): BaseUrls {
  const given: readonly unknown[] = Array.isArray(baseUrl) ? baseUrl : [baseUrl];
  if (given.length > MOST_BASES) {
    throw new ConfigError(`baseUrl: has ${given.length} URLs, at most ${MOST_BASES}.`);
  }
  const [first, ...others] = given.map((url) => baseUrlOf(url, allowLoopback));
  if (first === undefined) throw new ConfigError(`baseUrl: is an empty list. ${FIX}`);
  const again = [first, ...others].find((url, i, urls) => urls.indexOf(url) < i);
  if (again !== undefined) throw new ConfigError(`baseUrl: has ${again} twice. Keep one of them.`);
  return [first, ...others];
}

/** Returns the option `publicUrl` of a receiver that serves all base URLs. */
export function publicUrlsOf([first, ...others]: BaseUrls): string | readonly string[] {
  return others.length === 0 ? `${first}/*` : [first, ...others].map((url) => `${url}/*`);
}

const FIX = "Give e.g. baseUrl: 'https://buyer.example/webhooks'.";

function baseUrlOf(baseUrl: unknown, allowLoopback: boolean): string {
  const url = typeof baseUrl === 'string' && URL.canParse(baseUrl) ? new URL(baseUrl) : undefined;
  const isBare = url && !/[?#*]/.test(String(baseUrl)) && url.username === '' && url.password === '';
  if (!isBare) {
    throw new ConfigError(`baseUrl: ${JSON.stringify(baseUrl)} is not a URL without a query. ${FIX}`);
  }
  if (url.protocol !== 'https:' && !(allowLoopback && url.protocol === 'http:')) {
    throw new ConfigError(
      `baseUrl: ${JSON.stringify(baseUrl)} is not https. ${FIX} For development on http set allowLoopback: true.`,
    );
  }
  return url.href.replace(/\/+$/, '');
}

/**
 * Returns path and query of `url`. @throws ConfigError if `url` is below no base URL, so that no delivery would reach
 * the receiver.
 */
export function below(baseUrls: BaseUrls, url: string): Pick<URL, 'pathname' | 'search'> {
  const parsed = URL.canParse(url) ? new URL(url) : undefined;
  const isBelow = baseUrls.some((base) => parsed?.href.startsWith(`${base}/`));
  if (parsed && isBelow) return { pathname: parsed.pathname, search: parsed.search };
  throw new ConfigError(
    `adopt: ${JSON.stringify(url)} is not below ${baseUrls.join(' or ')}, so nothing sent there reaches this receiver. Give another baseUrl, or have the seller send to a new URL.`,
  );
}
