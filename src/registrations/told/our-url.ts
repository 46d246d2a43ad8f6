// Recognises webhook URLs of this application in texts, and finds the URL in a call's `reporting_webhook` (told.md
// §1.1).
import { isJsonObject, type JsonObject, present, textMember } from '../../codec/members.ts';
import type { Hashes } from '../../crypto/engine.ts';
import type { CallTold, OurUrl, ToldUrl } from '../../windows/told.ts';
import { hasTokenForm, readRouteToken, type Secrets } from '../secrets.ts';
import { type RouteScheme, SCHEMES } from '../seller.ts';

/** The longest URL that is read. All URLs that this package makes are shorter. */
const MAX_URL = 2048;

/**
 * Returns base URL and route of a webhook URL of this application.
 * @param bases the base URLs, each without a `/` at its end.
 * @returns undefined for another party's URL: it is below no base URL, or its token was made with none of the secrets.
 */
export function ourUrlIn(
  bases: readonly string[],
  { secrets, hashes }: { readonly secrets: Secrets; readonly hashes: Hashes },
  text: string,
): OurUrl | undefined {
  if (text.length > MAX_URL || !URL.canParse(text)) return undefined;
  const { origin, pathname, search } = new URL(text);
  const whole = origin + pathname + search;
  // The longest base URL is chosen, because one may be below another.
  const base = bases.filter((one) => whole.startsWith(`${one}/`)).toSorted((a, b) => b.length - a.length)[0];
  if (base === undefined) return undefined;
  if (!hasTokenForm(pathname)) return { base, route: whole.slice(base.length + 1) };
  const token = readRouteToken(secrets, hashes, pathname.slice(pathname.lastIndexOf('/') + 1));
  // The token must directly follow the base URL, and nothing may follow the token.
  return token && origin + pathname === `${base}/${token.text}` ? { base, route: token.id } : undefined;
}

/**
 * Returns the URL and the scheme in a call's webhook configuration; null if the URL is another party's, or the scheme
 * is unknown.
 */
function toldIn(config: JsonObject, ours: (url: string) => OurUrl | undefined): ToldUrl | null {
  const url = ours(textMember(config, 'url') ?? '');
  const scheme = schemeIn(present(config, 'authentication'));
  return url && scheme ? { ...url, scheme } : null;
}

/**
 * Returns the scheme in `authentication`; `signature` if there is no `authentication`. Undefined for an unknown scheme.
 */
function schemeIn(authentication: unknown): RouteScheme | undefined {
  if (authentication === undefined) return 'signature';
  const schemes = isJsonObject(authentication) ? authentication['schemes'] : undefined;
  const first: unknown = Array.isArray(schemes) ? schemes[0] : undefined;
  return SCHEMES.find((one) => one === first && one !== 'signature');
}

/**
 * Returns the URL at which a call requests the reports of its media buy. `reports` is null for another party's URL, and
 * absent if the call requests no reports.
 */
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
