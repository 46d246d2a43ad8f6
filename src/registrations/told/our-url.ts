// Recognises URLs of ours in texts, and the URL that a call gives its seller for reports (told.md §1.1). Routes and
// operations call it.
import { isJsonObject, type JsonObject, present, textMember } from '../../codec/members.ts';
import type { Hashes } from '../../crypto/engine.ts';
import type { CallTold, OurUrl, ToldUrl } from '../../windows/told.ts';
import { hasTokenForm, readRouteToken, type Secrets } from '../secrets.ts';
import { type RouteScheme, SCHEMES } from '../seller.ts';

/** The longest URL that is read. All that this package makes are shorter. */
const MAX_URL = 2048;

/**
 * Base and route of a URL of ours.
 * @param bases each without a `/` at its end.
 * @returns undefined for the URL of another: it is below no base, or its token was made by no secret.
 */
export function ourUrlIn(
  bases: readonly string[],
  { secrets, hashes }: { readonly secrets: Secrets; readonly hashes: Hashes },
  text: string,
): OurUrl | undefined {
  if (text.length > MAX_URL || !URL.canParse(text)) return undefined;
  const { origin, pathname, search } = new URL(text);
  const whole = origin + pathname + search;
  // The longest base wins, because one may be below another.
  const base = bases.filter((one) => whole.startsWith(`${one}/`)).toSorted((a, b) => b.length - a.length)[0];
  if (base === undefined) return undefined;
  if (!hasTokenForm(pathname)) return { base, route: whole.slice(base.length + 1) };
  const token = readRouteToken(secrets, hashes, pathname.slice(pathname.lastIndexOf('/') + 1));
  // A token stands right below its base, and nothing follows it.
  return token && origin + pathname === `${base}/${token.text}` ? { base, route: token.id } : undefined;
}

/** The URL and the scheme in a webhook's configuration; null for the URL of another. */
function toldIn(config: JsonObject, ours: (url: string) => OurUrl | undefined): ToldUrl | null {
  const url = ours(textMember(config, 'url') ?? '');
  const scheme = schemeIn(present(config, 'authentication'));
  return url && scheme ? { ...url, scheme } : null;
}

/** The scheme in `authentication`; without it `signature`. Undefined for an unknown scheme. */
function schemeIn(authentication: unknown): RouteScheme | undefined {
  if (authentication === undefined) return 'signature';
  const schemes = isJsonObject(authentication) ? authentication['schemes'] : undefined;
  const first: unknown = Array.isArray(schemes) ? schemes[0] : undefined;
  return SCHEMES.find((one) => one === first && one !== 'signature');
}

/** The URL at which a call asks its seller to send the reports of its media buy. */
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
