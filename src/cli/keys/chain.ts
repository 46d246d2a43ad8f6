// Follows the chain of documents from an agent URL to its keys, with the receiver's own readers and rules, and notes
// each fault. `proto-webhooks keys check` and `explain` call it.
import { unfitReason } from '../../auth/rfc9421/key-policy.ts';
import { revokedSince } from '../../auth/rfc9421/revoked-at.ts';
import { senderSource } from '../../config/sender-source.ts';
import type { CryptoEngine, Jwk } from '../../crypto/engine.ts';
import { createEngine } from '../../crypto/index.ts';
import { createLocate } from '../../keys/agent-location.ts';
import type { KeyFetch } from '../../keys/key-resolver.ts';
import { JWKS, type KeySet } from '../../keys/jwks.ts';
import { EDITION_NAMES, editionFor, type EditionName } from '../../shared/editions.ts';
import { type Protocols, protocolsFor } from '../../shared/wire-names.ts';
import type { Sender, SenderEntry } from '../../config/sender-entry.ts';
import { createDocuments, type Documents, type Link } from './documents.ts';
import { countedKeys, publisherSets } from './pinned.ts';
import { movingNotes, recorded } from './moving.ts';
import { checkRevocations, type RevocationState } from './revocations.ts';

/** A key with which a receiver verifies the seller's deliveries, and the reasons against accepting it. */
export interface ChainKey {
  readonly kid: string;
  readonly source: 'JWKS' | 'adagents.json';
  /**
   * The protocol editions (versions) whose receivers accept the key in check 8. If the list is empty, no receiver
   * accepts the key, and `invalidReason` says why.
   */
  readonly editions: readonly EditionName[];
  /**
   * True if a receiver accepts the key with the edition (protocol version) in the flags, or without one if the flags
   * set none.
   */
  readonly accepted: boolean;
  readonly invalidReason?: string;
  readonly revoked: boolean;
  /** `revoked_at`, as published: signatures from that time on are refused. */
  readonly revokedAt?: string;
}

/** The whole chain from an agent URL to its keys. */
export interface Chain {
  readonly agentUrl: string;
  readonly links: readonly Link[];
  readonly keys: readonly ChainKey[];
  readonly revocation: RevocationState;
  /** The faults in words, each with its effect on deliveries; empty if there are none. */
  readonly faults: readonly string[];
  /** Faults that do not prevent deliveries from being accepted. */
  readonly notes: readonly string[];
  /** The protocol version whose rules decide if a receiver accepts a key; undefined if none is set. */
  readonly edition: EditionName | undefined;
  /** True if keys of the agent were found: its JWKS was fetched, or pins of publishers replace the JWKS. */
  readonly isReachable: boolean;
  /** The keys that a receiver would use, for `explain`. */
  readonly jwks: readonly Jwk[];
}

interface ChainOptions {
  readonly sender: Sender;
  readonly protocol: string | undefined;
  /** The protocol version that the receiver has configured for this seller. */
  readonly edition?: EditionName | undefined;
  readonly allowLoopback: boolean;
  readonly fetch: KeyFetch;
  /** Unix ms. */
  readonly now: () => number;
  /** If true, fetches the documents a second time, to find URLs that change between requests. */
  readonly looksTwice?: boolean;
}

/** The largest normal difference between two correct clocks, including transit. */
const CLOCK_SLACK_MS = 60_000;

async function judgeKey(
  jwk: Jwk,
  source: ChainKey['source'],
  revoked: ReadonlySet<string>,
  context: {
    readonly protocols: Protocols;
    readonly engine: CryptoEngine;
    readonly now: number;
    readonly edition: EditionName | undefined;
  },
): Promise<ChainKey> {
  const { protocols, engine, now, edition: given } = context;
  const verifyKey = await engine.importKey(jwk);
  const unfit = (name: EditionName | undefined): string | undefined =>
    typeof verifyKey === 'string' ? verifyKey : unfitReason(jwk, verifyKey, protocols, editionFor(name));
  const editions = EDITION_NAMES.filter((name) => unfit(name) === undefined);
  const invalidReason = unfit(given);
  const kid = String(jwk['kid']);
  return {
    kid,
    source,
    editions,
    accepted: invalidReason === undefined,
    revoked: revoked.has(kid) || (revokedSince(jwk) ?? Number.POSITIVE_INFINITY) <= now / 1000,
    ...(typeof jwk['revoked_at'] === 'string' && { revokedAt: jwk['revoked_at'] }),
    ...(invalidReason !== undefined && { invalidReason }),
  };
}

/** True if the receiver accepts deliveries signed with the key. */
export function isFit({ accepted, revoked }: ChainKey): boolean {
  return accepted && !revoked;
}

interface Published {
  readonly set?: KeySet;
  /** The brand.json that lists the agent; undefined if none was found. */
  readonly listing: string | undefined;
  /** The reason why there is no JWKS. */
  readonly trouble?: string;
}

/** Finds and fetches the agent's JWKS, starting at its agent URL (steps 1 to 4, verification.md §5.1 to §5.4). */
async function published(
  documents: Documents,
  sender: SenderEntry,
  { allowLoopback, now }: Pick<ChainOptions, 'allowLoopback' | 'now'>,
): Promise<Published> {
  let listing: string | undefined;
  const locate = createLocate({ allowLoopback, raiseAlarm: () => undefined, now });
  const location = await locate(sender, (kind, url) => {
    listing = url;
    return documents.load(kind, url);
  });
  if (!location.ok) return { listing, trouble: location.reason };
  const answer = await documents.load(JWKS, location.jwksUri);
  if (answer.ok) return { set: answer.copy.value, listing };
  return { listing, trouble: `JWKS at ${location.jwksUri}: ${answer.reason}` };
}

/** Reports why there is no JWKS: as a note if the keys are pinned, otherwise as a fault. */
function noteTrouble(
  trouble: string | undefined,
  isPinned: boolean,
  { faults, notes }: { readonly faults: string[]; readonly notes: string[] },
): void {
  if (trouble === undefined) return;
  if (isPinned) notes.push(`${trouble}. Not needed: only the pinned keys count.`);
  else faults.push(`${trouble}. Deliveries are answered 503 keys_unavailable.`);
}

/** Returns a fault if no key of the agent can be used; undefined if at least one can. */
function keyFault(keys: readonly ChainKey[], edition: EditionName | undefined): string | undefined {
  if (keys.some(isFit)) return undefined;
  const others = EDITION_NAMES.filter((name) =>
    keys.some(({ editions, revoked }) => editions.includes(name) && !revoked),
  );
  const here = edition === undefined ? 'without an edition' : `in edition ${edition}`;
  return others.length === 0
    ? 'No key can sign webhooks. Deliveries are answered 401.'
    : `No key can sign webhooks ${here}: deliveries are answered 401. One can in edition ${others.join(', ')}; if that is the seller's, set edition for this sender.`;
}

/** Returns the notes about documents that can be used although a part of them is wrong. */
function oddNotes(links: readonly Link[]): string[] {
  const odd = links.filter(({ state, fault }) => state === 'good' && fault !== undefined);
  return odd.map(({ document, url, fault }) => `${document} at ${url}: ${fault}.`);
}

/**
 * Returns the note about a server whose time differs from this machine's. A receiver with this machine's time might
 * refuse signatures made with the server's time.
 */
function clockNotes(links: readonly Link[]): string[] {
  const off = links.find(({ clockAheadMs = 0 }) => Math.abs(clockAheadMs) > CLOCK_SLACK_MS);
  if (!off) return [];
  const { clockAheadMs = 0, url } = off;
  const side = clockAheadMs > 0 ? 'behind' : 'ahead of';
  return [
    `This machine's clock is ${Math.abs(clockAheadMs) / 1000} s ${side} that of ${new URL(url).host} (Date). Deliveries are refused at check 5 if the seller's clock and the receiver's differ by more than a minute.`,
  ];
}

/**
 * Follows brand.json → `agents[]` → JWKS → pins → revocation list, with the receiver's own readers and rules.
 * @throws ConfigError for an unusable agent URL or protocol.
 */
export async function walkChain(options: ChainOptions): Promise<Chain> {
  const { allowLoopback, sender: given } = options;
  const protocols = protocolsFor(options.protocol);
  const caps = { maxNoncesPerKey: 1, maxNoncesPerSender: Infinity };
  const defaults = { protocols, edition: editionFor(options.edition), allowLoopback, ...caps };
  const [sender] = senderSource([given], defaults).fixed ?? [];
  if (!sender) throw new TypeError('one sender was given');
  const documents = recorded(createDocuments(options));
  const { edition } = options;
  editionFor(edition);
  const faults: string[] = [];
  const notes: string[] = [];
  const { set, listing, trouble } = await published(documents, sender, options);
  const jwks = [...(set?.jwks.values() ?? [])];
  const sets = await publisherSets(documents, sender, allowLoopback, faults);
  const isPinned = sets.length > 0 && sender.edition.publisherPins !== 'narrow';
  noteTrouble(trouble, isPinned, { faults, notes });
  const check = { options, protocols, documents, sender, listing, jwks, pinned: isPinned };
  const revocation = await checkRevocations(check, { faults, notes });
  const engine = await createEngine();
  const revoked = new Set(revocation.kids);
  const { jwks: counted, source, notes: odd } = countedKeys({ sender, protocols, published: set, sets });
  notes.push(...odd);
  const keys: ChainKey[] = [];
  for (const jwk of counted)
    keys.push(await judgeKey(jwk, source, revoked, { protocols, engine, now: options.now(), edition }));
  notes.push(...oddNotes(documents.links), ...clockNotes(documents.links));
  if (options.looksTwice === true) {
    notes.push(...(await movingNotes(documents, createDocuments(options), sender, options)));
  }
  const unfit = keys.length > 0 || faults.length === 0 ? keyFault(keys, edition) : undefined;
  if (unfit !== undefined) faults.push(unfit);
  const { agentUrl } = sender;
  const isReachable = isPinned || trouble === undefined;
  return {
    agentUrl,
    links: documents.links,
    keys,
    revocation,
    faults,
    notes,
    edition,
    isReachable,
    jwks: counted,
  };
}
