import { isJsonObject, type JsonObject, present, textMember } from '../../codec/members.ts';
import type { Hashes } from '../../crypto/engine.ts';
import type { CallTold, OurUrl, ToldUrl } from '../../windows/told.ts';
import { hasTokenForm, readRouteToken, type Secrets } from '../secrets.ts';
import { type RouteScheme, SCHEMES } from '../seller.ts';

/* Which URL of ours a text names, and what a call tells its seller (told.md §1.1). */

/** Longer than any that this package makes. */
const MAX_URL = 2048;

/**
 * @param bases each without a `/` at its end.
 * @returns undefined for a URL of another's: it is below no base, or has a token that no secret made.
 */
export function ourUrlIn(
  bases: readonly string[],
  { secrets, hashes }: { readonly secrets: Secrets; readonly hashes: Hashes },
  text: string,
): OurUrl | undefined {
  if (text.length > MAX_URL || !URL.canParse(text)) return undefined;
  const { origin, pathname, search } = new URL(text);
  const whole = origin + pathname + search;
  // Of several the longest: one may be below another.
  const base = bases.filter((one) => whole.startsWith(`${one}/`)).toSorted((a, b) => b.length - a.length)[0];
  if (base === undefined) return undefined;
  if (!hasTokenForm(pathname)) return { base, route: whole.slice(base.length + 1) };
  const token = readRouteToken(secrets, hashes, pathname.slice(pathname.lastIndexOf('/') + 1));
  // A token stands right below its base, and nothing follows it.
  return token && origin + pathname === `${base}/${token.text}` ? { base, route: token.id } : undefined;
}

/** The URL and the scheme in a webhook's configuration; null for one of another's. */
function toldIn(config: JsonObject, ours: (url: string) => OurUrl | undefined): ToldUrl | null {
  const url = ours(textMember(config, 'url') ?? '');
  const scheme = schemeIn(present(config, 'authentication'));
  return url && scheme ? { ...url, scheme } : null;
}

/** `signature` without `authentication`; undefined for another scheme. */
function schemeIn(authentication: unknown): RouteScheme | undefined {
  if (authentication === undefined) return 'signature';
  const schemes = isJsonObject(authentication) ? authentication['schemes'] : undefined;
  const first: unknown = Array.isArray(schemes) ? schemes[0] : undefined;
  return SCHEMES.find((one) => one === first && one !== 'signature');
}

/** By which URL a call asks its seller to send the reports of its media buy. */
export function reportsToldBy(
  taskType: string,
  args: JsonObject,
  ours: (url: string) => OurUrl | undefined,
): Pick<CallTold, 'reports'> {
  if (taskType !== 'create_media_buy' && taskType !== 'update_media_buy') return {};
  const config = Object.hasOwn(args, 'reporting_webhook') ? args['reporting_webhook'] : undefined;
  if (config === undefined) return {};
  return { reports: isJsonObject(config) ? toldIn(config, ours) : null };
}
