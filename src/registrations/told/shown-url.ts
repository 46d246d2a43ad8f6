// Reads a URL of ours as a seller shows it: without its query, with secrets redacted, or cut (told.md §2.2). Pure. The
// check of URLs calls it. The text is hostile input.
import { MAX_URL_BYTES, printableText } from '../../codec/printable.ts';

/** The parts of a URL that are compared; never its credentials. */
export interface ShownUrl {
  readonly protocol: string;
  readonly host: string;
  readonly path: string;
}

/** The parts of a shown URL; undefined for a text that is no web URL, or is too long for one. */
export function shownUrl(text: unknown): ShownUrl | undefined {
  if (typeof text !== 'string' || text.length > MAX_URL_BYTES || !URL.canParse(text)) return undefined;
  const { protocol, host, pathname } = new URL(text);
  if (protocol !== 'https:' && protocol !== 'http:') return undefined;
  return { protocol, host: host.replace(/\.(?=:|$)/, ''), path: decoded(pathname) };
}

/** The path, decoded: unreserved characters may be encoded or not. */
function decoded(path: string): string {
  try {
    return decodeURI(path);
  } catch {
    return path;
  }
}

/** The marks in a host or a path that stand for a redacted or cut part. */
const HOST_MARK = /\*|\bredacted\b/iu;
const PATH_MARK = /[*…•<[{]|\.{3}|redacted|(?<=\/)(?:masked|hidden|filtered|removed|secret|x{3,})(?=\/|$)/iu;

/** The text before a mark; undefined if it has none. */
function beforeMark(text: string, mark: RegExp): string | undefined {
  const at = text.search(mark);
  return at < 0 ? undefined : text.slice(0, at);
}

const isHost = ({ host }: ShownUrl, told: string): boolean => {
  const start = beforeMark(host, HOST_MARK);
  return start === undefined ? host === told : told.startsWith(start);
};

/** True if a URL may be below a base, as far as it is shown. */
export function isShownBelow(shown: ShownUrl, base: string): boolean {
  const { host, pathname } = new URL(base);
  if (!isHost(shown, host)) return false;
  const prefix = `${decoded(pathname).replace(/\/$/, '')}/`;
  const path = beforeMark(shown.path, PATH_MARK) ?? shown.path;
  return path.startsWith(prefix) || prefix.startsWith(path);
}

const MAX_SHOWN = 255;

/**
 * A text for people: the host and, if that is right, the part of the path that is compared with the base. The rest may
 * be a secret.
 */
export function shownText(shown: ShownUrl, base: string): string {
  const { host, pathname } = new URL(base);
  const compared = isHost(shown, host) ? pathname.split('/').length : 1;
  const start = shown.path.split('/').slice(0, compared).join('/');
  return printableText(`${shown.protocol}//${shown.host}${start}/…`, MAX_SHOWN);
}
