import type { CacheOptions, CacheState, Entry, Running } from './cache-state.ts';
import type { Answer, Copy, DocumentKind } from './document.ts';
import { backOffMs, lifeOf, within } from './freshness.ts';
import { fetchDocument } from './safe-fetch.ts';

/**
 * A fetch that outlived three deadlines is gone: its request's runtime ended it without a word. Were it still counted
 * as in flight, its URL would never be fetched again.
 */
const GONE_AFTER_DEADLINES = 3;

/** The fetch of this URL that is in flight, if one is. */
export function liveFetch<T>(options: CacheOptions, entry: Entry<T>): Running<T> | undefined {
  const { running } = entry;
  if (running === undefined) return undefined;
  return within(options.now(), running.began, options.deadlineMs * GONE_AFTER_DEADLINES)
    ? running
    : undefined;
}

/** Begins a fetch; the caller has seen that none is in flight and that one is due. */
export function begin<T>(state: CacheState, kind: DocumentKind<T>, url: string, entry: Entry<T>): Running<T> {
  state.order += 1;
  const began = state.options.now();
  const { order } = state;
  const controller = new AbortController();
  const answer = run(state, kind, url, entry, { began, order, controller });
  const running: Running<T> = { began, order, controller, answer };
  entry.running = running;
  return running;
}

async function run<T>(
  state: CacheState,
  kind: DocumentKind<T>,
  url: string,
  entry: Entry<T>,
  started: Omit<Running<T>, 'answer'>,
): Promise<Answer<T>> {
  const { options } = state;
  const fetched = await fetchDocument(options, url, kind.maxBytes, started.controller);
  if (entry.running?.order === started.order) entry.running = undefined;
  if (!fetched.ok)
    return failed(state, kind, url, entry, { code: 'key_fetch_failing', reason: fetched.reason });
  const parsed = kind.parse(fetched.bytes, url);
  if (!parsed.ok)
    return failed(state, kind, url, entry, { code: 'key_document_invalid', reason: parsed.reason });
  const { value } = parsed;
  const { began, order } = started;
  const copy: Copy<T> = {
    value,
    began,
    order,
    freshUntil: kind.dueAt?.(value, began) ?? began + lifeOf(fetched.headers),
    hardUntil: began + (kind.hardLimitMs ?? options.limits.hardLimitMs),
  };
  if (entry.copy === undefined || entry.copy.order < order) entry.copy = copy;
  entry.failure = undefined;
  const fields = { url, document: kind.name };
  if (parsed.warning === undefined) options.logger.debug(fields, 'key document fetched');
  else options.logger.warn(fields, parsed.warning);
  return { ok: true, copy };
}

function failed<T>(
  state: CacheState,
  kind: DocumentKind<T>,
  url: string,
  entry: Entry<T>,
  flaw: { readonly code: 'key_fetch_failing' | 'key_document_invalid'; readonly reason: string },
): Answer<T> {
  const { code, reason } = flaw;
  const { now, raiseAlarm } = state.options;
  // Our own stop ended it: no fault of the server's.
  if (state.stopped) return { ok: false, reason: 'stopped' };
  const count = (entry.failure?.count ?? 0) + 1;
  const at = now();
  const since = entry.failure?.since ?? at;
  entry.failure = { reason, at, backOffMs: backOffMs(count), count, since };
  raiseAlarm({
    code,
    message: `${kind.name} at ${url}: ${reason}. ${
      entry.copy === undefined ? 'There is no earlier copy' : 'The earlier copy serves until its hard limit'
    }.`,
    url,
    document: kind.name,
    failures: count,
    failingSince: since,
  });
  return { ok: false, reason };
}
