import type { Alarm, RaiseAlarm } from '../alarms.ts';
import type { SenderEntry } from '../senders.ts';
import type { BrandJson } from './brand-json.ts';
import type { Answer } from './document.ts';
import { registrableDomain, sameRegistrableDomain } from './domains.ts';
import { nearMisses, nearMissText } from './near-misses.ts';

/** Where a sender's JWKS lies. `renewable`: brand.json could be had, and a newer one may say otherwise. */
export type Location =
  | { readonly ok: true; readonly jwksUri: string }
  | { readonly ok: false; readonly renewable: boolean; readonly reason: string };

/** Gives the brand.json at a URL, from the network or only from what is held: the caller's choice. */
export type LoadBrandJson = (url: string) => Answer<BrandJson> | Promise<Answer<BrandJson>>;

export type Locate = (sender: SenderEntry, load: LoadBrandJson) => Promise<Location>;

export interface LocateOptions {
  readonly allowLoopback: boolean;
  readonly raiseAlarm: RaiseAlarm;
}

interface Judgement {
  readonly location: Location;
  readonly alarm?: Alarm;
}

/** The brand.json where the search begins, and the one that lists agents: the same, or what the first points to. */
interface Files {
  readonly configured: BrandJson;
  readonly listing: BrandJson;
  /** Where `listing` is. */
  readonly at: string;
}

interface Judged {
  readonly configured: BrandJson;
  readonly location: Location;
}

/** How many senders' first `jwks_uri` are remembered: as many as documents are. */
const MAX_LEARNED = 10_000;

/**
 * Steps 1 to 3 of verification.md, section 5: brand.json, followed once where it points elsewhere, the entry whose `url`
 * is the agent URL, its `jwks_uri`. What a copy says is judged once, and its alarms are raised once.
 */
export function createLocate(options: LocateOptions): Locate {
  const judged = new WeakMap<BrandJson, Map<string, Judged>>();
  const starts = new WeakMap<SenderEntry, string>();
  const noteMoved = createMoveWatch(options.raiseAlarm);
  const judgeOnce = async (sender: SenderEntry, files: Files, start: string): Promise<Location> => {
    const locations = judged.get(files.listing) ?? new Map<string, Judged>();
    judged.set(files.listing, locations);
    const key = `${sender.agentUrl} ${start}`;
    const known = (): Location | undefined => {
      const before = locations.get(key);
      return before?.configured === files.configured ? before.location : undefined;
    };
    const before = known();
    if (before !== undefined) return before;
    const { location, alarm } = await judge(sender, files);
    // Others may have judged it meanwhile. The result is kept and no promise of it: where a request owns its I/O, none
    // may wait for another's.
    if (alarm !== undefined && known() === undefined) options.raiseAlarm(alarm);
    locations.set(key, { configured: files.configured, location });
    return location;
  };
  return async (sender, load) => {
    const start = starts.get(sender) ?? brandJsonUrl(sender, options.allowLoopback);
    if (start === undefined) return { ok: false, renewable: false, reason: 'the agent URL is not a URL' };
    starts.set(sender, start);
    const first = await load(start);
    if (!first.ok) return missing(start, first.reason);
    const configured = first.copy.value;
    const at = configured.next ?? start;
    const answer = configured.next === undefined ? first : await load(at);
    if (!answer.ok) return missing(at, answer.reason);
    const location = await judgeOnce(sender, { configured, listing: answer.copy.value, at }, start);
    if (location.ok) noteMoved(sender.agentUrl, location.jwksUri);
    return location;
  };
}

function missing(at: string, reason: string): Location {
  return { ok: false, renewable: false, reason: `brand.json at ${at}: ${reason}` };
}

/** Step 1: at the operator domain, which is the host of the agent URL, unless configuration names another place. */
export function brandJsonUrl(sender: SenderEntry, allowLoopback: boolean): string | undefined {
  if (sender.brandJsonUrl !== undefined) return sender.brandJsonUrl;
  if (!URL.canParse(sender.agentUrl)) return undefined;
  const { protocol, host } = new URL(sender.agentUrl);
  const scheme = allowLoopback && protocol === 'http:' ? 'http:' : 'https:';
  return `${scheme}//${host}/.well-known/brand.json`;
}

async function judge(sender: SenderEntry, files: Files): Promise<Judgement> {
  const { agentUrl } = sender;
  const { listing: brand, at } = files;
  const refuse = (code: Alarm['code'], reason: string, details?: object): Judgement => ({
    location: { ok: false, renewable: true, reason },
    alarm: { code, message: `${agentUrl}: ${reason}.`, sender: agentUrl, url: at, ...details },
  });
  if (brand.next !== undefined) {
    return refuse(
      'agent_not_listed',
      `brand.json at ${at} points elsewhere again, and one such step is allowed`,
    );
  }
  const entries = brand.agents.get(agentUrl);
  if (entries === undefined) {
    const misses = nearMisses(agentUrl, brand.agents.keys());
    const hint = misses.length === 0 ? '' : `; it does list ${nearMissText(misses)}`;
    return refuse('agent_not_listed', `brand.json at ${at} has no agent with this url${hint}`, {
      nearMisses: misses.map(({ url }) => url),
    });
  }
  if (!(await mayList(sender, files))) {
    return refuse(
      'agent_not_listed',
      `brand.json at ${at} does not list this domain in authorized_operators`,
    );
  }
  const uris = new Set(entries.map((jwksUri) => absoluteJwksUri(jwksUri, agentUrl)));
  const [jwksUri] = uris;
  if (uris.size > 1) return refuse('agent_not_listed', `brand.json at ${at} has several entries that differ`);
  if (jwksUri === undefined) {
    return refuse('key_document_invalid', `brand.json at ${at} has a jwks_uri that is no absolute URL`);
  }
  return { location: { ok: true, jwksUri } };
}

/** Step 3: the entry's `jwks_uri`, else the well-known path at the origin of the agent URL. */
function absoluteJwksUri(jwksUri: unknown, agentUrl: string): string | undefined {
  if (jwksUri !== undefined) {
    return typeof jwksUri === 'string' && URL.canParse(jwksUri) ? new URL(jwksUri).href : undefined;
  }
  return URL.canParse(agentUrl) ? new URL('/.well-known/jwks.json', agentUrl).href : undefined;
}

/**
 * A file that configuration puts at another registrable domain than the agent's has to name that domain, itself or in
 * the file that it points to. One that the agent's own domain points to needs no more than that.
 */
async function mayList(sender: SenderEntry, { configured, listing, at }: Files): Promise<boolean> {
  if (sender.brandJsonUrl === undefined) return true;
  const agent = hostOf(sender.agentUrl);
  if (await sameRegistrableDomain(hostOf(sender.brandJsonUrl), agent)) return true;
  if (await sameRegistrableDomain(hostOf(at), agent)) return true;
  const named = (domain: string): boolean =>
    configured.operators.has(domain) || listing.operators.has(domain);
  if (named(agent)) return true;
  const domain = await registrableDomain(agent);
  return domain !== undefined && named(domain);
}

function hostOf(url: string): string {
  return URL.canParse(url) ? new URL(url).hostname.replace(/\.$/, '') : '';
}

/** Reports a `jwks_uri` other than the one first learned, once for each value it takes. */
function createMoveWatch(raiseAlarm: RaiseAlarm): (agentUrl: string, jwksUri: string) => void {
  const learned = new Map<string, { readonly first: string; last: string }>();
  return (agentUrl, jwksUri) => {
    const known = learned.get(agentUrl);
    if (known === undefined) {
      const [oldest] = learned.keys();
      if (learned.size >= MAX_LEARNED && oldest !== undefined) learned.delete(oldest);
      learned.set(agentUrl, { first: jwksUri, last: jwksUri });
      return;
    }
    if (known.last === jwksUri) return;
    known.last = jwksUri;
    if (known.first === jwksUri) return;
    const message = `${agentUrl}: its jwks_uri is ${jwksUri}; first learned was ${known.first}.`;
    raiseAlarm({ code: 'jwks_uri_moved', message, sender: agentUrl, first: known.first, jwksUri });
  };
}
