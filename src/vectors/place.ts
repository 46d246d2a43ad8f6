import { canonicalAuthority } from '../auth/rfc9421/host-name.ts';
import { canonicalTargetUri } from '../auth/rfc9421/target-uri.ts';

/** How a receiver is told the URL of a vector: `publicUrl`, and the request target where that has to say the rest. */
export interface Place {
  readonly publicUrl: string;
  readonly requestTarget?: string;
}

const PARTS = /^(https?):\/\/([^/?#]*)([^#]*)/is;

/** Stands for a URL that no receiver could be configured with: no request names it. */
const ELSEWHERE = 'https://receiver.invalid/';

function authorityOf(text: string, scheme: string): string | undefined {
  try {
    return canonicalAuthority(text.slice(text.lastIndexOf('@') + 1), scheme === 'http' ? 'http' : 'https');
  } catch {
    return undefined;
  }
}

function hasCanonicalForm(url: string): boolean {
  try {
    return canonicalTargetUri(url).targetUri !== '';
  } catch {
    return false;
  }
}

/**
 * A vector's URL is the one that the sender was given, and so the receiver's `publicUrl`. Options refuse some URLs that
 * have a canonical form (userinfo, fragment, `*`), and those that have none: for these path and query come with the
 * request; and where even the authority is none, the whole URL is the request's word against a URL that is right.
 */
export function placeOf(url: string): Place {
  const [whole, schemeText = '', authorityText = '', rest = ''] = PARTS.exec(url) ?? [];
  if (whole === undefined) return { publicUrl: ELSEWHERE, requestTarget: `https://${url}` };
  const scheme = schemeText.toLowerCase();
  const authority = authorityOf(authorityText, scheme);
  if (authority === undefined) return { publicUrl: ELSEWHERE, requestTarget: url };
  const usual = !authorityText.includes('@') && !/[#*]/.test(url);
  if (usual && hasCanonicalForm(url)) return { publicUrl: url };
  const target = rest.startsWith('/') ? rest : `/${rest}`;
  return { publicUrl: `${scheme}://${authority}/*`, requestTarget: target };
}
