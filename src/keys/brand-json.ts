// Parses a brand.json: its agents, its operators, and its pointer to another file (verification.md §5.1, §5.2).
// `agent-location.ts` and the resolver use it as a document kind of the cache.

import { isJsonObject, type JsonObject, present } from '../codec/members.ts';
import { parseStrictObject } from '../codec/strict-json.ts';
import { parseInstant } from '../events/instant.ts';
import type { DocumentKind, Parsed } from './document.ts';

/** An entry of `agents[]`, as published. */
export interface AgentEntry {
  /**
   * The published `jwks_uri`, of any type. Undefined if the member is absent or `null`. Null if it is an object, a list
   * or longer than 16,384 characters.
   */
  readonly jwksUri: unknown;
  readonly type: unknown;
}

/** The parts of a brand.json that lead to the keys of an agent (verification.md §5.1, §5.2). */
export interface BrandJson {
  /**
   * The absolute URL of another file that lists the agents. Set if this file has no agents but
   * `authoritative_location` or a `house` domain.
   */
  readonly next?: string;
  /** The entries of `agents[]` by their member `url`, exactly as written. */
  readonly agents: ReadonlyMap<string, readonly AgentEntry[]>;
  /**
   * The periods in which each operator in `authorized_operators[]` is authorized, by `domain`. Domains are normalised
   * as `URL` normalises hosts.
   */
  readonly operators: ReadonlyMap<string, readonly Period[]>;
  /** True if `house` is an object: the file describes a house (a company) and its brands. */
  readonly isHouse: boolean;
}

/**
 * The period in which an operator is authorized, Unix ms. Without `from` or `until` the period is open at that end.
 */
export interface Period {
  readonly from?: number;
  /** The first instant at which the authorization is over. */
  readonly until?: number;
}

/** The limits of a brand.json: 2 MiB, and 32 levels of nesting (verification.md §5.13, §5.14). */
const MAX_BYTES = 2_097_152;
const MAX_DEPTH = 32;

/** Matches a host name with an optional port. Nothing else may match, because the text becomes part of a URL. */
const DOMAIN = /^[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?(?::\d{1,5})?$/i;

/**
 * Returns the document kind for brand.json.
 * @param allowLoopback for development: a `house` domain is fetched over http if the file that names it was.
 */
export function brandJsonKind(allowLoopback: boolean): DocumentKind<BrandJson> {
  return {
    name: 'brand.json',
    maxBytes: MAX_BYTES,
    parse: (bytes, url) => parseBrandJson(bytes, url, allowLoopback),
  };
}

function parseBrandJson(bytes: Uint8Array, url: string, allowLoopback: boolean): Parsed<BrandJson> {
  const json = parseStrictObject(bytes, MAX_DEPTH);
  if (!json.ok) return { ok: false, reason: json.detail };
  const lists = agentLists(json.value);
  if (typeof lists === 'string') return { ok: false, reason: lists };
  const said = {
    operators: operatorDomains(json.value['authorized_operators']),
    isHouse: isJsonObject(json.value['house']),
  };
  if (lists.length > 0) return { ok: true, value: { agents: agentsByUrl(lists.flat()), ...said } };
  const next = nextLocation(json.value, allowLoopback ? new URL(url).protocol : 'https:');
  if (next === undefined) return { ok: true, value: { agents: new Map(), ...said } };
  return next.ok ? { ok: true, value: { next: next.url, agents: new Map(), ...said } } : next;
}

/**
 * Returns every list of agents in the file, or a text that says what is malformed. A malformed list is an error,
 * because ignoring it would lose all its agents. `null` is treated as absent, because many serialisers write it for
 * "none".
 */
function agentLists(root: JsonObject): unknown[][] | string {
  const [house, brands] = [present(root, 'house'), present(root, 'brands')];
  if (brands !== undefined && !Array.isArray(brands)) return 'brands is not an array';
  const owners: readonly unknown[] = [root, house, ...((brands as unknown[] | undefined) ?? [])];
  const lists: unknown[][] = [];
  for (const owner of owners) {
    const agents = isJsonObject(owner) ? present(owner, 'agents') : undefined;
    if (agents === undefined) continue;
    if (!Array.isArray(agents)) return 'agents is not an array';
    lists.push(agents as unknown[]);
  }
  // A file with `brands` or a `house` object, but without agents, lists no agents; it is not a pointer to another
  // file.
  if (lists.length === 0 && (brands !== undefined || isJsonObject(house))) lists.push([]);
  return lists;
}

/** The maximum number of characters of a member of an agent's entry. */
const MAX_ENTRY = 16_384;

/** Returns the value, or null if it can be neither a URL nor a type, because it is an object or a very long string. */
function kept(value: unknown): unknown {
  const isLong = typeof value === 'string' && value.length > MAX_ENTRY;
  return isLong || (typeof value === 'object' && value !== null) ? null : value;
}

function agentsByUrl(entries: readonly unknown[]): Map<string, AgentEntry[]> {
  const agents = new Map<string, AgentEntry[]>();
  for (const entry of entries) {
    if (!isJsonObject(entry) || typeof entry['url'] !== 'string' || entry['url'].length > MAX_ENTRY) continue;
    const known = agents.get(entry['url']);
    const found = { jwksUri: kept(present(entry, 'jwks_uri')), type: kept(present(entry, 'type')) };
    if (known) known.push(found);
    else agents.set(entry['url'], [found]);
  }
  return agents;
}

function operatorDomains(operators: unknown): Map<string, Period[]> {
  const domains = new Map<string, Period[]>();
  for (const operator of Array.isArray(operators) ? (operators as unknown[]) : []) {
    const domain = isJsonObject(operator) ? operator['domain'] : undefined;
    const period = isJsonObject(operator) ? periodOf(operator) : undefined;
    if (typeof domain !== 'string' || domain.length > MAX_ENTRY || period === undefined) continue;
    const host = asHost(domain);
    const known = domains.get(host);
    if (known) known.push(period);
    else domains.set(host, [period]);
  }
  return domains;
}

/** Returns the period in which an operator is authorized. Undefined if a time in the entry cannot be read. */
function periodOf(operator: JsonObject): Period | undefined {
  const [from, until] = [timeIn(operator, 'valid_from', 0), timeIn(operator, 'valid_until', DAY_MS)];
  if (Number.isNaN(from) || Number.isNaN(until)) return undefined;
  return { ...(from !== undefined && { from }), ...(until !== undefined && { until }) };
}

const DAY_MS = 86_400_000;

/**
 * Reads a time as Unix ms. A date without a time of day means midnight UTC of that day plus `afterDayMs`. NaN if the
 * value is unreadable, undefined if it is absent.
 */
function timeIn(operator: JsonObject, name: string, afterDayMs: number): number | undefined {
  const value = present(operator, name);
  if (value === undefined) return undefined;
  if (typeof value !== 'string') return Number.NaN;
  const isDay = /^\d{4}-\d\d-\d\d$/.test(value);
  const ms = parseInstant(isDay ? `${value}T00:00:00Z` : value)?.ms ?? Number.NaN;
  return isDay ? ms + afterDayMs : ms;
}

/** Returns the host as `URL` writes it, so that hosts can be compared: lower case, A-labels, no root dot. */
function asHost(domain: string): string {
  const ascii = /^[\x21-\x7e]*$/.test(domain);
  const url = `https://${domain}`;
  const host =
    !ascii && /^[^\s/?#@:[\]\\]+$/.test(domain) && URL.canParse(url) ? new URL(url).hostname : domain;
  return host.toLowerCase().replace(/\.$/, '');
}

type Next = { readonly ok: true; readonly url: string } | { readonly ok: false; readonly reason: string };

function nextLocation(root: JsonObject, protocol: string): Next | undefined {
  const [location, house] = [present(root, 'authoritative_location'), present(root, 'house')];
  if (location !== undefined) {
    return typeof location === 'string' && URL.canParse(location)
      ? { ok: true, url: new URL(location).href }
      : { ok: false, reason: 'authoritative_location is not an absolute URL' };
  }
  if (house === undefined) return undefined;
  if (typeof house !== 'string' || !DOMAIN.test(house)) return { ok: false, reason: 'house is not a domain' };
  const url = `${protocol}//${house}/.well-known/brand.json`;
  return URL.canParse(url)
    ? { ok: true, url: new URL(url).href }
    : { ok: false, reason: 'house is not a domain' };
}
