// One fetch of a key document under all rules, and the budget of a delivery for such fetches (verification.md
// §5.10 to §5.16, §5.21).
// Called by the document cache, calls to sellers and the registry client; `net` makes the connection.

import { printableName } from '../codec/printable.ts';
import { limited, orAborted, untilRejected } from '../shared/time-limits.ts';
import type { KeyRequest, KeyFetch, KeyFetchInit } from './key-resolver.ts';
import { urlRefusedReason } from './net/addresses.ts';
import { isError } from '../shared/realms.ts';
import { redirectedWithin } from './adagents-redirects.ts';

/** Rules for every fetch of a key document (verification.md §5.10 to §5.16). */
export interface FetchRules {
  readonly fetch: KeyFetch;
  readonly allowLoopback: boolean;
  /** Time from the first byte sent to the last received, ms: an idle timeout would not stop a slow drip. */
  readonly deadlineMs: number;
}

/** The document to fetch. */
interface FetchTarget {
  readonly url: string;
  readonly maxBytes: number;
  /** Agent URL of the seller whose document it is. */
  readonly seller?: string;
  /**
   * True if redirects are followed within the registrable domain (verification.md §5.10); otherwise none is.
   */
  readonly redirects?: boolean | undefined;
}

/** Result of a fetch. `reason` is for the owner's log. */
export type Fetched =
  | {
      readonly ok: true;
      readonly bytes: Uint8Array;
      readonly headers: Headers;
      /**
       * True for a 304 to the conditions that were sent: there are no bytes, and the held copy is still the
       * document.
       */
      readonly notModified?: boolean;
      /** URL at the end of redirects. */
      readonly at?: string;
    }
  | {
      readonly ok: false;
      readonly reason: string;
      /** True if the server answered 404. */
      readonly isAbsent?: boolean;
    };

const REQUEST_HEADERS: Readonly<Record<string, string>> = {
  accept: 'application/json',
  // 64 KiB of gzip can hold 50 MB: nothing encoded is asked for, and nothing encoded is read.
  'accept-encoding': 'identity',
  // Some front ends answer 403 to a client without a name.
  'user-agent': 'proto-webhooks',
};

/**
 * Fetches one document under the rules, with any `fetch`. Never rejects.
 * @param controller ends the fetch when aborted. It is always aborted before this settles, so that a refused
 * or endless answer holds no connection.
 * @param extraHeaders added to those of every request, such as conditions for a 304.
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

/** The text of a failure: `fetch failed` says nothing; its cause does. */
export function fetchFailure(error: unknown): string {
  if (!isError(error)) return 'the fetch failed';
  const { cause } = error;
  return isError(cause) && cause.message !== '' ? `${error.message}: ${cause.message}` : error.message;
}

/** The seller whose documents are fetched, and how far that may go. */
export interface FetchBudget {
  /** Agent URL of the seller whose documents they are. */
  readonly seller: string;
  /** Called right before a fetch starts; false: this caller may start no more. */
  mayFetch(): boolean;
  /**
   * Time in ms for which this caller still waits. A fetch that it no longer waits for goes on to its own
   * limits.
   */
  waitMs(): number;
}

/** Budget for work that no delivery waits for: only the limits of each fetch bound it. */
export function unlimitedBudget(seller: string): FetchBudget {
  return { seller, mayFetch: () => true, waitMs: () => Number.POSITIVE_INFINITY };
}

/**
 * Bounds of one delivery: which fetches it may cause, and how long it waits for documents in all
 * (verification.md §5.21).
 */
export interface DeliveryBudget {
  /**
   * The budget for one sender's chain, or for one publisher's file: it counts once, however many fetches that
   * takes.
   */
  readonly fetchBudget: (seller: string) => FetchBudget;
  /** Remaining time in ms. */
  readonly waitMs: () => number;
}

interface BudgetLimits {
  /** Unix ms. */
  readonly now: () => number;
  /** Most senders and publishers whose documents one delivery may fetch. */
  readonly perDelivery: number;
  /** Time that one delivery waits. Ms. */
  readonly deliveryMs: number;
}

/** Budgets by delivery. Each begins with the first question that may have to wait. */
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
  // If the clock was set back, no more time is left than there was at first.
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
