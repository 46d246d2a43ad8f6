import type { RaiseAlarm } from '../alarms.ts';
import { MAX_URL_BYTES, printableName } from '../codec/printable.ts';
import type { SenderEntry } from '../senders.ts';
import { createJudgements, type Location } from './agent-judgement.ts';
import type { BrandJson } from './brand-json.ts';
import type { Answer } from './document.ts';

export type { Location } from './agent-judgement.ts';

/** Gives the brand.json at a URL, from the network or only from what is held: the caller's choice. */
export type LoadBrandJson = (url: string) => Answer<BrandJson> | Promise<Answer<BrandJson>>;

export type Locate = (sender: SenderEntry, load: LoadBrandJson) => Promise<Location>;

/** Both ways to a sender's JWKS. */
export interface Locator {
  readonly locate: Locate;
  /**
   * The `jwks_uri` that `locate` gives for copies that it has judged before, without waiting; undefined where it has to
   * be asked.
   * @param held what is held of the brand.json at a URL.
   */
  readonly known: (sender: SenderEntry, held: (url: string) => BrandJson | undefined) => string | undefined;
}

export interface LocateOptions {
  readonly allowLoopback: boolean;
  readonly raiseAlarm: RaiseAlarm;
}

/** How many senders' first `jwks_uri` are remembered: as many as documents are. */
const MAX_LEARNED = 10_000;

/** See `createLocator`. */
export function createLocate(options: LocateOptions): Locate {
  return createLocator(options).locate;
}

/**
 * Steps 1 to 3 (verification.md §5.1 to §5.3): brand.json, followed once where it points elsewhere, the entry whose `url`
 * is the agent URL, its `jwks_uri`. What a copy says is judged once, and its alarms are raised once.
 */
export function createLocator(options: LocateOptions): Locator {
  const judgements = createJudgements(options.raiseAlarm);
  const starts = new WeakMap<SenderEntry, string>();
  const noteMoved = createMoveWatch(options.raiseAlarm);
  const locate: Locate = async (sender, load) => {
    const start = starts.get(sender) ?? brandJsonUrl(sender, options.allowLoopback);
    if (start === undefined) return { ok: false, renewable: false, reason: 'the agent URL is not a URL' };
    starts.set(sender, start);
    const first = await load(start);
    if (!first.ok) return missing(start, first.reason);
    const configured = first.copy.value;
    const at = configured.next ?? start;
    const answer = configured.next === undefined ? first : await load(at);
    if (!answer.ok) return missing(at, answer.reason);
    const location = await judgements.once(sender, { configured, listing: answer.copy.value, at }, start);
    if (location.ok) noteMoved(sender.agentUrl, location.jwksUri);
    return location;
  };
  const known: Locator['known'] = (sender, held) => {
    const start = starts.get(sender);
    const configured = start === undefined ? undefined : held(start);
    if (start === undefined || configured === undefined) return undefined;
    const listing = configured.next === undefined ? configured : held(configured.next);
    const location = listing && judgements.before(sender, { configured, listing }, start);
    if (location?.ok !== true) return undefined;
    noteMoved(sender.agentUrl, location.jwksUri);
    return location.jwksUri;
  };
  return { locate, known };
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
    const [now, first] = [jwksUri, known.first].map((url) => printableName(url, MAX_URL_BYTES));
    const message = `${agentUrl}: its jwks_uri is ${now}; first learned was ${first}.`;
    raiseAlarm({ code: 'jwks_uri_moved', message, sender: agentUrl, first: known.first, jwksUri });
  };
}
