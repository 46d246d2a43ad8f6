// Reads the text in which a seller shows a webhook URL of this application: without its query, with secrets redacted,
// or cut (told.md §2.2). Pure functions; the text is untrusted input.
import { MAX_URL_BYTES, printableText } from '../../codec/printable.ts';

/** The parts of a shown URL that are compared. User name, password and query are left out. */
export interface ShownUrl {
  readonly protocol: string;
  readonly host: string;
  readonly path: string;
}

/** Returns the parts of a shown URL; undefined if the text is no web URL, or is too long to be one. */
export function shownUrl(text: unknown): ShownUrl | undefined {
  if (typeof text !== 'string' || text.length > MAX_URL_BYTES || !URL.canParse(text)) return undefined;
  const { protocol, host, pathname } = new URL(text);
  if (protocol !== 'https:' && protocol !== 'http:') return undefined;
  return { protocol, host: host.replace(/\.(?=:|$)/, ''), path: decoded(pathname) };
}

/** Returns the path decoded, because unreserved characters may or may not be encoded. */
function decoded(path: string): string {
  try {
    return decodeURI(path);
  } catch {
    return path;
  }
}

/** Patterns for the placeholder of a redacted or cut part, in a host and in a path. */
const HOST_MARK = /\*|\bredacted\b/iu;
const PATH_MARK = /[*…•<[{]|\.{3}|redacted|(?<=\/)(?:masked|hidden|filtered|removed|secret|x{3,})(?=\/|$)/iu;

/** Returns the text before a placeholder; undefined if the text has none. */
function beforeMark(text: string, mark: RegExp): string | undefined {
  const at = text.search(mark);
  return at < 0 ? undefined : text.slice(0, at);
}

const isHost = ({ host }: ShownUrl, told: string): boolean => {
  const start = beforeMark(host, HOST_MARK);
  return start === undefined ? host === told : told.startsWith(start);
};

/** True if the visible part of the shown URL fits a URL below `base`. */
export function isShownBelow(shown: ShownUrl, base: string): boolean {
  const { host, pathname } = new URL(base);
  if (!isHost(shown, host)) return false;
  const prefix = `${decoded(pathname).replace(/\/$/, '')}/`;
  const path = beforeMark(shown.path, PATH_MARK) ?? shown.path;
  return path.startsWith(prefix) || prefix.startsWith(path);
}

const MAX_SHOWN = 255;

/**
 * Returns a text for people: the host and, if the host is right, the part of the path that is compared with the base
 * URL. Further parts are left out, because they may be secret.
 */
export function shownText(shown: ShownUrl, base: string): string {
  const { host, pathname } = new URL(base);
  const compared = isHost(shown, host) ? pathname.split('/').length : 1;
  const start = shown.path.split('/').slice(0, compared).join('/');
  return printableText(`${shown.protocol}//${shown.host}${start}/…`, MAX_SHOWN);
}
