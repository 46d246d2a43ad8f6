import { usableKey } from '../../auth/rfc9421/key-policy.ts';
import { senderSource } from '../../config/senders.ts';
import type { CryptoEngine, Jwk } from '../../crypto/engine.ts';
import { createEngine } from '../../crypto/index.ts';
import { createLocate } from '../../keys/agent-location.ts';
import { brandJsonKind } from '../../keys/brand-json.ts';
import type { KeyTransport } from '../../keys/contract.ts';
import { ageSeconds, type CopyResult, type DocumentKind, lifetimeMs } from '../../keys/document.ts';
import { JWKS } from '../../keys/jwks.ts';
import { ADAGENTS } from '../../keys/publisher-pins.ts';
import {
  absentAsEmpty,
  invalidSignatureReason,
  type PublishedList,
  revocationKind,
} from '../../keys/revocation-list.ts';
import { isFresh, newRegister, type Register } from '../../keys/revocation-registers.ts';
import { fetchDocument } from '../../keys/safe-fetch.ts';
import { editionFor, type EditionName, type Protocol, protocolFor } from '../../protocol.ts';
import type { Sender, SenderEntry } from '../../senders.ts';
import type { Copy } from '../../keys/document.ts';

/** One document of a seller's chain, as it was found. */
export interface Link {
  /** e.g. `brand.json`, `JWKS`. */
  readonly document: string;
  readonly url: string;
  /** `absent`: not published, which is allowed. */
  readonly state: 'good' | 'absent' | 'faulty' | 'unreachable';
  /** What is wrong with it. */
  readonly fault?: string;
  readonly bytes?: number;
  /** Seconds for which caches on the way had held it, where they say so. */
  readonly ageSeconds?: number;
  readonly lastModified?: string;
  /** Seconds by which the clock of who served it is ahead of this machine's, where it says its time (`Date`). */
  readonly clockAheadSeconds?: number;
  readonly cacheControl?: string;
  /** Seconds for which a receiver uses it without asking again. */
  readonly freshSeconds?: number;
}

/** Fetches documents under the receiver's own rules, and keeps a list of what was found. */
interface Documents {
  readonly links: Link[];
  load<T>(kind: DocumentKind<T>, url: string): Promise<CopyResult<T>>;
}

interface DocumentsOptions {
  readonly transport: KeyTransport;
  readonly allowLoopback: boolean;
  /** Unix ms. */
  readonly now: () => number;
}

/** Ms for one document, as the receiver has it. */
const DEADLINE_MS = 10_000;

/** What the answer's headers say of caches, and of the time. */
function headerFacts(headers: Headers, now: number): Partial<Link> {
  const date = Date.parse(headers.get('date') ?? '');
  // What a cache has held was dated when it came there.
  const clockAheadSeconds = Math.round((date - now) / 1000) + ageSeconds(headers);
  const lastModified = headers.get('last-modified');
  const cacheControl = headers.get('cache-control');
  return {
    ...(headers.has('age') && { ageSeconds: ageSeconds(headers) }),
    ...(!Number.isNaN(date) && { clockAheadSeconds }),
    ...(lastModified !== null && { lastModified }),
    ...(cacheControl !== null && { cacheControl }),
  };
}

export function createDocuments({ transport, allowLoopback, now }: DocumentsOptions): Documents {
  const links: Link[] = [];
  let order = 0;
  return {
    links,
    load: async (kind, url) => {
      let answered = false;
      const watched: KeyTransport = async (at, init) => {
        const response = await transport(at, init);
        answered = true;
        return response;
      };
      const began = now();
      const rules = { transport: watched, allowLoopback, deadlineMs: DEADLINE_MS };
      const fetched = await fetchDocument(rules, { url, maxBytes: kind.maxBytes }, new AbortController());
      const link = { document: kind.name, url };
      if (!fetched.ok) {
        links.push({ ...link, state: answered ? 'faulty' : 'unreachable', fault: fetched.reason });
        return { ok: false, reason: fetched.reason };
      }
      const facts = { ...link, bytes: fetched.bytes.length, ...headerFacts(fetched.headers, now()) };
      const parsed = kind.parse(fetched.bytes, url);
      if (!parsed.ok) {
        links.push({ ...facts, state: 'faulty', fault: parsed.reason });
        return parsed;
      }
      order += 1;
      // As `document-fetch` has it: a document that names its next issue is used until then.
      const until = kind.dueAt?.(parsed.value, began) ?? began + lifetimeMs(fetched.headers, kind.life);
      const freshSeconds = Math.round((until - began) / 1000);
      const fault = 'warning' in parsed ? parsed.warning : undefined;
      links.push({ ...facts, state: 'good', freshSeconds, ...(fault !== undefined && { fault }) });
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

interface RevocationCheck {
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
interface Findings {
  readonly faults: string[];
  readonly notes: string[];
}

const NONE: RevocationState = { state: 'none', kids: [] };

function asAbsent(link: Link): Link {
  const { document, url } = link;
  return { document, url, state: 'absent' };
}

async function listSignatureReason(
  { signature }: PublishedList,
  jwks: readonly Jwk[],
): Promise<string | undefined> {
  if (!signature) return undefined;
  const jwk = jwks.find((key) => key['kid'] === signature.kid);
  return jwk ? invalidSignatureReason(signature, jwk) : "signed by a key that is not in the operator's JWKS";
}

/** Looks for the operator's list where a receiver would, and judges it. Adds to the findings. */
export async function checkRevocations(
  check: RevocationCheck,
  { faults, notes }: Findings,
): Promise<RevocationState> {
  const { options, protocol, documents, sender, listing } = check;
  const named = sender.revocation?.url;
  const url = named ?? (listing === undefined ? undefined : new URL(protocol.revocationsPath, listing).href);
  if (url === undefined) return NONE;
  const transport = named === undefined ? absentAsEmpty(options.transport) : options.transport;
  const own = createDocuments({ ...options, transport });
  const register: Register = { ...newRegister(url), required: named !== undefined };
  const answer = await own.load(revocationKind(new Map([[url, register]])), url);
  const empty = answer.ok && answer.copy.value.list === undefined;
  documents.links.push(...own.links.map((link) => (empty ? asAbsent(link) : link)));
  if (!answer.ok) {
    // One that nobody names is required only from when it was first served.
    const optional = check.pinned && named === undefined;
    if (optional) notes.push(`revocation list at ${url}: ${answer.reason}. Required once it was served.`);
    else {
      const costs = register.required ? ' Deliveries get 503.' : '';
      faults.push(`revocation list at ${url}: ${answer.reason}.${costs}`);
    }
    return { state: 'unknown', kids: [], required: register.required };
  }
  return stateOf(answer.copy, url, check, faults);
}

/** What a list that is served says, and whether a receiver takes it. */
async function stateOf(
  { fetchedAt: began, value }: Copy<PublishedList>,
  url: string,
  { options, jwks }: RevocationCheck,
  faults: string[],
): Promise<RevocationState> {
  const { list } = value;
  if (!list) return NONE;
  const invalidReason = await listSignatureReason(value, jwks);
  if (invalidReason !== undefined)
    faults.push(`revocation list at ${url}: ${invalidReason}. It is not taken. Deliveries get 503.`);
  const stale = !isFresh({ inForce: { ...list, confirmedAt: began } }, options.now());
  if (stale) faults.push(`revocation list at ${url}: stale since its next_update. Deliveries get 503.`);
  return {
    // A list that is not taken is served nevertheless: one is required from then on.
    ...(invalidReason === undefined
      ? { state: stale ? 'stale' : 'fresh', kids: [...list.kids] }
      : { state: 'unknown', kids: [], required: true }),
    signed: value.signature !== undefined,
    updated: new Date(list.updated).toISOString(),
    nextUpdate: new Date(list.nextUpdate).toISOString(),
  };
}

/** A key by which the seller's deliveries are verified, and what speaks against it. */
export interface ChainKey {
  readonly kid: string;
  readonly source: 'JWKS' | 'adagents.json';
  /** Editions whose receivers take it (check 8); empty: no receiver does, and `invalidReason` says why. */
  readonly editions: readonly EditionName[];
  readonly invalidReason?: string;
  readonly revoked: boolean;
}

/** The whole way from an agent URL to its keys. */
export interface Chain {
  readonly agentUrl: string;
  readonly links: readonly Link[];
  readonly keys: readonly ChainKey[];
  readonly revocation: RevocationState;
  /** In words, each with what it means for deliveries. Empty: all is well. */
  readonly faults: readonly string[];
  /** What is wrong, and does not keep deliveries from being accepted. */
  readonly notes: readonly string[];
  /** By which the keys are judged. */
  readonly edition: EditionName;
  /** The keys themselves, for `explain`. */
  readonly jwks: readonly Jwk[];
}

interface ChainOptions {
  readonly sender: Sender;
  readonly protocol: string | undefined;
  /** What the receiver has for this seller. */
  readonly edition?: EditionName | undefined;
  readonly allowLoopback: boolean;
  readonly transport: KeyTransport;
  /** Unix ms. */
  readonly now: () => number;
}

/** Two clocks that are right, and the way, differ by less. */
const CLOCK_SLACK_S = 60;

const EDITIONS: readonly EditionName[] = ['3.0', '3.1', '3.2'];

async function judgeKey(
  jwk: Jwk,
  source: ChainKey['source'],
  revoked: ReadonlySet<string>,
  context: { readonly protocol: Protocol; readonly engine: CryptoEngine },
): Promise<ChainKey> {
  const { protocol, engine } = context;
  const verifyKey = await engine.importKey(jwk);
  const verdicts = EDITIONS.map((name) => {
    const alg = typeof verifyKey === 'string' ? 'ed25519' : verifyKey.alg;
    const usable = usableKey(jwk, verifyKey, { protocol, purposes: editionFor(name).keyPurposes, alg });
    return { name, invalidReason: typeof usable === 'string' ? usable : undefined };
  });
  const editions = verdicts
    .filter(({ invalidReason }) => invalidReason === undefined)
    .map(({ name }) => name);
  const [first] = verdicts;
  const kid = String(jwk['kid']);
  return {
    kid,
    source,
    editions,
    revoked: revoked.has(kid),
    ...(first?.invalidReason !== undefined && { invalidReason: first.invalidReason }),
  };
}

/** Whether a receiver of that edition takes deliveries by the key. */
export function isFit(key: ChainKey, edition: EditionName): boolean {
  return key.editions.includes(edition) && !key.revoked;
}

/** What the publishers pin for the agent: where any does, only that counts (verification.md §5.5). */
async function pinned(
  documents: Documents,
  sender: SenderEntry,
  allowLoopback: boolean,
  faults: string[],
): Promise<readonly Jwk[]> {
  const scheme = allowLoopback && sender.agentUrl.startsWith('http:') ? 'http' : 'https';
  const jwks = new Map<string, Jwk>();
  for (const domain of sender.publishers ?? []) {
    const url = `${scheme}://${domain}/.well-known/adagents.json`;
    const answer = await documents.load(ADAGENTS, url);
    if (!answer.ok)
      faults.push(`adagents.json at ${url}: ${answer.reason}. It might pin keys, so deliveries get 503.`);
    const set = answer.ok ? answer.copy.value.pinned.get(sender.agentUrl) : undefined;
    if (typeof set === 'string') faults.push(`adagents.json at ${url}: what it pins cannot be used: ${set}.`);
    if (typeof set === 'object') for (const [kid, jwk] of set.jwks) jwks.set(kid, jwk);
  }
  return [...jwks.values()];
}

interface Published {
  readonly jwks: readonly Jwk[];
  /** The brand.json that lists the agent, where one was found. */
  readonly listing: string | undefined;
  /** Why there is no JWKS. */
  readonly trouble?: string;
}

/** Steps 1 to 4 (verification.md §5.1 to §5.4). */
async function published(
  documents: Documents,
  sender: SenderEntry,
  allowLoopback: boolean,
): Promise<Published> {
  let listing: string | undefined;
  const kind = brandJsonKind(allowLoopback);
  const locate = createLocate({ allowLoopback, raiseAlarm: () => undefined });
  const location = await locate(sender, (url) => {
    listing = url;
    return documents.load(kind, url);
  });
  if (!location.ok) return { jwks: [], listing, trouble: location.reason };
  const answer = await documents.load(JWKS, location.jwksUri);
  if (answer.ok) return { jwks: [...answer.copy.value.jwks.values()], listing };
  return { jwks: [], listing, trouble: `JWKS at ${location.jwksUri}: ${answer.reason}` };
}

/** What speaks against all keys together. */
function keyFault(keys: readonly ChainKey[], edition: EditionName): string | undefined {
  if (keys.some((key) => isFit(key, edition))) return undefined;
  const others = EDITIONS.filter((name) => keys.some((key) => isFit(key, name)));
  return others.length === 0
    ? 'No key can sign webhooks. Deliveries get 401.'
    : `No key can sign webhooks in edition ${edition}: deliveries get 401. One can in edition ${others.join(', ')}; if that is the seller's, set edition for this sender.`;
}

/** Of a server whose time is another: a receiver with this machine's clock might refuse what is signed by that one. */
function clockNotes(links: readonly Link[]): string[] {
  const off = links.find(({ clockAheadSeconds = 0 }) => Math.abs(clockAheadSeconds) > CLOCK_SLACK_S);
  if (!off) return [];
  const { clockAheadSeconds = 0, url } = off;
  const side = clockAheadSeconds > 0 ? 'behind' : 'ahead of';
  return [
    `This machine's clock is ${Math.abs(clockAheadSeconds)} s ${side} that of ${new URL(url).host} (Date). Deliveries are refused at check 5 where the seller's clock and the receiver's differ by more than a minute.`,
  ];
}

/**
 * Walks brand.json → `agents[]` → JWKS → pins → revocation list, with the receiver's own readers and rules.
 * @throws ConfigError for an unusable agent URL or protocol.
 */
export async function walkChain(options: ChainOptions): Promise<Chain> {
  const { allowLoopback, sender: given } = options;
  const protocol = protocolFor(options.protocol);
  const defaults = { protocol, edition: editionFor(), allowLoopback, maxNoncesPerKey: 1 };
  const [sender] = senderSource([given], defaults).fixed ?? [];
  if (!sender) throw new TypeError('one sender was given');
  const documents = createDocuments(options);
  const edition = editionFor(options.edition).name;
  const faults: string[] = [];
  const notes: string[] = [];
  const { jwks, listing, trouble } = await published(documents, sender, allowLoopback);
  const pins = await pinned(documents, sender, allowLoopback, faults);
  const isPinned = pins.length > 0;
  if (trouble !== undefined) {
    if (isPinned) notes.push(`${trouble}. Not needed: only the pinned keys count.`);
    else faults.push(`${trouble}. Deliveries get 503 keys_unavailable.`);
  }
  const check = { options, protocol, documents, sender, listing, jwks, pinned: isPinned };
  const revocation = await checkRevocations(check, { faults, notes });
  const engine = await createEngine();
  const revoked = new Set(revocation.kids);
  const counted = isPinned ? pins : jwks;
  const source = isPinned ? 'adagents.json' : 'JWKS';
  const keys: ChainKey[] = [];
  for (const jwk of counted) keys.push(await judgeKey(jwk, source, revoked, { protocol, engine }));
  notes.push(...clockNotes(documents.links));
  const unfit = keys.length > 0 || faults.length === 0 ? keyFault(keys, edition) : undefined;
  if (unfit !== undefined) faults.push(unfit);
  const { agentUrl } = sender;
  return { agentUrl, links: documents.links, keys, revocation, faults, notes, edition, jwks: counted };
}
