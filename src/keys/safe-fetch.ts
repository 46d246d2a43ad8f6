// Fetches one key document under all rules, and limits the fetches of a delivery (verification.md §5.10 to §5.16,
// §5.21).
// Called by the document cache. The registry client and the code that calls sellers use only `readCapped` and
// `fetchFailure`. The folder `net` makes the connections.

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
  /**
   * The time limit in ms from the first byte sent to the last received. An idle time-out would not stop a server that
   * sends slowly.
   */
  readonly deadlineMs: number;
}

/** The document to fetch. */
interface FetchTarget {
  readonly url: string;
  readonly maxBytes: number;
  /** The agent URL of the seller to whose documents this one belongs. */
  readonly seller?: string;
  /**
   * True if redirects are followed within the registrable domain (verification.md §5.10). Otherwise a redirect is
   * refused.
   */
  readonly redirects?: boolean | undefined;
}

/** The result of fetching a document. `reason` is for the owner's log. */
export type Fetched =
  | {
      readonly ok: true;
      readonly bytes: Uint8Array;
      readonly headers: Headers;
      /**
       * True if the server answered 304 to a conditional request: there are no bytes, and the cached copy is still
       * current.
       */
      readonly notModified?: boolean;
      /** The URL of the document, if redirects led to another one. */
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
  // 64 KiB of gzip can contain 50 MB, so no compression is requested, and no compressed answer is read.
  'accept-encoding': 'identity',
  // Some front ends answer 403 to a request without a user agent.
  'user-agent': 'proto-webhooks',
};

/**
 * Fetches one document under the rules, with the `fetch` in `rules`. Never rejects.
 * @param controller aborting it ends the fetch. It is always aborted before this function settles, so that a refused
 * or endless answer keeps no connection open.
 * @param extraHeaders added to the headers of every request, e.g. conditions for a 304.
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
  // Either `fetch` followed a redirect by itself, to a URL that was not checked, or it hides one (`opaqueredirect`).
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

/** Returns the whole body, or undefined as soon as the body is known to be longer than `maxBytes`. */
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

/** Returns the message of a failed fetch with that of its cause, because `fetch failed` alone says nothing. */
export function fetchFailure(error: unknown): string {
  if (!isError(error)) return 'the fetch failed';
  const { cause } = error;
  return isError(cause) && cause.message !== '' ? `${error.message}: ${cause.message}` : error.message;
}

/** The limits of a caller for fetches of one seller's documents. */
export interface FetchBudget {
  /** The agent URL of the seller whose documents are fetched. */
  readonly seller: string;
  /** Called right before a fetch starts. If it returns false, this caller may start no more fetches. */
  mayFetch(): boolean;
  /**
   * Returns the time in ms for which this caller still waits. After that, a running fetch continues within its own
   * limits.
   */
  waitMs(): number;
}

/** Returns limits for work that no delivery waits for: only each fetch's own limits apply. */
export function unlimitedBudget(seller: string): FetchBudget {
  return { seller, mayFetch: () => true, waitMs: () => Number.POSITIVE_INFINITY };
}

/**
 * Limits for one delivery: the fetches that it may cause, and the total time that it waits for documents
 * (verification.md §5.21).
 */
export interface DeliveryBudget {
  /**
   * Returns the limits for one sender's documents, or for one publisher's file. All fetches within these limits count
   * as one against the delivery's limit of senders and publishers.
   */
  readonly fetchBudget: (seller: string) => FetchBudget;
  /** Returns the time in ms for which the delivery may still wait. */
  readonly waitMs: () => number;
}

interface BudgetLimits {
  /** Returns the current time, Unix ms. */
  readonly now: () => number;
  /** The maximum number of senders and publishers whose documents one delivery may fetch. */
  readonly perDelivery: number;
  /** The time in ms for which one delivery may wait for documents. */
  readonly deliveryMs: number;
}

/**
 * Returns a function that gives each delivery its budget. The waiting time of a delivery begins with the first call
 * for it.
 */
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
  // The clock may have been set back. Even then the remaining time is not longer than `deliveryMs`.
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
