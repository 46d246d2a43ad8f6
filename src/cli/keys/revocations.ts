import type { Jwk } from '../../crypto/engine.ts';
import type { DocumentKind } from '../../keys/document.ts';
import { clampLife } from '../../keys/freshness.ts';
import { claimsToBeList, parsePublished, type PublishedList } from '../../keys/revocation-list.ts';
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
  /** `unknown`: configuration names a list, or something that sets up to be one is served. Deliveries get 503. */
  readonly required?: boolean;
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
  /** Publishers pin the keys, so that deliveries are verified without the operator's documents. */
  readonly pinned: boolean;
}

/** Where findings go. */
export interface Findings {
  readonly faults: string[];
  readonly notes: string[];
}

/** verification.md, section 5: stale after `next_update` + four times the interval. */
const GRACE_INTERVALS = 4;

/** As `revocationKind` has it. */
function listKind(watch: { required: boolean }): DocumentKind<PublishedList> {
  return {
    name: 'revocation list',
    maxBytes: 262_144,
    // An empty document stands for "there is none" (see `absentAsEmpty`), and so does a page that is no list.
    parse: (bytes, url) => {
      watch.required ||= claimsToBeList(bytes);
      return watch.required ? parsePublished(bytes, url) : { ok: true, value: {} };
    },
    dueAt: ({ list }, began) => began + clampLife((list?.nextUpdate ?? began) - began),
  };
}

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

/** Looks for the operator's list where a receiver would, and judges it. Adds to the findings. */
export async function checkRevocations(
  check: RevocationCheck,
  { faults, notes }: Findings,
): Promise<RevocationState> {
  const { options, protocol, documents, sender, listing, jwks } = check;
  const named = sender.revocation?.url;
  const url = named ?? (listing === undefined ? undefined : new URL(protocol.revocationsPath, listing).href);
  if (url === undefined) return NONE;
  const transport = named === undefined ? absentAsEmpty(options.transport) : options.transport;
  const own = createDocuments({ ...options, transport });
  const watch = { required: named !== undefined };
  const answer = await own.load(listKind(watch), url);
  const empty = answer.ok && answer.copy.value.list === undefined;
  documents.links.push(...own.links.map((link) => (empty ? asAbsent(link) : link)));
  if (!answer.ok) {
    // One that nobody names is required only from when it was first served.
    const optional = check.pinned && named === undefined;
    if (optional) notes.push(`revocation list at ${url}: ${answer.reason}. Required once it was served.`);
    else {
      const costs = watch.required ? ' Deliveries get 503.' : '';
      faults.push(`revocation list at ${url}: ${answer.reason}.${costs}`);
    }
    return { state: 'unknown', kids: [], required: watch.required };
  }
  const { list } = answer.copy.value;
  if (!list) return NONE;
  const flaw = await signatureFlaw(answer.copy.value, jwks);
  if (flaw !== undefined)
    faults.push(`revocation list at ${url}: ${flaw}. It is not taken. Deliveries get 503.`);
  const stale = options.now() > list.nextUpdate + GRACE_INTERVALS * list.interval;
  if (stale) faults.push(`revocation list at ${url}: stale since its next_update. Deliveries get 503.`);
  return {
    // A list that is not taken is served nevertheless: one is required from then on.
    ...(flaw === undefined
      ? { state: stale ? 'stale' : 'fresh', kids: [...list.kids] }
      : { state: 'unknown', kids: [], required: true }),
    signed: answer.copy.value.signature !== undefined,
    updated: new Date(list.updated).toISOString(),
    nextUpdate: new Date(list.nextUpdate).toISOString(),
  };
}
