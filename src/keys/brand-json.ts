// Reads a brand.json: agents, operators, and the place that it points to (verification.md §5.1, §5.2).
// Called as a document kind by `agent-location.ts` and the resolver.

import { isJsonObject, type JsonObject, present } from '../codec/members.ts';
import { parseStrictObject } from '../codec/strict-json.ts';
import { parseInstant } from '../events/instant.ts';
import type { DocumentKind, Parsed } from './document.ts';

/** An entry of `agents[]`, as published. */
export interface AgentEntry {
  /** Undefined if the entry has none, or `null`. */
  readonly jwksUri: unknown;
  readonly type: unknown;
}

/** The part of a brand.json about agents (verification.md §5.1, §5.2). */
export interface BrandJson {
  /**
   * Absolute URL of the list of agents, if the file has only `authoritative_location` or a `house` domain.
   */
  readonly next?: string;
  /** Entries by `url` as written. */
  readonly agents: ReadonlyMap<string, readonly AgentEntry[]>;
  /** Periods of `authorized_operators[]` by `domain`, in the form in which `URL` writes hosts. */
  readonly operators: ReadonlyMap<string, readonly Period[]>;
  /** True for a house's portfolio: `house` is an object. */
  readonly isHouse: boolean;
}

/** Period in which an operator is authorized, Unix ms; unlimited where a bound is absent. */
export interface Period {
  readonly from?: number;
  /** The first instant at which the authorization is over. */
  readonly until?: number;
}

/** 2 MiB and 32 levels (verification.md §5.13, §5.14). */
const MAX_BYTES = 2_097_152;
const MAX_DEPTH = 32;

/**
 * Matches a host name with an optional port, and nothing that could turn the URL made of it into another one.
 */
const DOMAIN = /^[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?(?::\d{1,5})?$/i;

/** @param allowLoopback development: a `house` named by a file that came over http is asked over http. */
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
 * Every list of agents in the file, or the fault of its shape: read leniently, a mistake would delist every
 * agent. `null` is no mistake, because many serialisers write it for "none".
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
  // `brands` or a `house` object without agents is a list of no agents, not a pointer elsewhere.
  if (lists.length === 0 && (brands !== undefined || isJsonObject(house))) lists.push([]);
  return lists;
}

/** Longest member of an agent's entry that is kept, in characters. */
const MAX_ENTRY = 16_384;

/** Drops a value that cannot be a URL or a type anyway. */
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

/**
 * The period of an operator. Undefined if a time cannot be read, because nobody knows when it is authorized.
 */
function periodOf(operator: JsonObject): Period | undefined {
  const [from, until] = [timeIn(operator, 'valid_from', 0), timeIn(operator, 'valid_until', DAY_MS)];
  if (Number.isNaN(from) || Number.isNaN(until)) return undefined;
  return { ...(from !== undefined && { from }), ...(until !== undefined && { until }) };
}

const DAY_MS = 86_400_000;

/** An instant. A day means its beginning in UTC plus `afterDayMs`. NaN for an unreadable value. */
function timeIn(operator: JsonObject, name: string, afterDayMs: number): number | undefined {
  const value = present(operator, name);
  if (value === undefined) return undefined;
  if (typeof value !== 'string') return Number.NaN;
  const isDay = /^\d{4}-\d\d-\d\d$/.test(value);
  const ms = parseInstant(isDay ? `${value}T00:00:00Z` : value)?.ms ?? Number.NaN;
  return isDay ? ms + afterDayMs : ms;
}

/** The host in the form of `URL`, so that the two compare: lower case, A-labels, no root dot. */
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
