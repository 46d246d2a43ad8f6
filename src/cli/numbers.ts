import { InvalidArgumentError } from 'commander';
import { UsageError } from './usage-error.ts';

/** For commander: a whole number from `min` on. */
export function whole(min: number): (text: string) => number {
  return (text) => {
    const value = /^\d{1,15}$/.test(text) ? Number(text) : Number.NaN;
    if (!(value >= min)) throw new InvalidArgumentError(`Expected a whole number from ${min} on.`);
    return value;
  };
}

/** Seconds since 1970 below this are seconds; from here on they are ms (it is the year 5138 in seconds). */
export const MS_FROM = 1e11;

/** Whether `Date` can have these Unix ms (ECMA-262, 21.4.1.1). */
export function isInstant(ms: number): boolean {
  return Math.abs(ms) <= 8.64e15;
}

/**
 * An instant as people write it.
 * @returns Unix ms.
 * @throws UsageError
 */
export function instant(option: string, text: string): number {
  const number = /^\d{1,16}$/.test(text) ? Number(text) : undefined;
  const ms = number === undefined ? Date.parse(text) : number < MS_FROM ? number * 1000 : number;
  if (isInstant(ms)) return ms;
  throw new UsageError(
    `${option}: ${JSON.stringify(text)} is no instant. Expected Unix seconds or ISO 8601, e.g. 2026-01-31T12:00:00Z.`,
  );
}

/** @throws UsageError unless `url` is an absolute http or https URL. */
export function requireHttpUrl(what: string, url: string): string {
  if (URL.canParse(url) && /^https?:$/.test(new URL(url).protocol)) return url;
  throw new UsageError(
    `${what}: ${JSON.stringify(url)} is no URL. Expected an absolute one, e.g. https://buyer.example/webhooks/proto.`,
  );
}
