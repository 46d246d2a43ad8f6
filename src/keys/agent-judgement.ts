import type { Alarm, RaiseAlarm } from '../alarms.ts';
import type { SenderEntry } from '../senders.ts';
import type { BrandJson } from './brand-json.ts';
import { registrableDomain, sameRegistrableDomain } from './domains.ts';
import { nearMisses, nearMissText } from './near-misses.ts';

/** Where a sender's JWKS lies. `renewable`: brand.json could be had, and a newer one may say otherwise. */
export type Location =
  | { readonly ok: true; readonly jwksUri: string }
  | { readonly ok: false; readonly renewable: boolean; readonly reason: string };

interface Judgement {
  readonly location: Location;
  readonly alarm?: Alarm;
}

/** The brand.json where the search begins, and the one that lists agents: the same, or what the first points to. */
export interface Files {
  readonly configured: BrandJson;
  readonly listing: BrandJson;
  /** Where `listing` is. */
  readonly at: string;
}

interface Judged {
  readonly configured: BrandJson;
  readonly location: Location;
}

/** What brand.json says of a sender's JWKS, judged once a copy. */
export interface Judgements {
  /** What was said of these very copies before. @param start where the search began. */
  before(
    sender: SenderEntry,
    files: Pick<Files, 'configured' | 'listing'>,
    start: string,
  ): Location | undefined;
  /** The same, or a judgement made now, whose alarm is raised. */
  once(sender: SenderEntry, files: Files, start: string): Promise<Location>;
}

export function createJudgements(raiseAlarm: RaiseAlarm): Judgements {
  const judged = new WeakMap<BrandJson, Map<string, Judged>>();
  const keyOf = ({ agentUrl }: SenderEntry, start: string): string => `${agentUrl} ${start}`;
  const before: Judgements['before'] = (sender, { configured, listing }, start) => {
    const known = judged.get(listing)?.get(keyOf(sender, start));
    return known?.configured === configured ? known.location : undefined;
  };
  return {
    before,
    once: async (sender, files, start) => {
      const known = before(sender, files, start);
      if (known !== undefined) return known;
      const { location, alarm } = await judge(sender, files);
      // Others may have judged it meanwhile. The result is kept and no promise of it: where a request owns its I/O,
      // none may wait for another's.
      if (alarm !== undefined && before(sender, files, start) === undefined) raiseAlarm(alarm);
      const locations = judged.get(files.listing) ?? new Map<string, Judged>();
      locations.set(keyOf(sender, start), { configured: files.configured, location });
      judged.set(files.listing, locations);
      return location;
    },
  };
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
