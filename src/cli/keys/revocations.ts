// Finds the operator's revocation lists at the URLs that a receiver would use, and judges them. `chain.ts` uses it.
import type { Jwk } from '../../crypto/engine.ts';
import type { Copy } from '../../keys/document.ts';
import {
  absentAsEmpty,
  invalidSignatureReason,
  type PublishedList,
  revocationKind,
} from '../../keys/revocation-list.ts';
import { discoveredLists, isFresh, newRegister, type Register } from '../../keys/revocation-registers.ts';
import type { Protocols } from '../../shared/wire-names.ts';
import type { SenderEntry } from '../../config/sender-entry.ts';
import { createDocuments, type Documents, type DocumentsOptions, type Link } from './documents.ts';

/** The state of an operator's revocation lists. */
export interface RevocationState {
  /** `none`: no list is published, and none is required. */
  readonly state: 'fresh' | 'stale' | 'none' | 'unknown';
  readonly kids: readonly string[];
  /**
   * Present if `state` is `unknown`. If true, a receiver requires the list, and answers deliveries with 503. It does so
   * if the configuration names a list, or if a list or the beginning of one was served.
   */
  readonly required?: boolean;
  readonly signed?: boolean;
  /** The time of the list's last update, ISO 8601. */
  readonly updated?: string;
  readonly nextUpdate?: string;
}

export interface RevocationCheck {
  readonly options: DocumentsOptions;
  readonly protocols: Protocols;
  readonly documents: Documents;
  readonly sender: SenderEntry;
  /**
   * The URL of the brand.json that lists the agent; the revocation list is published beside it. Undefined if none was
   * found.
   */
  readonly listing: string | undefined;
  /** The operator's keys, with which a signed list is verified. */
  readonly jwks: readonly Jwk[];
  /** True if publishers pin the keys, so that deliveries are verified without the operator's documents. */
  readonly pinned: boolean;
}

/** The lists of faults and notes to which this check adds. */
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
  { signature, list }: PublishedList,
  jwks: readonly Jwk[],
): Promise<string | undefined> {
  if (!signature || !list) return undefined;
  const jwk = jwks.find((key) => key['kid'] === signature.kid);
  return jwk
    ? invalidSignatureReason(signature, jwk, list.updated)
    : "signed by a key that is not in the operator's JWKS";
}

/** The states, most severe first. The most severe state of all lists decides about a delivery. */
const STATES: readonly RevocationState['state'][] = ['unknown', 'stale', 'fresh', 'none'];

/**
 * Fetches the operator's lists from the URLs that a receiver would use, and judges them. It adds faults and notes to
 * the findings.
 */
export async function checkRevocations(check: RevocationCheck, findings: Findings): Promise<RevocationState> {
  const { protocols, sender, listing } = check;
  const named = sender.revocation?.url;
  const discovered = listing === undefined ? [] : discoveredLists(protocols, listing);
  const states: RevocationState[] = [];
  for (const url of named === undefined ? discovered : [named])
    states.push(await listAt(url, check, findings));
  const order = ({ state }: RevocationState): number => STATES.indexOf(state);
  const [first = NONE] = states.toSorted((a, b) => order(a) - order(b));
  return { ...first, kids: [...new Set(states.flatMap(({ kids }) => kids))] };
}

async function listAt(
  url: string,
  check: RevocationCheck,
  { faults, notes }: Findings,
): Promise<RevocationState> {
  const { options, documents, sender } = check;
  const named = sender.revocation?.url;
  const fetchUrl = named === undefined ? absentAsEmpty(options.fetch) : options.fetch;
  const own = createDocuments({ ...options, fetch: fetchUrl });
  const register: Register = { ...newRegister(url), required: named !== undefined };
  const answer = await own.load(revocationKind(new Map([[url, register]])), url);
  const empty = answer.ok && answer.copy.value.list === undefined;
  documents.links.push(...own.links.map((link) => (empty ? asAbsent(link) : link)));
  if (!answer.ok) {
    // While keys are pinned, a list that the configuration does not name becomes required only after one was served.
    const optional = check.pinned && named === undefined;
    if (optional) notes.push(`revocation list at ${url}: ${answer.reason}. Required once it was served.`);
    else {
      const costs = register.required ? ' Deliveries are answered 503.' : '';
      faults.push(`revocation list at ${url}: ${answer.reason}.${costs}`);
    }
    return { state: 'unknown', kids: [], required: register.required };
  }
  return stateOf(answer.copy, url, check, faults);
}

/** Judges a list that was fetched, by its signature and its age. */
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
    faults.push(
      `revocation list at ${url}: ${invalidReason}. It is not accepted. Deliveries are answered 503.`,
    );
  const stale = !isFresh({ inForce: { ...list, confirmedAt: began } }, options.now());
  if (stale)
    faults.push(`revocation list at ${url}: stale since its next_update. Deliveries are answered 503.`);
  return {
    // A list that is not accepted was served all the same, so a receiver requires a list from then on.
    ...(invalidReason === undefined
      ? { state: stale ? 'stale' : 'fresh', kids: [...list.kids] }
      : { state: 'unknown', kids: [], required: true }),
    signed: value.signature !== undefined,
    updated: new Date(list.updated).toISOString(),
    nextUpdate: new Date(list.nextUpdate).toISOString(),
  };
}
