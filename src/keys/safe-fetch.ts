import { printableName } from '../codec/printable.ts';
import { limited, orAborted, untilRejected } from '../shared/time-limits.ts';
import type { KeyRequest, KeyFetch, KeyFetchInit } from './key-resolver.ts';
import { urlRefusedReason } from './net/addresses.ts';
import { isError } from '../shared/realms.ts';
import { redirectedWithin } from './adagents-redirects.ts';

/** What every fetch of a key document is held to (verification.md §5.10 to §5.16). */
export interface FetchRules {
  readonly fetch: KeyFetch;
  readonly allowLoopback: boolean;
  /** Ms from the first byte sent to the last received: an idle timeout would not stop a drip. */
  readonly deadlineMs: number;
}

/** What is fetched. */
interface FetchTarget {
  readonly url: string;
  readonly maxBytes: number;
  /** Agent URL of the seller whose document it is. */
  readonly seller?: string;
  /** Redirects are followed within the registrable domain (verification.md §5.10); none is where absent. */
  readonly redirects?: boolean | undefined;
}

/** `reason` is for the owner's log. */
export type Fetched =
  | {
      readonly ok: true;
      readonly bytes: Uint8Array;
      readonly headers: Headers;
      /** 304 to the conditions that were sent: there are no bytes, and the copy at hand is still the document. */
      readonly notModified?: boolean;
      /** Where redirects led. */
      readonly at?: string;
    }
  | {
      readonly ok: false;
      readonly reason: string;
      /** The server answered 404. */
      readonly isAbsent?: boolean;
    };

const REQUEST_HEADERS: Readonly<Record<string, string>> = {
  accept: 'application/json',
  // 64 KiB of gzip can hold 50 MB: nothing encoded is asked for, and nothing encoded is read.
  'accept-encoding': 'identity',
  // Some front doors answer 403 to a client without a name.
  'user-agent': 'proto-webhooks',
};

/**
 * Fetches one document under the rules, whatever fetches it. Never rejects.
 * @param controller ends the fetch when aborted; it is aborted in any case before this settles, so that a refused or
 * endless answer holds no connection.
 * @param extraHeaders besides those of every request, such as the conditions under which a 304 will do.
 */
export async function fetchDocument(
  rules: FetchRules,
  target: FetchTarget,
  controller: AbortController,
  extraHeaders: Readonly<Record<string, string>> = {},
): Promise<Fetched> {
  const { url, maxBytes, seller, redirects = false } = target;
  const refused = urlRefusedReason(url, rules.allowLoopback);
  if (refused !== undefined) return { ok: false, reason: refused };
  const limit = { ms: rules.deadlineMs, reason: `no whole answer within ${rules.deadlineMs} ms` };
  try {
    return await limited(limit, controller.signal, async (signal) => {
      const headers = { ...extraHeaders, ...REQUEST_HEADERS };
      const init: KeyFetchInit = {
        method: 'GET',
        headers,
        redirect: 'manual',
        signal,
        maxBytes,
        ...(seller !== undefined && { seller }),
      };
      const get = (at: string): Promise<Response> =>
        orAborted(
          untilRejected(signal, (own) => rules.fetch(at, { ...init, signal: own })),
          signal,
        );
      const first = await get(url);
      const end = redirects
        ? await redirectedWithin({ get, allowLoopback: rules.allowLoopback }, url, first)
        : { ok: true as const, at: url, response: first };
      if (!end.ok) return end;
      const conditional = 'if-none-match' in headers || 'if-modified-since' in headers;
      const fetched = await fetchedOf(end.response, conditional, maxBytes, signal);
      return fetched.ok && end.at !== url ? { ...fetched, at: end.at } : fetched;
    });
  } catch (error) {
    return { ok: false, reason: fetchFailure(error) };
  } finally {
    controller.abort();
  }
}

async function fetchedOf(
  response: Response,
  conditional: boolean,
  maxBytes: number,
  signal: AbortSignal,
): Promise<Fetched> {
  const { headers } = response;
  if (response.status === 304 && !response.redirected) {
    return conditional
      ? { ok: true, bytes: new Uint8Array(), headers, notModified: true }
      : { ok: false, reason: 'answered 304 to a request without conditions' };
  }
  const reason = invalidReason(response, maxBytes);
  if (reason !== undefined) return { ok: false, reason, ...(response.status === 404 && { isAbsent: true }) };
  const bytes = await readCapped(response, maxBytes, signal);
  if (bytes === undefined) return { ok: false, reason: `more than ${maxBytes} bytes` };
  return { ok: true, bytes, headers };
}

function invalidReason(response: Response, maxBytes: number): string | undefined {
  // A redirect that `fetch` followed by itself led to a URL that was not checked.
  if (response.redirected || response.type === 'opaqueredirect') return 'answered with a redirect';
  if (response.status >= 300 && response.status < 400) return `answered with a redirect (${response.status})`;
  if (response.status !== 200) return `answered ${response.status}`;
  const encoding = response.headers.get('content-encoding');
  if (encoding !== null && encoding.trim().toLowerCase() !== 'identity')
    return `content-encoding ${printableName(encoding)}`;
  return Number(response.headers.get('content-length')) > maxBytes
    ? `more than ${maxBytes} bytes`
    : undefined;
}

/** The whole body, or undefined as soon as it is known to be longer than `maxBytes`. */
export async function readCapped(
  response: Response,
  maxBytes: number,
  signal: AbortSignal,
): Promise<Uint8Array | undefined> {
  if (response.body === null) return new Uint8Array();
  const reader = (response.body as ReadableStream<Uint8Array>).getReader();
  const chunks: Uint8Array[] = [];
  let size = 0;
  try {
    for (;;) {
      const { done, value } = await orAborted(reader.read(), signal);
      if (done) return joined(chunks, size);
      size += value.byteLength;
      if (size > maxBytes) return undefined;
      chunks.push(value);
    }
  } finally {
    reader.cancel().catch(() => undefined);
  }
}

function joined(chunks: readonly Uint8Array[], size: number): Uint8Array {
  const whole = new Uint8Array(size);
  let at = 0;
  for (const chunk of chunks) {
    whole.set(chunk, at);
    at += chunk.byteLength;
  }
  return whole;
}

/** `fetch failed` says nothing; its cause does. */
export function fetchFailure(error: unknown): string {
  if (!isError(error)) return 'the fetch failed';
  const { cause } = error;
  return isError(cause) && cause.message !== '' ? `${error.message}: ${cause.message}` : error.message;
}

/** For whom documents are had, and how far that goes. */
export interface FetchBudget {
  /** Agent URL of the seller whose documents they are. */
  readonly seller: string;
  /** Asked right before a fetch is begun; false: this caller may begin no more. */
  mayFetch(): boolean;
  /** Ms for which this caller still waits. A fetch that it no longer waits for goes on to its own limits. */
  waitMs(): number;
}

/** For whatever no delivery waits for: bounded by the limits of each fetch alone. */
export function unlimitedBudget(seller: string): FetchBudget {
  return { seller, mayFetch: () => true, waitMs: () => Number.POSITIVE_INFINITY };
}

/** What one delivery may have fetched, and how long it waits for documents in all (verification.md §5.21). */
export interface DeliveryBudget {
  /** The budget for one sender's chain, or for one publisher's file: it counts once, however many fetches that takes. */
  readonly fetchBudget: (seller: string) => FetchBudget;
  /** Ms that are left. */
  readonly waitMs: () => number;
}

interface BudgetLimits {
  /** Unix ms. */
  readonly now: () => number;
  /** Senders and publishers whose documents one delivery may have fetched. */
  readonly perDelivery: number;
  /** Ms that one delivery waits. */
  readonly deliveryMs: number;
}

/** By delivery: begun when the first thing is asked for that may have to be waited for. */
export function createDeliveryBudgets(limits: BudgetLimits): (request: KeyRequest) => DeliveryBudget {
  const budgets = new WeakMap<KeyRequest, DeliveryBudget>();
  return (request) => {
    const known = budgets.get(request);
    if (known !== undefined) return known;
    const made = newDeliveryBudget(limits);
    budgets.set(request, made);
    return made;
  };
}

function newDeliveryBudget({ now, perDelivery, deliveryMs }: BudgetLimits): DeliveryBudget {
  const began = now();
  let left = perDelivery;
  // A clock that was set back gives no more than there was.
  const waitMs = (): number => Math.max(0, deliveryMs - Math.max(0, now() - began));
  const fetchBudget = (seller: string): FetchBudget => {
    let granted = false;
    return {
      seller,
      waitMs,
      mayFetch: () => {
        if (!granted && left > 0) {
          left -= 1;
          granted = true;
        }
        return granted;
      },
    };
  };
  return { fetchBudget, waitMs };
}
