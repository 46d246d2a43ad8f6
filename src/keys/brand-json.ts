import { isJsonObject, type JsonObject, present } from '../codec/members.ts';
import { parseStrictObject } from '../codec/strict-json.ts';
import { parseInstant } from '../events/instant.ts';
import type { DocumentKind, Parsed } from './document.ts';

/** An entry of `agents[]`, as published. */
export interface AgentEntry {
  /** Undefined where it has none or `null`. */
  readonly jwksUri: unknown;
  readonly type: unknown;
}

/** What a brand.json says about agents (verification.md §5.1, §5.2). */
export interface BrandJson {
  /** Where the agents are listed instead, absolute: the file has `authoritative_location` or a `house` domain only. */
  readonly next?: string;
  /** By `url` as it is written. */
  readonly agents: ReadonlyMap<string, readonly AgentEntry[]>;
  /** `authorized_operators[]` by `domain`, as `URL` writes hosts. */
  readonly operators: ReadonlyMap<string, readonly Period[]>;
  /** It is a house's portfolio: `house` is an object. */
  readonly isHouse: boolean;
}

/** When an operator is authorized, Unix ms; always where absent. */
export interface Period {
  readonly from?: number;
  /** The first instant at which it is no more. */
  readonly until?: number;
}

/** 2 MiB, 32 levels: verification.md §5.13, §5.14. */
const MAX_BYTES = 2_097_152;
const MAX_DEPTH = 32;

/** A host name with an optional port, and nothing that could turn the URL made of it into another one. */
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
 * Every list that the file has, or what is wrong with its shape: read leniently, a mistake would delist every agent. `null` is
 * not a mistake: many serialisers write it for "none".
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
  // `brands` or a `house` object without agents is a listing that lists none, not a pointer elsewhere.
  if (lists.length === 0 && (brands !== undefined || isJsonObject(house))) lists.push([]);
  return lists;
}

/** Characters of a member of an agent's entry that are kept. */
const MAX_ENTRY = 16_384;

/** What cannot be a URL or a type anyway is not kept either. */
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

/** Undefined where it has a time that cannot be read: nobody knows when it is authorized. */
function periodOf(operator: JsonObject): Period | undefined {
  const [from, until] = [timeIn(operator, 'valid_from', 0), timeIn(operator, 'valid_until', DAY_MS)];
  if (Number.isNaN(from) || Number.isNaN(until)) return undefined;
  return { ...(from !== undefined && { from }), ...(until !== undefined && { until }) };
}

const DAY_MS = 86_400_000;

/** An instant, or a day in UTC and so much later. NaN for what cannot be read. */
function timeIn(operator: JsonObject, name: string, afterDayMs: number): number | undefined {
  const value = present(operator, name);
  if (value === undefined) return undefined;
  if (typeof value !== 'string') return Number.NaN;
  const isDay = /^\d{4}-\d\d-\d\d$/.test(value);
  const ms = parseInstant(isDay ? `${value}T00:00:00Z` : value)?.ms ?? Number.NaN;
  return isDay ? ms + afterDayMs : ms;
}

/** As `URL` writes hosts, so that the two compare: lower case, A-labels, no root dot. */
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
