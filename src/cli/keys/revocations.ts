import type { Jwk } from '../../crypto/engine.ts';
import type { DocumentKind } from '../../keys/document.ts';
import { clampLife } from '../../keys/freshness.ts';
import { parsePublished, type PublishedList } from '../../keys/revocation-list.ts';
import { listSignatureFlaw } from '../../keys/revocation-signature.ts';
import { absentAsEmpty } from '../../keys/revocation-source.ts';
import type { Protocol } from '../../protocol.ts';
import type { SenderEntry } from '../../senders.ts';
import type { ChainOptions } from './chain.ts';
import { createDocuments, type Documents, type Link } from './documents.ts';

/** What is known of revoked keys. */
export interface RevocationState {
  /** `none`: no list is published, and none is required. */
  readonly state: 'fresh' | 'stale' | 'none' | 'unknown';
  readonly kids: readonly string[];
  readonly signed?: boolean;
  /** ISO 8601. */
  readonly updated?: string;
  readonly nextUpdate?: string;
}

export interface RevocationCheck {
  readonly options: ChainOptions;
  readonly protocol: Protocol;
  readonly documents: Documents;
  readonly sender: SenderEntry;
  /** The brand.json beside which the list lies. */
  readonly listing: string | undefined;
  /** The operator's keys. */
  readonly jwks: readonly Jwk[];
}

/** verification.md, section 5: stale after `next_update` + four times the interval. */
const GRACE_INTERVALS = 4;

const LIST: DocumentKind<PublishedList> = {
  name: 'revocation list',
  maxBytes: 262_144,
  // An empty document stands for "there is none": see `absentAsEmpty`.
  parse: (bytes, url) => (bytes.length === 0 ? { ok: true, value: {} } : parsePublished(bytes, url)),
  dueAt: ({ list }, began) => began + clampLife((list?.nextUpdate ?? began) - began),
};

const NONE: RevocationState = { state: 'none', kids: [] };

function asAbsent(link: Link): Link {
  const { document, url } = link;
  return { document, url, state: 'absent' };
}

async function signatureFlaw(
  { signature }: PublishedList,
  jwks: readonly Jwk[],
): Promise<string | undefined> {
  if (!signature) return undefined;
  const jwk = jwks.find((key) => key['kid'] === signature.kid);
  return jwk ? listSignatureFlaw(signature, jwk) : "signed by a key that is not in the operator's JWKS";
}

/** Looks for the operator's list where a receiver would, and judges it. Adds to `faults`. */
export async function checkRevocations(check: RevocationCheck, faults: string[]): Promise<RevocationState> {
  const { options, protocol, documents, sender, listing, jwks } = check;
  const named = sender.revocation?.url;
  const url = named ?? (listing === undefined ? undefined : new URL(protocol.revocationsPath, listing).href);
  if (url === undefined) return NONE;
  const transport = named === undefined ? absentAsEmpty(options.transport) : options.transport;
  const own = createDocuments({ ...options, transport });
  const answer = await own.load(LIST, url);
  const empty = answer.ok && answer.copy.value.list === undefined;
  documents.links.push(...own.links.map((link) => (empty ? asAbsent(link) : link)));
  if (!answer.ok) {
    faults.push(`revocation list at ${url}: ${answer.reason}.`);
    return { state: 'unknown', kids: [] };
  }
  const { list } = answer.copy.value;
  if (!list) return NONE;
  const flaw = await signatureFlaw(answer.copy.value, jwks);
  if (flaw !== undefined) faults.push(`revocation list at ${url}: ${flaw}. It is not taken.`);
  const stale = options.now() > list.nextUpdate + GRACE_INTERVALS * list.interval;
  if (stale) faults.push(`revocation list at ${url}: stale since its next_update. Deliveries get 503.`);
  return {
    state: stale ? 'stale' : 'fresh',
    kids: flaw === undefined ? [...list.kids] : [],
    signed: answer.copy.value.signature !== undefined,
    updated: new Date(list.updated).toISOString(),
    nextUpdate: new Date(list.nextUpdate).toISOString(),
  };
}
