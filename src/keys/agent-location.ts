import type { Alarm, RaiseAlarm } from '../alarms.ts';
import type { SenderEntry } from '../senders.ts';
import type { BrandJson } from './brand-json.ts';
import type { Answer } from './document.ts';
import { registrableDomain, sameRegistrableDomain } from './domains.ts';
import { nearMisses } from './near-misses.ts';

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

/** How many senders' first `jwks_uri` are remembered: as many as documents are. */
const MAX_LEARNED = 10_000;

/**
 * Steps 1 to 3 of verification.md, section 5: brand.json, followed once where it points elsewhere, the entry whose `url`
 * is the agent URL, its `jwks_uri`. What a copy says is judged once, and its alarms are raised once.
 */
export function createLocate(options: LocateOptions): Locate {
  const judged = new WeakMap<BrandJson, Map<string, Promise<Location>>>();
  const starts = new WeakMap<SenderEntry, string>();
  const noteMoved = createMoveWatch(options.raiseAlarm);
  return async (sender, load) => {
    const start = starts.get(sender) ?? brandJsonUrl(sender, options.allowLoopback);
    if (start === undefined) return { ok: false, renewable: false, reason: 'the agent URL is not a URL' };
    starts.set(sender, start);
    let at = start;
    let answer = await load(at);
    if (answer.ok && answer.copy.value.next !== undefined) {
      at = answer.copy.value.next;
      answer = await load(at);
    }
    if (!answer.ok) return { ok: false, renewable: false, reason: `brand.json at ${at}: ${answer.reason}` };
    const brand = answer.copy.value;
    const locations = judged.get(brand) ?? new Map<string, Promise<Location>>();
    judged.set(brand, locations);
    const key = `${sender.agentUrl} ${start}`;
    const known = locations.get(key) ?? settle(judge(sender, brand, at), options.raiseAlarm);
    locations.set(key, known);
    // A suffix list that could not be loaded says nothing about the file: not remembered.
    known.catch(() => locations.delete(key));
    const location = await known;
    if (location.ok) noteMoved(sender.agentUrl, location.jwksUri);
    return location;
  };
}

async function settle(judgement: Promise<Judgement>, raiseAlarm: RaiseAlarm): Promise<Location> {
  const { location, alarm } = await judgement;
  if (alarm !== undefined) raiseAlarm(alarm);
  return location;
}

/** Step 1: at the operator domain, which is the host of the agent URL, unless configuration names another place. */
function brandJsonUrl(sender: SenderEntry, allowLoopback: boolean): string | undefined {
  if (sender.brandJsonUrl !== undefined) return sender.brandJsonUrl;
  if (!URL.canParse(sender.agentUrl)) return undefined;
  const { protocol, host } = new URL(sender.agentUrl);
  const scheme = allowLoopback && protocol === 'http:' ? 'http:' : 'https:';
  return `${scheme}//${host}/.well-known/brand.json`;
}

async function judge(sender: SenderEntry, brand: BrandJson, at: string): Promise<Judgement> {
  const { agentUrl } = sender;
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
    const hint = misses.length === 0 ? '' : `; it does list ${misses.join(', ')}`;
    return refuse('agent_not_listed', `brand.json at ${at} has no agent with this url${hint}`, {
      nearMisses: misses,
    });
  }
  if (!(await mayList(sender, brand, at))) {
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
 * A file that configuration puts at another registrable domain than the agent's has to name that domain itself. One
 * that the agent's own domain points to needs no more than that.
 */
async function mayList(sender: SenderEntry, brand: BrandJson, at: string): Promise<boolean> {
  if (sender.brandJsonUrl === undefined) return true;
  const agent = hostOf(sender.agentUrl);
  if (await sameRegistrableDomain(hostOf(sender.brandJsonUrl), agent)) return true;
  if (await sameRegistrableDomain(hostOf(at), agent)) return true;
  if (brand.operators.has(agent)) return true;
  const domain = await registrableDomain(agent);
  return domain !== undefined && brand.operators.has(domain);
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
