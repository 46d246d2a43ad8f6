import type { Protocol } from '../protocol.ts';
import type { SenderEntry } from '../senders.ts';
import { brandJsonUrl } from './agent-location.ts';
import type { BrandJson } from './brand-json.ts';
import type { Transport, TransportInit } from './contract.ts';
import type { DocumentKind } from './document.ts';
import type { DocumentCache } from './document-cache.ts';
import { isPinned } from './pins.ts';

/** Where a sender's list lies. `required`: configuration says so; else it counts from when it is first served. */
export interface ListSource {
  readonly url: string;
  readonly required: boolean;
}

export interface ListSourceOptions {
  readonly protocol: Protocol;
  readonly allowLoopback: boolean;
  /** Holds the brand.json files. */
  readonly documents: Pick<DocumentCache, 'held'>;
  readonly brandJson: DocumentKind<BrandJson>;
}

/**
 * The URL that configuration names, else the well-known path at the origin of the brand.json in which the operator lists
 * its agents: the one that is pointed to, where the first only points. A sender with static pins has no brand.json, and
 * nothing is looked for.
 */
export function createListSource(
  options: ListSourceOptions,
): (sender: SenderEntry) => ListSource | undefined {
  const { protocol, allowLoopback, documents, brandJson } = options;
  // URLs are parsed once a sender, not once a delivery.
  const known = new WeakMap<SenderEntry, { start: string; listing: string; source: ListSource }>();
  return (sender) => {
    const { url, discover } = sender.revocation ?? {};
    if (url !== undefined) return { url, required: true };
    if (discover === false || isPinned(sender)) return undefined;
    const last = known.get(sender);
    const start = last?.start ?? brandJsonUrl(sender, allowLoopback);
    if (start === undefined) return undefined;
    const brand = documents.held(brandJson, start);
    // No longer held: the last word counts, or an outage would lead away from the list that revokes.
    const listing = brand === undefined ? (last?.listing ?? start) : (brand.value.next ?? start);
    if (last?.listing === listing) return last.source;
    const source = { url: new URL(protocol.revocationsPath, listing).href, required: false };
    known.set(sender, { start, listing, source });
    return source;
  };
}

/** Statuses from 300 to 499 that do not say "there is no such thing": "not changed", and "not now". */
const NO_ABSENCE: ReadonlySet<number> = new Set([304, 408, 425, 429]);

function saysThereIsNone({ status, type, redirected }: Response): boolean {
  // As a transport shows a redirect that it did not follow, or that it did.
  if (type === 'opaqueredirect' || redirected) return true;
  return status >= 300 && status < 500 && !NO_ABSENCE.has(status);
}

/** A transport for lists: where a server answers that there is none, an empty document, which is no failure. */
export function absentAsEmpty(transport: Transport): Transport {
  return async (url: string, init: TransportInit): Promise<Response> => {
    const response = await transport(url, init);
    if (!saysThereIsNone(response)) return response;
    await response.body?.cancel();
    return new Response(null);
  };
}
