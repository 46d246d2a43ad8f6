// Fetches documents of a seller under the receiver's own rules, and lists the results. `chain.ts` and `revocations.ts`
// use it.
import type { KeyFetch } from '../../keys/key-resolver.ts';
import { type CopyResult, type DocumentKind, failedFetch } from '../../keys/document.ts';
import { ageSeconds, lifetimeMs } from '../../keys/lifetimes.ts';
import { fetchDocument } from '../../keys/safe-fetch.ts';

/** One document of a seller's chain, with the result of fetching it. */
export interface Link {
  /** The name, e.g. `brand.json`, `JWKS`. */
  readonly document: string;
  readonly url: string;
  /** `absent`: not published, which is allowed. */
  readonly state: 'good' | 'absent' | 'faulty' | 'unreachable';
  /** The fault of the document; if `state` is `good`, a warning about it. */
  readonly fault?: string;
  readonly bytes?: number;
  /** The URL to which redirects led. */
  readonly redirectedTo?: string;
  /** The time for which HTTP caches have kept the document, if they state it. Ms. */
  readonly ageMs?: number;
  readonly lastModified?: string;
  /**
   * The time by which the server's clock is ahead of this machine's, if the answer has a `Date`. Ms, in whole seconds.
   */
  readonly clockAheadMs?: number;
  readonly cacheControl?: string;
  /** The time for which a receiver uses the document without fetching it again. Ms. */
  readonly freshMs?: number;
}

/** Fetches documents under the receiver's own rules, and lists the results. */
export interface Documents {
  readonly links: Link[];
  load<T>(kind: DocumentKind<T>, url: string): Promise<CopyResult<T>>;
}

export interface DocumentsOptions {
  readonly fetch: KeyFetch;
  readonly allowLoopback: boolean;
  /** Unix ms. */
  readonly now: () => number;
}

/** The time limit for one document, which is the receiver's own. Ms. */
const DEADLINE_MS = 10_000;

/** Returns the facts about caches and time in the headers of the answer. */
function headerFacts(headers: Headers, now: number): Partial<Link> {
  const date = Date.parse(headers.get('date') ?? '');
  // A cache repeats the `Date` of the answer that it stored, so the time since then (`Age`) is added.
  const clockAheadMs = (Math.round((date - now) / 1000) + ageSeconds(headers)) * 1000;
  const lastModified = headers.get('last-modified');
  const cacheControl = headers.get('cache-control');
  return {
    ...(headers.has('age') && { ageMs: ageSeconds(headers) * 1000 }),
    ...(!Number.isNaN(date) && { clockAheadMs }),
    ...(lastModified !== null && { lastModified }),
    ...(cacheControl !== null && { cacheControl }),
  };
}

export function createDocuments({ fetch: fetchUrl, allowLoopback, now }: DocumentsOptions): Documents {
  const links: Link[] = [];
  let order = 0;
  return {
    links,
    load: async (kind, url) => {
      let answered = false;
      const watched: KeyFetch = async (at, init) => {
        const response = await fetchUrl(at, init);
        answered = true;
        return response;
      };
      const began = now();
      const rules = { fetch: watched, allowLoopback, deadlineMs: DEADLINE_MS };
      const fetched = await fetchDocument(
        rules,
        { url, maxBytes: kind.maxBytes, redirects: kind.redirects },
        new AbortController(),
      );
      const link = { document: kind.name, url };
      if (!fetched.ok) {
        const absence = fetched.isAbsent === true ? { fetchedAt: began, fetchNumber: order } : undefined;
        const failed = await failedFetch(kind, url, fetched.reason, absence);
        const state = answered ? 'faulty' : 'unreachable';
        links.push({ ...link, state: 'elsewhere' in failed ? 'absent' : state, fault: fetched.reason });
        return failed;
      }
      const facts = {
        ...link,
        bytes: fetched.bytes.length,
        ...headerFacts(fetched.headers, now()),
        ...(fetched.at !== undefined && { redirectedTo: fetched.at }),
      };
      const parsed = kind.parse(fetched.bytes, url);
      if (!parsed.ok) {
        links.push({ ...facts, state: 'faulty', fault: parsed.reason });
        return parsed;
      }
      order += 1;
      // Some documents state the time of their next issue. Such a document is used until that time, as in a receiver
      // (`document-fetch`).
      const until = kind.dueAt?.(parsed.value, began) ?? began + lifetimeMs(fetched.headers, kind.life);
      const freshMs = until - began;
      const fault = 'warning' in parsed ? parsed.warning : undefined;
      links.push({ ...facts, state: 'good', freshMs, ...(fault !== undefined && { fault }) });
      return {
        ok: true,
        copy: {
          value: parsed.value,
          fetchedAt: began,
          fetchNumber: order,
          freshUntil: until,
          hardUntil: until,
        },
      };
    },
  };
}
