// Reports if a seller's documents name another URL when they are fetched a second time. `chain.ts` uses it for
// `proto-webhooks keys check`.
import { MAX_URL_BYTES, printableName } from '../../codec/printable.ts';
import { createLocate } from '../../keys/agent-location.ts';
import type { CopyResult, DocumentKind } from '../../keys/document.ts';
import { keyOf } from '../../keys/document.ts';
import { adagentsUrls, followed } from '../../keys/publisher-pins.ts';
import type { SenderEntry } from '../../config/sender-entry.ts';
import type { Documents, DocumentsOptions } from './documents.ts';

type Load = Documents['load'];

/** A fetcher of documents that remembers its answers. */
interface Recorded extends Documents {
  /** Returns the remembered answer, without a request. */
  readonly again: Load;
}

/** Returns a fetcher that fetches with `documents` and remembers the answers. */
export function recorded(documents: Documents): Recorded {
  const known = new Map<string, CopyResult<unknown>>();
  return {
    links: documents.links,
    load: async (kind, url) => {
      const result = await documents.load(kind, url);
      known.set(keyOf(kind, url), result);
      return result;
    },
    again: async <T>(kind: DocumentKind<T>, url: string) =>
      (known.get(keyOf(kind, url)) as CopyResult<T> | undefined) ?? { ok: false, reason: 'not asked' },
  };
}

/** Returns the URLs that the documents of a seller name. Each key of the map tells which document names the URL. */
async function placesOf(
  load: Load,
  sender: SenderEntry,
  { allowLoopback, now }: Pick<DocumentsOptions, 'allowLoopback' | 'now'>,
): Promise<ReadonlyMap<string, string>> {
  const places = new Map<string, string>();
  const asked: string[] = [];
  const locate = createLocate({ allowLoopback, raiseAlarm: () => undefined, now });
  const location = await locate(sender, async (kind, url) => {
    const result = await load(kind, url);
    if (result.ok) asked.push(url);
    return result;
  });
  const [first, listing] = asked;
  if (first !== undefined && listing !== undefined) places.set(`brand.json at ${first} points to`, listing);
  if (location.ok) places.set(`the agent's jwks_uri is`, location.jwksUri);
  for (const url of adagentsUrls(sender, allowLoopback)) {
    await followed(url, load, (next) => places.set(`adagents.json at ${url} points to`, next));
  }
  return places;
}

/**
 * Fetches the documents a second time, and returns a note about the first URL that differs from the first time.
 * @param documents fetches them anew.
 */
export async function movingNotes(
  { again }: Recorded,
  documents: Documents,
  sender: SenderEntry,
  options: Pick<DocumentsOptions, 'allowLoopback' | 'now'>,
): Promise<readonly string[]> {
  const [first, second] = [
    await placesOf(again, sender, options),
    await placesOf((kind, url) => documents.load(kind, url), sender, options),
  ];
  const moved = [...second].filter(([what, place]) => first.has(what) && first.get(what) !== place);
  return moved.map(([what, place]) => {
    const [was, is] = [first.get(what) ?? '', place].map((url) => printableName(url, MAX_URL_BYTES));
    return `The location changes: ${what} ${was}, and at the second request ${is}. A receiver raises jwks_uri_moved each time, and has no copy if the new location is unreachable: ask the seller for one location.`;
  });
}
