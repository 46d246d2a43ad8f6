// Follows one redirect within the same origin, and remembers it for the session (calls.md §4.3). `mcpCaller` and
// `a2aCaller` send their requests through this.
import { MAX_URL_BYTES, printableName } from '../codec/printable.ts';
import { PrintableError } from '../codec/printable-value.ts';

/** The redirects of a session: for each URL, the URL that is called instead. */
export type Moved = Map<string, string>;

/** Thrown for a redirect that is not followed. The message names the URL to configure. */
export class RedirectError extends PrintableError {
  override readonly name = 'RedirectError';
  /** The stable code, always `redirect_refused`. */
  readonly code = 'redirect_refused';
}

/** HTTP statuses of redirects that keep method and body. */
const KEEPING: ReadonlySet<number> = new Set([307, 308]);

const isRedirect = ({ status }: Response): boolean => status >= 300 && status < 400 && status !== 304;

/**
 * Sends a request. If it is redirected within its origin, sends it once more (calls.md §4.3).
 * @param send sends the request to a URL, without following redirects.
 * @param moved the redirects of the session; a new one is added.
 * @throws RedirectError for any other redirect.
 */
export async function followed(
  url: string,
  moved: Moved,
  send: (url: string) => Promise<Response>,
): Promise<Response> {
  const known = moved.get(url);
  const response = await send(known ?? url);
  if (response.redirected || response.type === 'opaqueredirect') {
    await given(response);
    throw new RedirectError(`${url} was redirected by your fetch. Let it obey redirect: 'manual'.`);
  }
  if (!isRedirect(response)) return response;
  await given(response);
  const to = targetOf(known ?? url, response);
  const isFollowed =
    known === undefined && to && KEEPING.has(response.status) && to.origin === new URL(url).origin;
  if (!isFollowed) {
    // The remembered redirect is out of date, so it is forgotten. The next call may find another one.
    moved.delete(url);
    throw notFollowed(url, response, to);
  }
  const second = await send(to.href);
  if (isRedirect(second) || second.redirected) {
    await given(second);
    throw notFollowed(to.href, second, targetOf(to.href, second));
  }
  moved.set(url, to.href);
  return second;
}

/** Discards a response body that is not read. */
const given = async (response: Response): Promise<void> => response.body?.cancel().catch(() => undefined);

function targetOf(url: string, { headers }: Response): URL | undefined {
  const location = headers.get('location') ?? '';
  if (location === '' || !URL.canParse(location, url)) return undefined;
  const target = new URL(location, url);
  target.hash = '';
  return /^https?:$/.test(target.protocol) && target.username === '' && target.password === ''
    ? target
    : undefined;
}

function notFollowed(url: string, { status }: Response, to: URL | undefined): RedirectError {
  const where = to
    ? printableName(`${to.origin}${to.pathname}`, MAX_URL_BYTES)
    : 'a URL that cannot be called';
  return new RedirectError(
    `${printableName(url, MAX_URL_BYTES)} answers HTTP ${status}, a redirect to ${where}, which is not followed. If that URL is the seller's, give it as agentUrl.`,
  );
}
